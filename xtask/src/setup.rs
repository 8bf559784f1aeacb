//! Makes a fresh machine ready: the firmware's Rust target and QEMU. Quick when all is there.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{FIRMWARE_TARGET, Workspace, check, succeeds};

const QEMU: &str = "qemu-system-arm";
const DOWNLOAD_ATTEMPTS_MAX: u32 = 3;
const DOWNLOAD_PAUSE: Duration = Duration::from_secs(5);

const QEMU_HELP: &str = "\
qemu-system-arm is missing and cannot be installed from here. Install it, then run this again:
  Debian, Ubuntu   sudo apt-get install qemu-system-arm
  Fedora           sudo dnf install qemu-system-arm
  Arch             sudo pacman -S qemu-system-arm
  macOS            brew install qemu";

const TARGET_HELP: &str = "\
the Rust target thumbv7em-none-eabihf is missing, and so is rustup, which would install it.
Install rustup (https://rustup.rs), then run: rustup target add thumbv7em-none-eabihf
Without rustup, install the target's standard library of this compiler from where the compiler came from";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    rust_target(workspace)?;
    qemu()
}

fn rust_target(workspace: &Workspace) -> Result<()> {
    if target_is_installed(workspace)? {
        return Ok(());
    }
    if !succeeds("rustup", &["--version"]) {
        bail!(TARGET_HELP);
    }
    retry(DOWNLOAD_ATTEMPTS_MAX, DOWNLOAD_PAUSE, || {
        check(Command::new("rustup").args(["target", "add", FIRMWARE_TARGET]).current_dir(&workspace.root))
    })?;
    ensure!(
        target_is_installed(workspace)?,
        "rustup added {FIRMWARE_TARGET}, but not to the toolchain in use (`rustc --print sysroot` shows which)"
    );
    Ok(())
}

fn target_is_installed(workspace: &Workspace) -> Result<bool> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "sysroot"]).current_dir(&workspace.root);
    let output = rustc.output().context("cannot start rustc")?;
    ensure!(output.status.success(), "`rustc --print sysroot` ended with {}", output.status);
    let sysroot = String::from_utf8(output.stdout).context("the path of rustc's sysroot is not UTF-8")?;
    Ok(Path::new(sysroot.trim_end()).join("lib/rustlib").join(FIRMWARE_TARGET).join("lib").is_dir())
}

fn qemu() -> Result<()> {
    if succeeds(QEMU, &["--version"]) {
        return Ok(());
    }
    let Some(privilege) = apt_privilege() else {
        bail!(QEMU_HELP);
    };
    println!("installing {QEMU}");
    let update: &[&str] = &["apt-get", "update"];
    let install: &[&str] = &["apt-get", "install", "-y", "--no-install-recommends", QEMU];
    for step in [update, install] {
        let words: Vec<&str> = privilege.iter().chain(step).copied().collect();
        retry(DOWNLOAD_ATTEMPTS_MAX, DOWNLOAD_PAUSE, || check(Command::new(words[0]).args(&words[1..])))?;
    }
    ensure!(succeeds(QEMU, &["--version"]), "apt-get installed {QEMU}, but it does not start");
    Ok(())
}

/// The words to put before `apt-get`, or none where it is absent or would ask for a password.
fn apt_privilege() -> Option<&'static [&'static str]> {
    const WITHOUT_QUESTIONS: &str = "DEBIAN_FRONTEND=noninteractive";
    if !succeeds("apt-get", &["--version"]) {
        return None;
    }
    let user = Command::new("id").arg("-u").output().ok()?;
    if user.stdout.trim_ascii() == b"0" {
        return Some(&["env", WITHOUT_QUESTIONS]);
    }
    succeeds("sudo", &["-n", "true"]).then_some(&["sudo", "-n", "env", WITHOUT_QUESTIONS])
}

/// Tries up to `attempts_max` times; downloads fail now and then.
fn retry(attempts_max: u32, pause: Duration, mut work: impl FnMut() -> Result<()>) -> Result<()> {
    let mut attempt = 1;
    loop {
        match work() {
            Err(error) if attempt < attempts_max => {
                eprintln!(
                    "attempt {attempt} of {attempts_max}: {error:#}; trying again in {} s",
                    pause.as_secs()
                );
                thread::sleep(pause);
                attempt += 1;
            }
            outcome => {
                return outcome.with_context(|| format!("after {attempt} of {attempts_max} attempts"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_that_fails_twice_is_tried_a_third_time() {
        let mut calls = 0;
        let outcome = retry(3, Duration::ZERO, || {
            calls += 1;
            ensure!(calls == 3, "not yet");
            Ok(())
        });
        assert!(outcome.is_ok());
        assert_eq!(calls, 3);
    }

    #[test]
    fn a_download_that_always_fails_ends_after_the_last_attempt() {
        let mut calls = 0;
        let outcome = retry(3, Duration::ZERO, || {
            calls += 1;
            bail!("never")
        });
        assert_eq!(format!("{:#}", outcome.unwrap_err()), "after 3 of 3 attempts: never");
        assert_eq!(calls, 3);
    }
}
