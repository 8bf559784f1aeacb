//! Exports: a job writes a whole answer into a file, and nothing else anywhere.

use picolake::{
    field::STREAMS_MAX,
    tools::{Context, Options, Tools},
};
use picolake_tests::{
    ask::ask,
    field::{SimBoard, answer, error, in_virtual_time, tools_on},
};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tokio::time::sleep;

async fn exporting(folder: &Path, bytes_max: Option<u64>) -> (Vec<SimBoard>, Tools) {
    let options =
        Options { export_folder: Some(folder.into()), export_bytes_max: bytes_max, ..Options::default() };
    let (boards, tools) = tools_on(&["pump", "mill"], options);
    for board in tools.field().boards() {
        board.session.wait_up(Duration::from_secs(9)).await.unwrap();
        ask(&board.session, "set sample demo vibration = 1ms").await.unwrap();
    }
    sleep(Duration::from_secs(2)).await;
    (boards, tools)
}

async fn ended(tools: &Tools, job: &Value) -> Value {
    for _ in 0..10_000 {
        let status = answer(tools, "job_status", json!({"job": job["job"]})).await.remove(0);
        if status["state"] != "running" {
            return status;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("it runs for ever")
}

#[test]
fn an_export_has_every_row_and_its_name_when_it_is_whole() {
    in_virtual_time(async {
        let folder = tempfile::tempdir().unwrap();
        let (_boards, tools) = exporting(folder.path(), None).await;
        let export = json!({"table": "vibration", "select": ["_board", "_row_id", "x"], "file": "all.jsonl"});
        let job = answer(&tools, "export", export.clone()).await.remove(0);
        assert_eq!(job["state"], "running");
        assert!(!folder.path().join("all.jsonl").exists());
        let status = ended(&tools, &job).await;
        assert_eq!(
            (&status["state"], &status["boards_done"], &status["boards"]),
            (&json!("complete"), &json!(2), &json!(2))
        );
        let text = std::fs::read_to_string(folder.path().join("all.jsonl")).unwrap();
        assert_eq!(status["bytes"], text.len());
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(status["rows"], rows.len());
        assert!(rows.len() > 3500, "{} rows", rows.len());
        let steps = rows.windows(2).filter(|pair| pair[0]["_board"] == pair[1]["_board"]);
        assert!(
            steps
                .clone()
                .all(|pair| pair[0]["_row_id"].as_u64().unwrap() + 1 == pair[1]["_row_id"].as_u64().unwrap())
        );
        assert_eq!(steps.count(), rows.len() - 2);
        assert_eq!(error(&tools, "export", export).await["code"], "exists");
        let csv = json!({"sql": "SELECT state, count(*) FROM power GROUP BY state", "boards": ["pump"], "file_format": "csv"});
        let job = answer(&tools, "export", csv).await.remove(0);
        let status = ended(&tools, &job).await;
        let text = std::fs::read_to_string(folder.path().join(status["file"].as_str().unwrap())).unwrap();
        assert!(text.starts_with("state,count(*)\n"), "{text}");
        let jobs = answer(&tools, "run_command", json!({"command": "get jobs"})).await;
        assert_eq!(jobs[0].as_array().map(Vec::len), Some(2));
    });
}

#[test]
fn an_export_that_does_not_end_well_leaves_nothing() {
    in_virtual_time(async {
        let folder = tempfile::tempdir().unwrap();
        let (_boards, tools) = exporting(folder.path(), Some(60_000)).await;
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        let export = |select: &str| json!({"table": "vibration", "select": [select], "file": "x.csv"});
        let job = answer(&tools, "export", export("*")).await.remove(0);
        let status = ended(&tools, &job).await;
        assert_eq!((&status["state"], &status["failure"]["code"]), (&json!("failed"), &json!("capacity")));
        assert_eq!(files(), 0);
        let job = answer(&tools, "export", export("x")).await.remove(0);
        let cancelled = answer(&tools, "cancel_job", json!({"job": job["job"]})).await.remove(0);
        assert_eq!(cancelled["state"], "cancelled");
        sleep(Duration::from_secs(1)).await;
        assert_eq!((ended(&tools, &job).await["state"].clone(), files()), (json!("cancelled"), 0));
        for file in ["../x", "/tmp/x", "a/../../x", ""] {
            let refused = error(&tools, "export", json!({"table": "vibration", "file": file})).await;
            assert_eq!(refused["code"], "wrong_argument", "{file}");
        }
        assert_eq!(error(&tools, "export", json!({"table": "vibratio"})).await["code"], "unknown_table");
        let jobs = answer(&tools, "job_status", json!({})).await.remove(0);
        assert_eq!(jobs.as_array().map(Vec::len), Some(2), "what could not begin is no job");
        assert_eq!(files(), 0);
    });
}

#[test]
fn an_export_whose_board_goes_away_fails_and_leaves_nothing() {
    in_virtual_time(async {
        let folder = tempfile::tempdir().unwrap();
        let (boards, tools) = exporting(folder.path(), None).await;
        // So wide that the second board's rows cannot all be on their way while the first is read.
        let select: Vec<String> = (0..14).map(|n| format!("x * {n} + 0.123 AS c{n}")).collect();
        let job = answer(&tools, "export", json!({"table": "vibration", "select": select})).await.remove(0);
        boards[1].cut();
        let status = ended(&tools, &job).await;
        assert_eq!(
            (&status["state"], &status["failure"]["code"]),
            (&json!("failed"), &json!("board_offline"))
        );
        assert_eq!(status["failure"]["details"]["board"], "mill");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    });
}

#[test]
fn readers_that_are_slow_leave_a_board_room_for_a_query() {
    in_virtual_time(async {
        let folder = tempfile::tempdir().unwrap();
        let (_boards, tools) = exporting(folder.path(), None).await;
        let select: Vec<String> = (0..14).map(|n| format!("x * {n} + 0.123 AS c{n}")).collect();
        let sql = format!("SELECT {} FROM vibration", select.join(", "));
        let open = async || tools.stream_query("demo", &sql, Context::default()).await;
        let mut streams = Vec::new();
        for _ in 0..STREAMS_MAX {
            streams.push(open().await.unwrap());
        }
        let refused = open().await.unwrap_err();
        assert_eq!((refused.code, &refused.details["board"]), ("busy", &json!("mill")));
        let export = error(&tools, "export", json!({"table": "vibration", "select": select})).await;
        assert_eq!(export["code"], "busy");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let few = answer(&tools, "query", json!({"table": "vibration", "select": ["x"], "limit": 2})).await;
        assert_eq!(few[0].as_array().map(Vec::len), Some(2), "{few:?}");
        streams.pop();
        let mut last = open().await.unwrap();
        let mut rows = 0;
        while let Some(batch) = last.next().await.unwrap() {
            rows += batch.row_count;
        }
        assert!(rows > 3500, "{rows} rows");
        open().await.expect("what was read to its end takes no turn");
    });
}

/// A disk of its own, so small that it is soon full.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// None where this user must not mount one.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(folder.path())
            .output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{:?} is still mounted", self.0.path());
    }
}

#[test]
fn an_export_that_fills_the_disk_fails_with_the_reason_and_leaves_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        picolake_tests::clients::skip("small disk", "this user cannot mount one");
        return;
    };
    in_virtual_time(async {
        let (_boards, tools) = exporting(disk.0.path(), None).await;
        let job = answer(&tools, "export", json!({"table": "vibration", "file": "x.csv"})).await.remove(0);
        let status = ended(&tools, &job).await;
        assert_eq!(
            (&status["state"], &status["failure"]["code"]),
            (&json!("failed"), &json!("export_failed"))
        );
        let failure = status["failure"].to_string();
        assert!(failure.contains("the disk is full") && failure.contains("make room"), "{failure}");
        assert_eq!(std::fs::read_dir(disk.0.path()).unwrap().count(), 0);
        // There is room again for what fits.
        let few = json!({"table": "power", "select": ["voltage"], "file": "few.csv"});
        let job = answer(&tools, "export", few).await.remove(0);
        assert_eq!(ended(&tools, &job).await["state"], "complete");
    });
}
