//! The archive's disk full, read-only or damaged, and the file in use: `picolake serve` says so, its boards are served
//! all the same, and nothing that was stored is lost.
//!
//! A disk of a few hundred kilobytes is a tmpfs in a mount namespace of the bridge's own. Where the system allows no
//! such namespace, those tests print `skipped: why`.

use picolake::archive::Readers;
use picolake_tests::{
    program,
    row_board::{Pace, RowBoard},
    runtime,
    serving::Piped,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const PACE: Pace = Pace { pages: 1_500, burst_rows: 1 };

/// A folder with a configuration, a place for the archive, and a board.
struct Scene {
    folder: tempfile::TempDir,
    board: RowBoard,
}

impl Scene {
    fn new(name: &str) -> Self {
        let (folder, board) = (tempfile::tempdir().unwrap(), RowBoard::start(name, PACE, 7));
        let text = format!(
            "archive: {{path: disk/archive.db, sync_interval_ms: 50}}\nboards: [{{name: {name}, link: 'tcp:{}'}}]\n",
            board.address
        );
        fs::write(folder.path().join("picolake.yaml"), text).unwrap();
        fs::create_dir(folder.path().join("disk")).unwrap();
        Self { folder, board }
    }

    fn disk(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn file(&self) -> PathBuf {
        self.disk().join("archive.db")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env_remove("PICOLAKE_ARCHIVE").stderr(Stdio::null());
        command.env(runtime::VARIABLE, runtime::folder()); // each has the boards for itself
        command
    }

    fn serve(&self) -> Asking {
        let mut command = self.command(&program());
        command.args(["serve", "--stdio"]);
        Asking { server: Piped::start_command(command), calls: 0 }
    }

    /// The same after `sh` has run a line in a mount namespace of its own, in which `disk` can be mounted.
    fn serve_after(&self, line: &str) -> Asking {
        let mut command = self.command(Path::new("unshare"));
        command.args(["--map-root-user", "--mount", "sh", "-c"]);
        command.arg(format!("{line} && exec {} serve --stdio", program().display()));
        Asking { server: Piped::start_command(command), calls: 0 }
    }

    /// What `picolake archive status` and such print.
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.command(&program()).args(arguments).stderr(Stdio::piped()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }
}

/// A bridge, and what is asked of it.
struct Asking {
    server: Piped,
    calls: u64,
}

impl Asking {
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.calls += 1;
        self.server.call(self.calls, tool, arguments);
        loop {
            let answer = self.server.receive().expect("an answer");
            if answer["id"] == self.calls {
                let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
                return serde_json::from_str(text).unwrap_or_else(|_| panic!("{answer}"));
            }
        }
    }

    /// The state and the detail of a process.
    fn process(&mut self, board: &str, process: &str) -> Option<(String, String)> {
        let processes = self.call("run_command", json!({"command": "get processes"}));
        let found =
            processes.as_array().expect("rows").iter().find(|row| {
                row["board"].as_str() == Some(board) && row["process"].as_str() == Some(process)
            })?;
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_string();
        Some((text("state"), text("detail")))
    }

    /// Waits until a process is in a state; returns its detail.
    fn wait_for(&mut self, board: &str, process: &str, state: &str) -> String {
        let begun = Instant::now();
        loop {
            let found = self.process(board, process);
            match found {
                Some((now, detail)) if now == state => return detail,
                found => assert!(begun.elapsed() < PATIENCE, "{process} is {found:?}, not {state}"),
            }
            std::thread::sleep(Duration::from_millis(20)); // between two looks
        }
    }

    /// The board answers SQL.
    fn board_answers(&mut self) {
        let rows = self.call("query", json!({"sql": "SELECT count(*) AS n FROM notes", "database": "field"}));
        assert!(rows[0]["n"].as_u64().is_some_and(|n| n > 0), "{rows}");
    }
}

/// Every row of table `notes` that is stored, which must be all of `0..watermark`, once.
fn rows_stored(path: &Path) -> u64 {
    let readers = Arc::new(Readers::new(path));
    let series = readers.series_of("field", "notes").unwrap().remove(0);
    assert_eq!(series.rows_lost, 0);
    let mut next = 0;
    let mut chunks = readers.chunks(series.id, 0..series.watermark, None);
    while let Some(chunk) = chunks.next_blocking().unwrap() {
        for (_, rows) in chunk.pages() {
            assert_eq!(rows.start, next);
            next = rows.end;
        }
    }
    assert_eq!(next, series.watermark);
    next
}

/// Whether a bridge can have mounts of its own here; if not, says so.
fn has_namespaces() -> bool {
    let tried = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"])
        .stderr(Stdio::null())
        .status();
    let is_there = tried.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("skipped: this system lets no process mount a file system of its own");
    }
    is_there
}

#[test]
fn a_full_disk_is_told_and_copying_goes_on_when_there_is_room() {
    if !has_namespaces() {
        return;
    }
    let scene = Scene::new("full");
    let mut bridge = scene.serve_after("mount -t tmpfs -o size=400k tmpfs disk");
    bridge.wait_for("full", "archive field.notes", "current");
    scene.board.insert(8_000); // some 500 KB of text
    let detail = bridge.wait_for("gateway", "archive", "failing");
    assert!(detail.contains("is full") && detail.contains("max_bytes"), "{detail}");
    bridge.board_answers();
    let before = rows_told(&scene, &bridge);
    assert!(before > 0);
    let disk = scene.disk();
    inside(
        &bridge,
        Path::new("mount"),
        &["-o", "remount,size=8m", disk.to_str().unwrap()],
        disk.parent().unwrap(),
    );
    scene.board.rest();
    bridge.wait_for("gateway", "archive", "running");
    let begun = Instant::now();
    while rows_told(&scene, &bridge) < scene.board.starts()[0].counts[0].next_row_id {
        assert!(begun.elapsed() < PATIENCE, "not all is copied");
        std::thread::sleep(Duration::from_millis(20)); // between two looks
    }
}

