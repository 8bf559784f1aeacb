//! `picolake.yaml`: which boards there are, how their rows are archived, and which SELECTs are views.

use crate::{
    archive::{self, MAX_BYTES_MIN, Retention, SYNC_INTERVAL_DEFAULT},
    fault::Fault,
    link::{Address, AddressError},
    query::{View, Views},
};
use serde::Deserialize;
use shared::format::is_unseen;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// The file that is read when no other is named.
pub const FILE_NAME: &str = "picolake.yaml";
/// The variable that names another; empty, it names none.
pub const FILE_VARIABLE: &str = "PICOLAKE_CONFIG";
/// Boards in one file.
pub const BOARDS_MAX: usize = 1024;
/// Names the archive's file, whatever the configuration says.
pub const ARCHIVE_VARIABLE: &str = "PICOLAKE_ARCHIVE";
/// Where the archive is in the user's data folder.
const ARCHIVE_FILE: &str = "picolake/archive.db";
/// The least and the most time between two looks at a board for new rows.
const SYNC_INTERVAL_MS: std::ops::RangeInclusive<u64> = 50..=3_600_000;
/// Rows can be kept for a century at most.
const KEEP_DAYS: std::ops::RangeInclusive<u64> = 1..=36_525;

/// What the file says, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The boards, in the file's order.
    pub boards: Vec<BoardConfig>,
    /// How rows are archived.
    pub archive: ArchiveConfig,
    /// SELECTs that can be queried as tables.
    pub views: Views,
}

/// How rows are archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveConfig {
    /// Whether they are.
    pub is_enabled: bool,
    /// The file; none is one in the user's data folder.
    pub path: Option<PathBuf>,
    /// How often boards are asked for new rows.
    pub sync_interval: Duration,
    /// What may stay.
    pub retention: Retention,
}

impl Default for ArchiveConfig {
    fn default() -> Self {
        Self {
            is_enabled: true,
            path: None,
            sync_interval: SYNC_INTERVAL_DEFAULT,
            retention: Retention::default(),
        }
    }
}

impl ArchiveConfig {
    /// The file that somebody named: in the variable, or in the configuration.
    pub fn named_path(&self) -> Option<PathBuf> {
        let variable = std::env::var_os(ARCHIVE_VARIABLE).filter(|path| !path.is_empty());
        variable.map(PathBuf::from).or_else(|| self.path.clone())
    }

    /// How the archive is kept; none where it is not, or there is no place for it.
    pub fn options(&self) -> Option<archive::Options> {
        let in_data_folder = || Some(dirs::data_dir()?.join(ARCHIVE_FILE));
        let path = self.named_path().or_else(in_data_folder).filter(|_| self.is_enabled)?;
        Some(archive::Options { path, sync_interval: self.sync_interval, retention: self.retention })
    }
}

