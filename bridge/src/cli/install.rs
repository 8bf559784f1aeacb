//! `picolake install CLIENT`: writes the entry that makes a client start this program, and keeps the rest of its file.

use super::clients::{Client, ENTRY, SERVERS, entry_in, read};
use crate::config::FILE_NAME;
use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value};
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

/// Backups of one file that are kept beside it; then an old one must go by hand.
const BACKUPS_MAX: u32 = 1000;

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Which client
    client: Client,
    /// Print the entry and write nothing
    #[arg(long)]
    print: bool,
    /// Let it serve the simulated field, too
    #[arg(long)]
    demo: bool,
}

pub(crate) fn run(config: Option<&Path>, args: &InstallArgs) -> anyhow::Result<()> {
    let InstallArgs { client, print, demo } = *args;
    let program = std::env::current_exe().context("where is this program?")?;
    let entry = client.entry(&program, arguments(config, demo)?);
    let path = client.file()?;
    if print {
        let mut file = Map::new();
        put(&mut file, entry)?;
        println!("{}", written(&file)?);
        eprintln!("for {}, in {}", client.title(), path.display());
        return Ok(());
    }
    // A link stays one: what it points to is written.
    let path = fs::canonicalize(&path).unwrap_or(path);
    let there = read(&path)?;
    if there.as_ref().and_then(entry_in) == Some(&entry) {
        println!("{} starts {ENTRY} already: {}", client.title(), path.display());
        return Ok(());
    }
    let has_file = there.is_some();
    let mut file = there.unwrap_or_default();
    put(&mut file, entry).with_context(|| format!("in {}", path.display()))?;
    let text = written(&file)?;
    if has_file {
        println!("backup: {}", back_up(&path)?.display());
    }
    replace(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{} starts {ENTRY} from now on: {}", client.title(), path.display());
    println!("Restart {}, then ask it: which databases does picolake have?", client.title());
    Ok(())
}

/// What the client gives the program. It starts it in some other folder, so files are named from the root.
fn arguments(config: Option<&Path>, demo: bool) -> anyhow::Result<Vec<String>> {
    let mut arguments = vec!["serve".into(), "--stdio".into()];
    if demo {
        arguments.push("--demo".into());
    }
    let config =
        config.map(Path::to_owned).or_else(|| Some(FILE_NAME.into()).filter(|file: &PathBuf| file.is_file()));
    if let Some(config) = config {
        let config = fs::canonicalize(&config).with_context(|| format!("where is {}?", config.display()))?;
        arguments.extend(["--config".into(), config.to_string_lossy().into_owned()]);
    }
    Ok(arguments)
}

/// Puts the entry among the file's servers, in the place of an older one.
fn put(file: &mut Map<String, Value>, entry: Value) -> anyhow::Result<()> {
    let servers = file.entry(SERVERS).or_insert_with(|| Value::Object(Map::new()));
    let servers =
        servers.as_object_mut().with_context(|| format!("`{SERVERS}` is not an object; mend it first"))?;
    servers.insert(ENTRY.into(), entry);
    Ok(())
}

fn written(file: &Map<String, Value>) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(file)? + "\n")
}

/// Copies the file beside itself under a name that is free.
fn back_up(path: &Path) -> anyhow::Result<PathBuf> {
    for number in 1..=BACKUPS_MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".backup-{number}"));
        let backup = PathBuf::from(name);
        if !backup.exists() {
            fs::copy(path, &backup).with_context(|| format!("cannot write {}", backup.display()))?;
            return Ok(backup);
        }
    }
    anyhow::bail!("there are {BACKUPS_MAX} backups of {}; remove some", path.display())
}

/// Writes the whole file or nothing: beside it first, then in its place, with its rights.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().context("it is in no folder")?;
    fs::create_dir_all(folder)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let new = PathBuf::from(name);
    let done = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&new)?;
        if let Ok(about) = fs::metadata(path) {
            file.set_permissions(about.permissions())?; // before a byte is in it: the file may hold others' secrets
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if done.is_err() {
        let _ = fs::remove_file(&new); // half a file helps nobody; that it cannot be removed changes nothing
    }
    Ok(done?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_goes_among_others_and_changes_nothing_else() {
        let text = r#"{"z": 1, "mcpServers": {"other": {"command": "x"}, "picolake": {"command": "old"}}, "a": [2]}"#;
        let mut file = serde_json::from_str(text).unwrap();
        put(&mut file, json!({"command": "new"})).unwrap();
        let expected =
            r#"{"z":1,"mcpServers":{"other":{"command":"x"},"picolake":{"command":"new"}},"a":[2]}"#;
        assert_eq!(serde_json::to_string(&file).unwrap(), expected);
    }

    #[test]
    fn servers_that_are_not_an_object_are_left_alone() {
        let mut file = serde_json::from_str(r#"{"mcpServers": []}"#).unwrap();
        assert!(put(&mut file, json!({})).unwrap_err().to_string().contains("mend it"));
    }

    #[test]
    fn a_backup_never_overwrites_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        for content in ["first", "second"] {
            fs::write(&path, content).unwrap();
            assert_eq!(fs::read_to_string(back_up(&path).unwrap()).unwrap(), content);
        }
    }
}
