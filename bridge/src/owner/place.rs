//! Where a field's lock and socket are: a folder that is this user's alone, and a key for each field. Opens neither.

use super::OwnerError;
use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _},
        net::SocketAddr,
    },
    path::{Path, PathBuf},
};

/// Names the folder in which ours is made.
const FOLDER_VARIABLE: &str = "PICOLAKE_RUNTIME_DIR";
/// Ours.
const FOLDER: &str = "picolake";
/// Only this user.
const FOLDER_MODE: u32 = 0o700;
/// What others may not.
const OTHERS_MODE: u32 = 0o077;

/// The place of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
    key: u64,
}

impl Place {
    /// The place of what this configuration lists, with the simulated field or without it. Makes the folder.
    pub fn of(config: Option<&Path>, is_demo: bool) -> Result<Self, OwnerError> {
        let folder = folder(std::env::var_os(FOLDER_VARIABLE).as_deref())?;
        Self::in_folder(folder, config, is_demo)
    }

    pub(super) fn in_folder(
        folder: PathBuf,
        config: Option<&Path>,
        is_demo: bool,
    ) -> Result<Self, OwnerError> {
        let made = fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&folder);
        made.map_err(|source| OwnerError::File { path: folder.clone(), source })?;
        check(&folder)?;
        let path = config.map(|config| config.canonicalize().unwrap_or_else(|_| config.into()));
        let key = key(path.as_deref().map(Path::as_os_str), is_demo);
        let place = Self { folder, key };
        match SocketAddr::from_pathname(place.socket_file()) {
            Ok(_) => Ok(place),
            Err(_) => Err(OwnerError::PathTooLong { path: place.socket_file() }),
        }
    }

    /// The file whose lock the owner has; it stays when the owner ends.
    pub fn lock_file(&self) -> PathBuf {
        self.folder.join(format!("{:016x}.lock", self.key))
    }

    /// Where the owner listens.
    pub fn socket_file(&self) -> PathBuf {
        self.folder.join(format!("{:016x}.sock", self.key))
    }
}

/// The folder that was named, the session's, or the user's.
fn folder(named: Option<&OsStr>) -> Result<PathBuf, OwnerError> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return Ok(Path::new(named).join(FOLDER));
    }
    if let Some(session) = dirs::runtime_dir().filter(|session| session.is_dir()) {
        return Ok(session.join(FOLDER));
    }
    dirs::data_dir().map(|data| data.join(FOLDER).join("run")).ok_or(OwnerError::NoFolder)
}

/// Whoever can open the socket can ask the boards: the folder must be ours and closed to others.
fn check(folder: &Path) -> Result<(), OwnerError> {
    let found =
        fs::symlink_metadata(folder).map_err(|source| OwnerError::File { path: folder.into(), source })?;
    let elsewhere = || "set PICOLAKE_RUNTIME_DIR to a folder of yours".to_string();
    let (why, action) = if !found.is_dir() {
        ("it is no folder", elsewhere())
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        ("it belongs to another user", elsewhere())
    } else if found.mode() & OTHERS_MODE != 0 {
        ("other users may enter it", format!("close it to them: chmod 700 {}", folder.display()))
    } else {
        return Ok(());
    };
    Err(OwnerError::Unsafe { path: folder.into(), why, action })
}

/// FNV-1a: the same in every release, so that two of them find each other's lock.
fn key(config: Option<&OsStr>, is_demo: bool) -> u64 {
    let config = config.map_or(&b""[..], OsStr::as_bytes);
    config
        .iter()
        .chain(&[0, u8::from(is_demo)])
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_field_has_one_place_however_its_file_is_written_and_another_field_another() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("picolake.yaml");
        fs::write(&file, "boards: []").unwrap();
        let place = |config: Option<&Path>, is_demo| {
            Place::in_folder(folder.path().join("run"), config, is_demo).unwrap()
        };
        let one = place(Some(&file), false);
        assert_eq!(one, place(Some(&folder.path().join("run/../picolake.yaml")), false));
        assert_ne!(one, place(Some(&file), true));
        assert_ne!(place(None, false), place(None, true));
        assert_ne!(one, place(None, false));
        assert_eq!(one.lock_file().file_name().unwrap().len(), 16 + ".lock".len());
    }

    #[test]
    fn a_folder_that_others_may_enter_or_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picolake");
        let refused = || Place::in_folder(path.clone(), None, true).unwrap_err().to_string();
        assert!(Place::in_folder(path.clone(), None, true).is_ok());
        for mode in [0o701, 0o770] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(
                refused().contains("other users may enter it; close it to them: chmod 700"),
                "{}",
                refused()
            );
        }
        fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink(folder.path(), &path).unwrap();
        assert!(refused().contains("it is no folder"), "{}", refused());
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(100));
        let refused = Place::in_folder(long, None, true).unwrap_err().to_string();
        assert!(refused.contains("too long") && refused.contains("PICOLAKE_RUNTIME_DIR"), "{refused}");
    }

    #[test]
    fn the_folder_that_is_named_comes_first() {
        assert_eq!(folder(Some(OsStr::new("/x"))).unwrap(), Path::new("/x/picolake"));
        assert!(folder(Some(OsStr::new(""))).unwrap().components().count() > 2);
    }
}
