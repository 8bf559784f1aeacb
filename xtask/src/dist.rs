//! What is given to others. Here: the bundle that Claude Desktop installs with a double click (`.mcpb`, a zip with a
//! manifest). It works at once, with simulated boards, and serves real ones when its configuration is named.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::workspace::{Workspace, check};

/// The version of the manifest's format.
const MANIFEST_VERSION: &str = "0.3";
/// The only setting of the bundle.
const SETTING: &str = "config";
/// Files that go with the program.
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

#[derive(Subcommand)]
pub(crate) enum Package {
    /// The bundle that Claude Desktop installs: target/dist/picolake-VERSION-TARGET.mcpb.
    #[command(after_help = "Example:\n  cargo xtask dist mcpb")]
    Mcpb {
        /// Pack this program instead of building one.
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
        /// Put the bundle here [default: target/dist].
        #[arg(long, value_name = "FOLDER")]
        to: Option<PathBuf>,
    },
}

/// Makes the package and returns where it is.
pub(crate) fn run(workspace: &Workspace, package: &Package) -> Result<PathBuf> {
    let Package::Mcpb { program, to } = package;
    let program = match program {
        Some(program) => program.clone(),
        None => build(workspace)?,
    };
    let folder = to.clone().unwrap_or_else(|| workspace.target.join("dist"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join(format!("picolake-{}-{}.mcpb", env!("CARGO_PKG_VERSION"), host_target()?));
    // Beside its place first: a bundle that is there is whole.
    let new = file.with_extension("new");
    pack(workspace, &program, &new).with_context(|| format!("cannot pack {}", new.display()))?;
    fs::rename(&new, &file).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn build(workspace: &Workspace) -> Result<PathBuf> {
    check(&mut workspace.cargo(&["build", "--quiet", "--release", "--package", "picolake"]))?;
    let program = workspace.target.join("release").join(program_name());
    ensure!(program.is_file(), "the build went well, but there is no program at {}", program.display());
    Ok(program)
}

fn program_name() -> String {
    format!("picolake{}", std::env::consts::EXE_SUFFIX)
}

/// The target that this compiler builds for when none is named.
fn host_target() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8(output.stdout).context("rustc does not write UTF-8")?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` does not tell its host")?.to_owned())
}

fn pack(workspace: &Workspace, program: &Path, bundle: &Path) -> Result<()> {
    let mut zip = ZipWriter::new(File::create(bundle)?);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let plain = options.unix_permissions(0o644);
    zip.start_file("manifest.json", plain)?;
    serde_json::to_writer_pretty(&mut zip, &manifest(&program_name(), platform()?))?;
    for license in LICENSES {
        zip.start_file(license, plain)?;
        io::copy(&mut File::open(workspace.root.join(license))?, &mut zip)?;
    }
    zip.start_file(format!("server/{}", program_name()), options.unix_permissions(0o755))?;
    let mut program = File::open(program).with_context(|| format!("cannot open {}", program.display()))?;
    io::copy(&mut program, &mut zip)?;
    zip.finish()?.sync_all()?;
    Ok(())
}

/// This system's name in a manifest.
fn platform() -> Result<&'static str> {
    match std::env::consts::OS {
        "linux" => Ok("linux"),
        "macos" => Ok("darwin"),
        "windows" => Ok("win32"),
        other => anyhow::bail!("a bundle runs on linux, macos and windows, not on {other}"),
    }
}

fn manifest(program: &str, platform: &str) -> Value {
    json!({
        "manifest_version": MANIFEST_VERSION,
        "name": "picolake",
        "display_name": "Picolake",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Ask microcontrollers about the rows they keep of their own sensors.",
        "long_description": "Picolake answers questions about sensor rows that microcontrollers keep: databases, tables, \
            SQL, and how the boards are. Without a configuration it shows three simulated boards, so that you can try it \
            at once. Boards are only read unless the configuration allows more.",
        "author": {"name": "The Picolake authors"},
        "license": env!("CARGO_PKG_LICENSE"),
        "keywords": ["microcontroller", "sensors", "sql"],
        "server": {
            "type": "binary",
            "entry_point": format!("server/{program}"),
            "mcp_config": {
                "command": format!("${{__dirname}}/server/{program}"),
                "args": ["serve", "--stdio", "--demo-unless-configured"],
                // Not an argument: a setting that is left out becomes an empty text, which an argument cannot be.
                "env": {"PICOLAKE_CONFIG": format!("${{user_config.{SETTING}}}")}
            }
        },
        "tools_generated": true,
        "prompts_generated": true,
        "compatibility": {"platforms": [platform]},
        "user_config": {
            SETTING: {
                "type": "file",
                "title": "Configuration",
                "description": "The picolake.yaml that lists your boards. Without one, simulated boards are shown.",
                "required": false,
                "default": ""
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_starts_the_program_that_is_packed() {
        let manifest = manifest("picolake", "linux");
        let server = &manifest["server"];
        assert_eq!(server["mcp_config"]["command"], "${__dirname}/server/picolake");
        assert_eq!(server["entry_point"], "server/picolake");
        assert_eq!(server["mcp_config"]["env"]["PICOLAKE_CONFIG"], "${user_config.config}");
        assert!(manifest["user_config"]["config"].is_object());
    }
}
