//! Processes on one field: where they meet, a board whose links are counted, and a guest that speaks for itself.

use picolake_tests::{picolake, program, runtime, serving::Piped};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// No wait of a test is longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One field, and where its processes meet.
pub(crate) struct Neighbours {
    pub(crate) runtime: PathBuf,
    folder: tempfile::TempDir,
    is_demo: bool,
}

impl Neighbours {
    /// The simulated field.
    pub(crate) fn demo() -> Self {
        Self { runtime: runtime::folder(), folder: tempfile::tempdir().unwrap(), is_demo: true }
    }

    /// A field with one board, `pump`, that can be written to.
    pub(crate) fn of(link: &str) -> Self {
        let field = Self { is_demo: false, ..Self::demo() };
        let boards = format!(
            "boards:\n- {{name: pump, link: '{link}', writable: true}}\narchive: {{enabled: false}}\n"
        );
        fs::write(field.folder.path().join("picolake.yaml"), boards).unwrap();
        field
    }

    /// The file that lists its boards.
    pub(crate) fn config(&self) -> String {
        self.folder.path().join("picolake.yaml").to_str().unwrap().to_owned()
    }

    /// `picolake` with these arguments, among the neighbours.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.env(runtime::VARIABLE, &self.runtime).args(arguments);
        command
    }

    /// An MCP client's server over pipes.
    pub(crate) fn client(&self, arguments: &[&str]) -> Piped {
        let mut command = self.command(&["serve", "--stdio"]);
        if self.is_demo {
            command.arg("--demo");
        } else {
            command.args(["--config", &self.config()]);
        }
        command.args(arguments);
        Piped::start_command(command)
    }

    /// What a shell prints for these lines, and whether it ended well.
    pub(crate) fn shell(&self, arguments: &[&str], lines: &str) -> (String, String, bool) {
        let mut command = self.command(&["shell"]);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.success())
    }

    /// The only file of this kind.
    pub(crate) fn file(&self, extension: &str) -> Option<PathBuf> {
        let files = fs::read_dir(self.runtime.join("picolake")).ok()?.map(|entry| entry.unwrap().path());
        let mut fitting = files.filter(|path| path.extension().is_some_and(|found| found == extension));
        let found = fitting.next();
        assert_eq!(fitting.next(), None, "one field has one .{extension}");
        found
    }

    /// The process that the lock names.
    pub(crate) fn owner(&self) -> Option<u32> {
        fs::read_to_string(self.file("lock")?).ok()?.trim().parse().ok()
    }

    /// A connection to the owner, after its greeting.
    pub(crate) fn guest(&self) -> Guest {
        Guest::connect(&self.file("sock").expect("the owner listens"))
    }
}

/// A guest that is no `picolake`.
pub(crate) struct Guest {
    pub(crate) stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Guest {
    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut guest = Self { lines: BufReader::new(stream.try_clone().unwrap()), stream };
        let greeting = guest.next().expect("a greeting, or why there is none");
        assert!(greeting["picolake"] == 1 || greeting["error"].is_object(), "{greeting}");
        guest
    }

    /// Sends a line; whether it could be sent.
    pub(crate) fn send(&mut self, line: &str) -> bool {
        self.stream.write_all(line.as_bytes()).and_then(|()| self.stream.write_all(b"\n")).is_ok()
    }

    /// The next line, or none when the owner has closed.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("the owner does not close: {error}"),
        }
    }
}

/// A simulated board in a process of its own, behind a port that counts its links.
pub(crate) struct Board {
    process: Child,
    /// Its own link.
    pub(crate) direct: String,
    /// The link that is counted.
    pub(crate) counted: String,
    links: Arc<AtomicU32>,
}

impl Board {
    pub(crate) fn start() -> Self {
        let mut command = picolake();
        let mut process =
            command.args(["sim", "--tcp", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let direct = line.trim().strip_prefix("simulated board on ").unwrap().to_owned();
        let address = direct.strip_prefix("tcp:").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let counted = format!("tcp:{}", listener.local_addr().unwrap());
        let links = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&links);
        std::thread::spawn(move || {
            for link in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::Relaxed);
                let Ok(board) = TcpStream::connect(&address) else { return };
                let _ = (link.set_nodelay(true), board.set_nodelay(true));
                let halves = (link.try_clone().unwrap(), board.try_clone().unwrap());
                std::thread::spawn(move || carry(link, board));
                std::thread::spawn(move || carry(halves.1, halves.0));
            }
        });
        Self { process, direct, counted, links }
    }

    /// Links that were opened.
    pub(crate) fn links(&self) -> u32 {
        self.links.load(Ordering::Relaxed)
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Bytes one way; the end of one is the end of the other.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
}

/// What a command prints; it must end well.
pub(crate) fn text(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}{errors}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}
