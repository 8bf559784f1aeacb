//! `picolake.yaml`: which boards there are.

use crate::link::{Address, AddressError};
use serde::Deserialize;
use shared::format::is_unseen;
use std::path::{Path, PathBuf};

/// The file that is read when no other is named.
pub const FILE_NAME: &str = "picolake.yaml";
/// The variable that names another; empty, it names none.
pub const FILE_VARIABLE: &str = "PICOLAKE_CONFIG";
/// Boards in one file.
pub const BOARDS_MAX: usize = 1024;

/// What the file says, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The boards, in the file's order.
    pub boards: Vec<BoardConfig>,
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
    let mut config = Config::default();
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
