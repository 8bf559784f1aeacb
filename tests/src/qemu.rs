//! A board in QEMU: the real image, its serial line on a socket and its TCP port on loopback.

use picolake::link::Address;
use std::{
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        atomic::{AtomicU8, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

/// Names the image to boot; `cargo xtask test` builds it and sets this.
pub const IMAGE_VARIABLE: &str = "PICOLAKE_QEMU_IMAGE";
/// The port that the board listens on, inside.
const BOARD_PORT: u16 = 7000;
/// The port on which an image built for benches sends as fast as it can.
const RAW_PORT: u16 = 7001;
/// What QEMU's monitor says when it is ready for a command.
const PROMPT: &[u8] = b"(qemu) ";
/// How long QEMU may take until its monitor is ready.
const PROMPT_WAIT_MAX: Duration = Duration::from_secs(30);

/// The image, or a line that says that the caller's tests are skipped.
pub fn image(test: &str) -> Option<PathBuf> {
    let image = std::env::var_os(IMAGE_VARIABLE).map(PathBuf::from);
    if image.is_none() {
        // Not `eprintln!`: the test runner would keep that to itself.
        let _ = writeln!(
            io::stderr(),
            "skipped: {test}: no QEMU image; run `cargo xtask test`, which builds one"
        );
    }
    image
}

/// A board that runs until this is dropped.
#[derive(Debug)]
pub struct Qemu {
    /// Its standard input and output are QEMU's monitor.
    process: Child,
    /// What QEMU prints, the board's log among it, as it comes.
    output: Receiver<Vec<u8>>,
    /// What it printed after its last prompt.
    printed: Vec<u8>,
    /// Its TCP link.
    pub tcp: Address,
    /// Its serial link.
    pub serial: Address,
    /// Where an image built for benches sends as fast as it can.
    pub raw_port: u16,
    /// Holds the serial link's socket.
    _folder: tempfile::TempDir,
}

impl Qemu {
    /// Boots `image`; other boards of this process have other ids. The system chooses the ports.
    pub fn boot(image: &Path) -> io::Result<Self> {
        static BOARDS: AtomicU8 = AtomicU8::new(1);
        let nth = BOARDS.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir()?;
        let serial = folder.path().join("serial");
        let forward = |port: u16| format!("hostfwd=tcp:127.0.0.1:0-:{port}");
        let mut process = Command::new("qemu-system-arm")
            .args(["-M", "mps2-an386", "-display", "none", "-monitor", "stdio"])
            .args(["-semihosting-config", "enable=on,target=native"])
            .args(["-serial", &format!("unix:{},server=on,wait=off", serial.display())])
            .args(["-netdev", &format!("user,id=n0,{},{}", forward(BOARD_PORT), forward(RAW_PORT))])
            .args(["-net", &format!("nic,netdev=n0,macaddr=52:54:00:70:1c:{nth:02x}"), "-kernel"])
            .arg(image)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = drain(process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
        let mut board = Self {
            process,
            output,
            printed: Vec::new(),
            tcp: Address::Tcp(String::new()),
            serial: Address::Unix(serial),
            raw_port: 0,
            _folder: folder,
        };
        board.wait_for_prompt()?;
        let network = board.monitor("info usernet")?;
        board.tcp = Address::Tcp(format!("127.0.0.1:{}", host_port(&network, BOARD_PORT)?));
        board.raw_port = host_port(&network, RAW_PORT)?;
        Ok(board)
    }

    /// Resets the board, as its reset button would.
    pub fn reset(&mut self) -> io::Result<()> {
        self.monitor("system_reset").map(drop)
    }

    /// Gives QEMU's monitor a command; returns what it printed, once it is done.
    fn monitor(&mut self, command: &str) -> io::Result<String> {
        let stdin = self.process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(stdin, "{command}")?;
        self.wait_for_prompt()
    }

    fn wait_for_prompt(&mut self) -> io::Result<String> {
        let until = Instant::now() + PROMPT_WAIT_MAX;
        loop {
            if let Some(at) = self.printed.windows(PROMPT.len()).position(|bytes| bytes == PROMPT) {
                let text: Vec<u8> = self.printed.drain(..at + PROMPT.len()).collect();
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.printed.extend(bytes),
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("QEMU has ended")),
                Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    /// The processor time QEMU has used.
    pub fn cpu_time(&self) -> io::Result<Duration> {
        /// Linux counts in hundredths of a second whatever the kernel's own tick is.
        const TICK: Duration = Duration::from_millis(10);
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let ticks: u32 = after_name.split(' ').skip(11).take(2).filter_map(|t| t.parse::<u32>().ok()).sum();
        Ok(TICK * ticks)
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads what QEMU prints on a thread of its own: a full pipe would stop the board in mid-log.
fn drain(mut stdout: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, output) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = stdout.read(&mut bytes) {
            if sender.send(bytes[..len].to_vec()).is_err() {
                return;
            }
        }
    });
    output
}

/// Finds the host's port in lines such as `TCP[HOST_FORWARD]  12  127.0.0.1 35097  10.0.2.15  7000  0  0`.
fn host_port(network: &str, board_port: u16) -> io::Result<u16> {
    let words = network.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let forwards = words.filter(|words| words.first() == Some(&"TCP[HOST_FORWARD]"));
    let port = |words: Vec<&str>| match words[..] {
        [_, _, _, host, _, board, ..] if board.parse() == Ok(board_port) => host.parse().ok(),
        _ => None,
    };
    forwards.into_iter().find_map(port).ok_or_else(|| io::Error::other(format!("no port in: {network}")))
}