/// One board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardConfig {
    /// What people call it.
    pub name: String,
    /// Where it is.
    pub link: Address,
    /// Whether tools may change what it holds; a board is only read unless its entry says `writable: true`.
    pub writable: bool,
}

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {source}; name another with --config FILE", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not YAML of the right shape.
    #[error("{}: {message}", path.display())]
    Shape {
        /// Which file.
        path: PathBuf,
        /// Where and what.
        message: String,
    },
    /// A board's link is not one.
    #[error("{}: board `{name}`: {source}", path.display())]
    Link {
        /// Which file.
        path: PathBuf,
        /// Which board.
        name: String,
        /// Why.
        source: AddressError,
    },
    /// A view that is none.
    #[error("{}: views: {}; {}", path.display(), fault.message, fault.suggested_action)]
    View {
        /// Which file.
        path: PathBuf,
        /// Which view, and why.
        fault: Box<Fault>,
    },
    /// A number of the archive's that cannot be used.
    #[error("{}: archive: {name}: {value} is not from {least} to {most}", path.display())]
    Archive {
        /// Which file.
        path: PathBuf,
        /// Which setting.
        name: &'static str,
        /// What it says.
        value: u64,
        /// What it can say at least.
        least: u64,
        /// What it can say at most.
        most: u64,
    },
    /// A name that cannot be used.
    #[error("{}: board `{name}`: {why}", path.display())]
    Name {
        /// Which file.
        path: PathBuf,
        /// Which board.
        name: String,
        /// Why.
        why: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    boards: Vec<FileBoard>,
    #[serde(default)]
    archive: FileArchive,
    #[serde(default)]
    views: Vec<FileView>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileView {
    name: String,
    database: String,
    sql: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileArchive {
    path: Option<PathBuf>,
    enabled: Option<bool>,
    sync_interval_ms: Option<u64>,
    keep_days: Option<u64>,
    max_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileBoard {
    name: String,
    link: String,
    #[serde(default)]
    writable: bool,
}

/// The file that was named: by an argument, else by the environment.
pub fn named(argument: Option<PathBuf>) -> Option<PathBuf> {
    argument.or_else(|| std::env::var_os(FILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from))
}

/// Reads the file that was named, or `picolake.yaml` in this folder if it is there.
pub fn load(named: Option<&Path>) -> Result<Config, ConfigError> {
    let path = named.unwrap_or(Path::new(FILE_NAME));
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text),
        Err(source) if named.is_none() && source.kind() == std::io::ErrorKind::NotFound => {
            Ok(Config::default())
        }
        Err(source) => Err(ConfigError::Read { path: path.into(), source }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    let file: File = serde_saphyr::from_str(text)
        .map_err(|error| ConfigError::Shape { path: path.into(), message: first_line(&error.to_string()) })?;
    let views = file.views.into_iter().map(|FileView { name, database, sql }| View { name, database, sql });
    let views = Views::new(views.collect())
        .map_err(|fault| ConfigError::View { path: path.into(), fault: Box::new(fault) })?;
    let mut config = Config { archive: archive_of(path, file.archive)?, views, ..Config::default() };
    for FileBoard { name, link, writable } in file.boards {
        let refuse = |why| Err(ConfigError::Name { path: path.into(), name: name.clone(), why });
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || is_unseen(c) || c == ':') {
            return refuse("a name has no spaces, no colons and nothing that is not seen");
        }
        if config.boards.iter().any(|board| board.name == name) {
            return refuse("another board has this name already");
        }
        if config.boards.len() == BOARDS_MAX {
            return refuse("there are more boards than one bridge takes");
        }
        let link = link.parse().map_err(|source| ConfigError::Link {
            path: path.into(),
            name: name.clone(),
            source,
        })?;
        config.boards.push(BoardConfig { name, link, writable });
    }
    Ok(config)
}

fn archive_of(path: &Path, file: FileArchive) -> Result<ArchiveConfig, ConfigError> {
    let within = |name, value: Option<u64>, range: std::ops::RangeInclusive<u64>| match value {
        Some(value) if !range.contains(&value) => {
            let (least, most) = range.into_inner();
            Err(ConfigError::Archive { path: path.into(), name, value, least, most })
        }
        value => Ok(value),
    };
    let interval_ms = within("sync_interval_ms", file.sync_interval_ms, SYNC_INTERVAL_MS)?;
    let keep_days = within("keep_days", file.keep_days, KEEP_DAYS)?;
    let max_bytes = within("max_bytes", file.max_bytes, MAX_BYTES_MIN..=i64::MAX as u64)?;
    Ok(ArchiveConfig {
        is_enabled: file.enabled.unwrap_or(true),
        // As the other files of a configuration: beside it.
        path: file.path.map(|named| path.parent().map_or(named.clone(), |folder| folder.join(&named))),
        sync_interval: interval_ms.map_or(SYNC_INTERVAL_DEFAULT, Duration::from_millis),
        retention: Retention { keep: keep_days.map(|days| Duration::from_secs(days * 24 * 3600)), max_bytes },
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().into()
}

impl Config {
    /// The board that `text` means: one of the file's by name, or one at a link's address.
    pub fn board(&self, text: &str) -> anyhow::Result<BoardConfig> {
        if let Some(board) = self.boards.iter().find(|board| board.name == text) {
            return Ok(board.clone());
        }
        if text.contains(':') {
            return Ok(BoardConfig { name: text.into(), link: text.parse()?, writable: false });
        }
        let names: Vec<&str> = self.boards.iter().map(|board| board.name.as_str()).collect();
        match shared::command::nearest(text, &names) {
            Some(near) => anyhow::bail!("there is no board `{text}`; did you mean `{near}`?"),
            None if names.is_empty() => anyhow::bail!(
                "there is no board `{text}`: no boards are configured; list them in {FILE_NAME}, or give a link such as tcp:HOST:PORT"
            ),
            None => anyhow::bail!("there is no board `{text}`; there are: {}", names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Config, String> {
        parse(Path::new("picolake.yaml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_names_boards() {
        let config = check("boards:\n  - name: pump\n    link: tcp:10.0.0.7:7000\n").unwrap();
        assert_eq!(config.board("pump").unwrap().link, "tcp:10.0.0.7:7000".parse().unwrap());
        assert!(!config.boards[0].writable, "a board is read only unless the file says otherwise");
        assert!(check("boards: [{name: a, link: 'sim:', writable: true}]").unwrap().boards[0].writable);
        assert_eq!(config.board("sim:").unwrap().link, "sim:".parse().unwrap());
        assert_eq!(
            config.board("pumb").unwrap_err().to_string(),
            "there is no board `pumb`; did you mean `pump`?"
        );
    }

    #[test]
    fn a_file_says_how_rows_are_archived() {
        let text = "archive: {path: rows.db, sync_interval_ms: 250, keep_days: 30, max_bytes: 1000000000}";
        let parsed = parse(Path::new("/etc/picolake/picolake.yaml"), text).unwrap().archive;
        assert_eq!(parsed.path.as_deref(), Some(Path::new("/etc/picolake/rows.db")));
        assert_eq!(parsed.sync_interval, Duration::from_millis(250));
        assert_eq!(parsed.retention.keep, Some(Duration::from_secs(30 * 86_400)));
        assert_eq!(parsed.retention.max_bytes, Some(1_000_000_000));
        assert!(parsed.is_enabled && check("boards: []").unwrap().archive == ArchiveConfig::default());
        assert_eq!(check("archive: {enabled: false}").unwrap().archive.options(), None);
        let fault = check("archive: {max_bytes: 5}").unwrap_err();
        assert!(fault.contains("archive: max_bytes: 5 is not from 8388608 to"), "{fault}");
        assert!(check("archive: {keep: 5}").is_err());
    }

    #[test]
    fn a_view_that_is_none_is_a_fault_of_the_file() {
        let config =
            check("views: [{name: hot, database: demo, sql: SELECT * FROM power WHERE voltage > 3}]");
        assert!(config.unwrap().views.has("demo", "hot"));
        let fault = check("views: [{name: hot, database: demo, sql: DROP TABLE power}]").unwrap_err();
        assert!(fault.starts_with("picolake.yaml: views: view `hot`: only a SELECT"), "{fault}");
        assert!(check("views: [{name: hot, sql: SELECT 1}]").unwrap_err().contains("database"));
    }

    #[test]
    fn a_fault_is_named_with_its_file() {
        assert!(check("bords: []").unwrap_err().starts_with("picolake.yaml: "));
        assert!(
            check("boards: [{name: a, link: 'usb:1'}]")
                .unwrap_err()
                .contains("board `a`: `usb:1` is not a link")
        );
        let twice = "boards: [{name: a, link: 'sim:'}, {name: a, link: 'sim:'}]";
        assert!(check(twice).unwrap_err().contains("another board has this name"));
        assert!(check("boards: [{name: 'a b', link: 'sim:'}]").unwrap_err().contains("no spaces"));
        assert!(check("boards: [{name: \"a\\u202eb\", link: 'sim:'}]").unwrap_err().contains("not seen"));
    }
}
