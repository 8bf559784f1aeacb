//! MCP clients on this machine: where each keeps its servers, and what stands there. Writes nothing.

use clap::ValueEnum;
use serde_json::{Map, Value};
use std::{
    io,
    path::{Path, PathBuf},
};

/// The name of this program's entry in a client's file.
pub(crate) const ENTRY: &str = "picolake";
/// Where all these clients keep their servers.
pub(crate) const SERVERS: &str = "mcpServers";
/// Bytes of a client's file; Claude Code keeps much more than servers in its own.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A client that can start this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
}

impl Client {
    pub(crate) const ALL: [Client; 3] = [Client::ClaudeDesktop, Client::ClaudeCode, Client::Cursor];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "Claude Desktop",
            Client::ClaudeCode => "Claude Code",
            Client::Cursor => "Cursor",
        }
    }

    /// What its user types after `picolake install`.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "claude-desktop",
            Client::ClaudeCode => "claude-code",
            Client::Cursor => "cursor",
        }
    }

    /// The file of this user.
    pub(crate) fn file(self) -> anyhow::Result<PathBuf> {
        let home = dirs::home_dir().ok_or_else(|| anyhow::anyhow!("this user has no home folder"))?;
        let config =
            dirs::config_dir().ok_or_else(|| anyhow::anyhow!("this user has no folder for configuration"))?;
        Ok(self.file_in(&home, &config))
    }

    /// The file of a user with these folders. The second is `~/.config` on Linux, `~/Library/Application Support` on
    /// macOS and `%APPDATA%` on Windows.
    fn file_in(self, home: &Path, config: &Path) -> PathBuf {
        match self {
            Client::ClaudeDesktop => config.join("Claude").join("claude_desktop_config.json"),
            Client::ClaudeCode => home.join(".claude.json"),
            Client::Cursor => home.join(".cursor").join("mcp.json"),
        }
    }

    /// The entry that starts `command` with these arguments.
    pub(crate) fn entry(self, command: &Path, arguments: Vec<String>) -> Value {
        let mut entry = Map::new();
        if self == Client::ClaudeCode {
            entry.insert("type".into(), "stdio".into());
        }
        entry.insert("command".into(), command.to_string_lossy().into_owned().into());
        entry.insert("args".into(), arguments.into());
        Value::Object(entry)
    }
}

/// Reads a client's file; none if it is not there or empty.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<Map<String, Value>>> {
    let text = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(about) if about.len() > FILE_BYTES_MAX => {
            anyhow::bail!("{} is larger than {FILE_BYTES_MAX} bytes", path.display())
        }
        _ => std::fs::read_to_string(path)
            .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))?,
    };
    if text.trim().is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(file)) => Ok(Some(file)),
        Ok(_) => anyhow::bail!("{} is not a JSON object; mend it first", path.display()),
        Err(error) => anyhow::bail!("{} is not JSON ({error}); mend it first", path.display()),
    }
}

/// This program's entry in a client's file.
pub(crate) fn entry_in(file: &Map<String, Value>) -> Option<&Value> {
    file.get(SERVERS)?.get(ENTRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_file_where_its_platform_keeps_it() {
        for (home, config, desktop) in [
            ("/home/u", "/home/u/.config", "/home/u/.config/Claude/claude_desktop_config.json"),
            (
                "/Users/u",
                "/Users/u/Library/Application Support",
                "/Users/u/Library/Application Support/Claude/claude_desktop_config.json",
            ),
            (
                "C:/Users/u",
                "C:/Users/u/AppData/Roaming",
                "C:/Users/u/AppData/Roaming/Claude/claude_desktop_config.json",
            ),
        ] {
            let file = |client: Client| client.file_in(Path::new(home), Path::new(config));
            assert_eq!(file(Client::ClaudeDesktop), Path::new(desktop));
            assert_eq!(file(Client::ClaudeCode), Path::new(home).join(".claude.json"));
            assert_eq!(file(Client::Cursor), Path::new(home).join(".cursor/mcp.json"));
        }
    }
}