/// Runs a program where the bridge's mounts are seen; what it prints.
fn inside(bridge: &Asking, program: &Path, arguments: &[&str], folder: &Path) -> String {
    let mut nsenter = Command::new("nsenter");
    nsenter.arg(format!("--target={}", bridge.server.id()));
    nsenter.args(["--preserve-credentials", "--user", "--mount", "sh", "-c", "cd \"$0\" && exec \"$@\""]);
    let output = nsenter.arg(folder).arg(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{nsenter:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The rows of table `notes` that the archive of a bridge with a disk of its own has: all up to the watermark.
fn rows_told(scene: &Scene, bridge: &Asking) -> u64 {
    let status = inside(bridge, &program(), &["archive", "status", "--format", "json"], scene.folder.path());
    let status: Value = serde_json::from_str(&status).unwrap();
    let all = status["series"].as_array().unwrap();
    let notes = all.iter().find(|series| series["table"] == "notes").unwrap();
    assert_eq!((&notes["rows"], &notes["rows_lost"]), (&notes["watermark"], &json!(0)), "{notes}");
    notes["rows"].as_u64().unwrap()
}

#[test]
fn a_read_only_disk_is_told_and_what_is_stored_stays() {
    if !has_namespaces() {
        return;
    }
    let scene = Scene::new("frozen");
    let mut bridge = scene.serve();
    bridge.wait_for("frozen", "archive field.notes", "current");
    drop(bridge);
    let stored = rows_stored(&scene.file());
    let bytes = fs::read(scene.file()).unwrap();
    let mut bridge = scene.serve_after("mount --bind disk disk && mount -o remount,ro,bind disk");
    let detail = bridge.wait_for("gateway", "archive", "failing");
    assert!(detail.contains("cannot be written"), "{detail}");
    bridge.board_answers();
    let (state, detail) = bridge.process("frozen", "archive field.notes").unwrap();
    assert!(state == "failing" && detail.contains("cannot be written"), "{state}: {detail}");
    drop(bridge);
    assert_eq!((fs::read(scene.file()).unwrap(), rows_stored(&scene.file())), (bytes, stored));
}

#[test]
fn a_damaged_file_is_told_and_left_as_it_is() {
    let scene = Scene::new("hurt");
    let mut bridge = scene.serve();
    scene.board.insert(2_000);
    bridge.wait_for("hurt", "archive field.notes", "current");
    bridge.server.end_input(); // it ends by itself, so that all is in the file
    bridge.server.wait();
    let good = fs::read(scene.file()).unwrap();
    let cut = good[..good.len() / 2].to_vec();
    let mut flipped = good.clone();
    flipped[4096 * 2..4096 * 2 + 64].fill(0xFF); // the head of a page of SQLite's
    let text = b"no database at all\n".repeat(500);
    for (damage, bytes) in [("cut", cut), ("flipped", flipped), ("text", text)] {
        for beside in ["-wal", "-shm"] {
            let _ = fs::remove_file(scene.disk().join(format!("archive.db{beside}")));
        }
        fs::write(scene.file(), &bytes).unwrap();
        let mut bridge = scene.serve();
        let detail = bridge.wait_for("gateway", "archive", "failing");
        assert!(detail.contains("is damaged") && detail.contains("left as it is"), "{damage}: {detail}");
        bridge.board_answers();
        drop(bridge);
        assert!(fs::read(scene.file()).unwrap() == bytes, "{damage}: it is left as it is");
    }
    let doctor = scene.says(&["doctor"]);
    assert!(doctor.contains("FAULT  archive: ") && doctor.contains("is damaged"), "{doctor}");
    let status = scene.says(&["archive", "status"]);
    assert!(status.contains("is damaged") && !status.contains("WATERMARK"), "{status}");
}

#[test]
fn a_second_bridge_says_whose_the_file_is_and_serves_its_boards() {
    let scene = Scene::new("shared");
    let mut first = scene.serve();
    first.wait_for("shared", "archive field.notes", "current");
    let mut second = scene.serve();
    let detail = second.wait_for("gateway", "archive", "failing");
    assert!(detail.contains("another picolake keeps the archive"), "{detail}");
    second.board_answers();
    drop(first);
    second.wait_for("gateway", "archive", "running");
    second.wait_for("shared", "archive field.notes", "current");
}

#[test]
fn the_status_of_an_archive_is_shown_while_it_is_written() {
    let scene = Scene::new("seen");
    assert!(scene.says(&["archive", "status"]).contains("there is no archive"));
    let mut bridge = scene.serve();
    scene.board.insert(50);
    bridge.wait_for("seen", "archive field.counters", "current");
    let table = scene.says(&["archive", "status"]);
    assert!(table.starts_with("BOARD ") && table.contains("field.counters"), "{table}");
    let status: Value =
        serde_json::from_str(&scene.says(&["archive", "status", "--format", "json"])).unwrap();
    let series = status["series"].as_array().unwrap();
    assert_eq!(series.len(), 2, "{status}");
    for series in series {
        assert_eq!(series["board_id"], scene.board.id);
        assert_eq!(series["rows"], series["watermark"]);
        assert_eq!(series["rows_lost"], 0);
    }
    assert!(scene.says(&["doctor"]).contains("ok     archive: "));
}
