//! A board in QEMU: the real image, its serial line on a socket and its TCP port on loopback.

use picolake::link::Address;
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

/// Names the image to boot; `cargo xtask test` builds it and sets this.
pub const IMAGE_VARIABLE: &str = "PICOLAKE_QEMU_IMAGE";
/// The port that the board listens on, inside.
const BOARD_PORT: u16 = 7000;
/// The port on which an image built for benches sends as fast as it can.
const RAW_PORT: u16 = 7001;
/// How long QEMU's monitor may take to answer.
const MONITOR_TIMEOUT: Duration = Duration::from_secs(10);

/// The image, or a line that says that the caller's tests are skipped.
pub fn image(test: &str) -> Option<PathBuf> {
    let image = std::env::var_os(IMAGE_VARIABLE).map(PathBuf::from);
    if image.is_none() {
        // Not `eprintln!`: the test runner would keep that to itself.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {test}: no QEMU image; run `cargo xtask test`, which builds one"
        );
    }
    image
}

/// A board that runs until this is dropped.
#[derive(Debug)]
pub struct Qemu {
    process: Child,
    folder: tempfile::TempDir,
    /// Its TCP link.
    pub tcp: Address,
    /// Its serial link.
    pub serial: Address,
    /// Where an image built for benches sends as fast as it can.
    pub raw_port: u16,
}

impl Qemu {
    /// Boots `image`; other boards of this process have other ids.
    pub fn boot(image: &Path) -> std::io::Result<Self> {
        static BOARDS: AtomicU8 = AtomicU8::new(1);
        let nth = BOARDS.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir()?;
        let (serial, monitor) = (folder.path().join("serial"), folder.path().join("monitor"));
        let [port, raw_port] = free_ports()?;
        let forward = |host: u16, board: u16| format!("hostfwd=tcp:127.0.0.1:{host}-:{board}");
        let process = Command::new("qemu-system-arm")
            .args(["-M", "mps2-an386", "-display", "none"])
            .args(["-semihosting-config", "enable=on,target=native"])
            .args(["-serial", &format!("unix:{},server=on,wait=off", serial.display())])
            .args(["-monitor", &format!("unix:{},server=on,wait=off", monitor.display())])
            .args(["-netdev"])
            .arg(format!("user,id=n0,{},{}", forward(port, BOARD_PORT), forward(raw_port, RAW_PORT)))
            .args(["-net", &format!("nic,netdev=n0,macaddr=52:54:00:70:1c:{nth:02x}"), "-kernel"])
            .arg(image)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let tcp = Address::Tcp(format!("127.0.0.1:{port}"));
        Ok(Self { process, folder, tcp, serial: Address::Unix(serial), raw_port })
    }

    /// Resets the board, as its reset button would.
    pub fn reset(&self) -> std::io::Result<()> {
        let mut monitor = UnixStream::connect(self.folder.path().join("monitor"))?;
        monitor.set_read_timeout(Some(MONITOR_TIMEOUT))?;
        wait_for_prompt(&mut monitor)?;
        monitor.write_all(b"system_reset\n")?;
        wait_for_prompt(&mut monitor)
    }

    /// The processor time QEMU has used.
    pub fn cpu_time(&self) -> std::io::Result<Duration> {
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

/// Reads the monitor up to its prompt; by then what was asked is done.
fn wait_for_prompt(monitor: &mut UnixStream) -> std::io::Result<()> {
    let mut heard = Vec::new();
    while !heard.ends_with(b"(qemu) ") {
        let mut byte = [0];
        monitor.read_exact(&mut byte)?;
        heard.push(byte[0]);
    }
    Ok(())
}

/// Two ports the system has just given and taken back.
fn free_ports() -> std::io::Result<[u16; 2]> {
    let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    Ok([listeners[0].local_addr()?.port(), listeners[1].local_addr()?.port()])
}
