//! Folders for locks and sockets, one for each process of a test, so that none finds another's boards by accident.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
};

/// The variable that names the folder.
pub const VARIABLE: &str = "PICOLAKE_RUNTIME_DIR";
/// Short, since a socket's path is.
const PREFIX: &str = "picolake-tests-";

/// A folder that nobody else has. It goes when a later run of tests finds that this one has ended.
pub fn folder() -> PathBuf {
    static SWEPT: Once = Once::new();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    SWEPT.call_once(sweep);
    let nth = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("{PREFIX}{}-{nth}", process::id()));
    let _ = fs::remove_dir_all(&folder); // of a process that had this id before
    fs::create_dir(&folder).expect("a folder for the lock");
    folder
}

/// Removes the folders of tests that have ended.
fn sweep() {
    if !Path::new("/proc/self").exists() {
        return; // who has ended is not known here
    }
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_dir_all(entry.path()); // another run may do the same
        }
    }
}
