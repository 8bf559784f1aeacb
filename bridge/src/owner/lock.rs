//! The lock of a field: whoever has it is the owner. The kernel frees it when its process ends, however it ends.

use super::{OwnerError, Place};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
};

/// Only this user.
const FILE_MODE: u32 = 0o600;

/// Held as long as this lives.
#[derive(Debug)]
pub(crate) struct Lock {
    /// It is locked, not read.
    _file: File,
    pub(super) place: Place,
}

impl Lock {
    /// Takes the lock if it is free, and leaves this process's id in it.
    pub(crate) fn try_take(place: &Place) -> Result<Option<Self>, OwnerError> {
        let path = place.lock_file();
        take(place).map_err(|source| OwnerError::File { path, source })
    }
}

fn take(place: &Place) -> io::Result<Option<Lock>> {
    let path = place.lock_file();
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // A file that somebody removed meanwhile is locked by nobody who comes later.
    let is_there = std::fs::metadata(&path).is_ok_and(|there| {
        file.metadata().is_ok_and(|ours| (there.dev(), there.ino()) == (ours.dev(), ours.ino()))
    });
    if !is_there {
        return Ok(None);
    }
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Some(Lock { _file: file, place: place.clone() }))
}

/// Who has the lock, as far as its file says it.
pub(crate) fn holder(place: &Place) -> Option<u32> {
    std::fs::read_to_string(place.lock_file()).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn one_has_the_lock_and_the_next_gets_it_when_that_one_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::in_folder(folder.path().join("run"), None, true).unwrap();
        fs::write(place.lock_file(), "4294967295 and more\n").unwrap(); // left by somebody who was killed
        let first = Lock::try_take(&place).unwrap().unwrap();
        assert!(Lock::try_take(&place).unwrap().is_none());
        assert_eq!(holder(&place), Some(std::process::id()));
        drop(first);
        let second = Lock::try_take(&place).unwrap().unwrap();
        fs::remove_file(place.lock_file()).unwrap();
        assert!(Lock::try_take(&place).unwrap().is_some(), "a new file is a new lock");
        drop(second);
    }
}
