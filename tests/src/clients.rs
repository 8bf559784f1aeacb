//! MCP clients of others: a Python with the official SDK, and Node with npm packages. They are installed into the
//! target folder when they are first needed, by one process at a time. Runs them; knows nothing of what they ask.

use crate::program;
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

/// The package of the official Python SDK, pinned.
pub const PYTHON_PACKAGE: &str = "mcp==2.3.0";
/// How long an installation may take.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(600);
/// Downloads fail now and then.
const INSTALL_ATTEMPTS_MAX: u32 = 2;
/// npm's own attempts: as it comes, it tries for many minutes where there is no network.
const NPM_PATIENCE: [&str; 3] =
    ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"];
/// An installation that failed is not tried again for so long, by any test; unless it failed at once, as it does where
/// npm is missing.
const FAILURE_LIFETIME: Duration = Duration::from_secs(600);
const FAILURE_COST_MIN: Duration = Duration::from_secs(2);
/// How long a client may take for everything it asks.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(300);
/// The first Node that the newest packages run on.
const NODE_MAJOR_MIN: u32 = 22;
/// Lines of a program's errors that are worth telling.
const ERROR_LINES_MAX: usize = 40;

/// Node, and the packages of `tests/clients/package.json`.
#[derive(Clone, Debug)]
pub struct Node {
    program: PathBuf,
    folder: PathBuf,
}

impl Node {
    /// Installs what is not there yet; or says why it cannot be had.
    pub fn find() -> Result<Self, String> {
        let folder = target().join("node-clients");
        let _lock = lock(&folder)?;
        let wanted = fs::read(source("package.json")).map_err(|error| error.to_string())?;
        // Written last: a folder without it was left half way.
        let stamp = folder.join("installed.json");
        if !fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
            let _ = fs::remove_file(&stamp);
            fs::write(folder.join("package.json"), &wanted).map_err(|error| error.to_string())?;
            install(&folder, || {
                let mut npm = Command::new("npm");
                npm.args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]);
                npm.args(NPM_PATIENCE).current_dir(&folder);
                npm
            })?;
            fs::write(&stamp, &wanted).map_err(|error| error.to_string())?;
        }
        let installed = folder.join("node_modules/node/bin/node");
        let program = [installed, "node".into()].into_iter().find(|node| is_new_enough(node));
        let program = program.ok_or_else(|| format!("no Node of version {NODE_MAJOR_MIN} or newer"))?;
        Ok(Self { program, folder })
    }

    /// A script of `tests/clients`, with the packages in its reach.
    pub fn script(&self, name: &str) -> Command {
        let _lock = lock(&self.folder).expect("the folder was locked before");
        let here = self.folder.join(name);
        let script = fs::read(source(name)).expect("a script is in tests/clients");
        if !fs::read(&here).is_ok_and(|copy| copy == script) {
            fs::write(&here, script).expect("the folder can be written"); // not while another reads the same
        }
        self.command(&here)
    }

    /// A program of a package, by its path in `node_modules`.
    pub fn package(&self, path: &str) -> Command {
        self.command(&self.folder.join("node_modules").join(path))
    }

    /// A program of a package that needs no Node, by its name.
    pub fn tool(&self, name: &str) -> Command {
        Command::new(self.folder.join("node_modules/.bin").join(name))
    }

    fn command(&self, script: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(script);
        command
    }
}

fn is_new_enough(node: &Path) -> bool {
    let version = Command::new(node).arg("--version").output();
    let version = version.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let major = version.and_then(|text| text.strip_prefix('v')?.split('.').next()?.parse::<u32>().ok());
    major.is_some_and(|major| major >= NODE_MAJOR_MIN)
}

/// A Python that has the official SDK; or why there is none.
pub fn python() -> Result<PathBuf, String> {
    let folder = target().join("python-sdk");
    let _lock = lock(&folder)?;
    let python = folder.join("bin").join("python");
    let has_sdk = || {
        let mut import = Command::new(&python);
        import.args(["-c", "import mcp"]);
        run(import, CLIENT_TIMEOUT)
    };
    if python.is_file() && has_sdk().is_ok() {
        return Ok(python);
    }
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(&folder);
    run(environment, INSTALL_TIMEOUT)?;
    install(&folder, || {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", PYTHON_PACKAGE]);
        pip
    })?;
    has_sdk()?;
    Ok(python)
}

/// What a client prints until its end; one that fails or hangs is an error that tells what it said.
pub fn printed(command: Command) -> Result<String, String> {
    String::from_utf8(run(command, CLIENT_TIMEOUT)?.stdout).map_err(|error| error.to_string())
}

/// What a client prints, and whether it ended well.
pub fn ended(command: Command) -> Result<(String, bool), String> {
    let output = finish(command, CLIENT_TIMEOUT)?;
    Ok((String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into(), output.status.success()))
}

/// Says that a test cannot run here. Not `eprintln!`: the test runner would keep that to itself.
pub fn skip(what: &str, why: &str) {
    let _ = writeln!(io::stderr(), "skipped: no {what}: {}", why.replace('\n', " "));
}

/// Installs into a folder. Why it failed is kept there for a while: the next test need not wait for it, too.
fn install(folder: &Path, command: impl Fn() -> Command) -> Result<(), String> {
    let failure = folder.join("failure.txt");
    let age = fs::metadata(&failure).and_then(|about| about.modified()).map(|then| then.elapsed());
    if matches!(age, Ok(Ok(age)) if age < FAILURE_LIFETIME) {
        return Err(fs::read_to_string(&failure).unwrap_or_default());
    }
    let begun = Instant::now();
    let mut attempt = 1;
    loop {
        match run(command(), INSTALL_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(why) if attempt == INSTALL_ATTEMPTS_MAX => {
                if begun.elapsed() >= FAILURE_COST_MIN {
                    let _ = fs::write(&failure, &why); // without it the next test tries, too
                }
                return Err(why);
            }
            Err(_) => attempt += 1,
        }
    }
}

/// Runs a program that must end well.
fn run(command: Command, timeout: Duration) -> Result<Output, String> {
    let what = format!("{command:?}");
    let output = finish(command, timeout)?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    let last = lines[lines.len().saturating_sub(ERROR_LINES_MAX)..].join("\n");
    Err(format!("{what} ended with {}: {last}", output.status))
}

/// Runs a program, and stops it when its time is over.
fn finish(command: Command, timeout: Duration) -> Result<Output, String> {
    let what = format!("{command:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let ended = runtime.block_on(async {
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true).stdin(std::process::Stdio::null());
        tokio::time::timeout(timeout, command.output()).await
    });
    match ended {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(error)) => Err(format!("{what}: {error}")),
        Err(_) => Err(format!("{what} took longer than {} s", timeout.as_secs())),
    }
}

/// Held by one process at a time, until it is dropped. The file is beside the folder, which may not be there yet.
fn lock(folder: &Path) -> Result<File, String> {
    let locked = fs::create_dir_all(folder).and_then(|()| {
        let file = File::create(folder.with_extension("lock"))?;
        file.lock()?;
        Ok(file)
    });
    locked.map_err(|error| format!("cannot lock {}: {error}", folder.display()))
}

/// A file of `tests/clients`.
/// A file of `tests/clients`.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

fn target() -> PathBuf {
    program().ancestors().nth(2).expect("programs are in TARGET/PROFILE").to_owned()
}
