//! Statements that want more than to read, that would not end, or that are too large: each is refused or cut, with a code and
//! what to do, and nothing on the disk changes.

use crate::tables::{Cells, ask, columns, packed};
use picolake::{
    fault::Fault,
    query::{
        Context,
        sqlite::{Beyond, SQL_BYTES_MAX, STATEMENTS_MAX, TableRows, run},
    },
};
use shared::value::{ColumnType, Value};
use std::time::Duration;
use tokio::{sync::RwLock, time::Instant};

/// How long a statement may go on that nobody wants any more. Milliseconds, but the machine may be busy.
const STOP_MAX: Duration = Duration::from_secs(5);
/// How long a statement may take that should be refused at once; the machine may be busy.
const REFUSAL_MAX: Duration = Duration::from_secs(20);

/// The bound of memory is that of the whole program: whoever goes beyond it does so alone.
static MEMORY: RwLock<()> = RwLock::const_new(());

const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

fn tables(name: &str) -> Option<TableRows> {
    let columns = columns(&[("timestamp", ColumnType::Timestamp), ("n", ColumnType::Int)]);
    let rows: Vec<Cells<'_>> =
        (0..3_000).map(|index| vec![Value::Timestamp(index * 1_000), Value::Int(index)]).collect();
    (name == "t").then(|| TableRows { sources: vec![packed("a", 1, 0, &columns, &rows)], columns })
}

fn within(time: Duration) -> Context {
    Context { deadline: Instant::now() + time, ..Context::default() }
}

async fn fault(sql: &str, context: &Context) -> Fault {
    let fault = match ask(sql, tables, context).await {
        Err(fault) => fault,
        Ok((_, rows)) => panic!("{sql:.200} answers {} rows", rows.len()),
    };
    assert!(!fault.message.is_empty() && !fault.suggested_action.is_empty(), "{fault:?}");
    assert!(fault.message.len() < 1_000, "{} bytes of message", fault.message.len());
    fault
}

#[tokio::test]
async fn whatever_is_not_reading_is_refused_and_no_file_appears() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stolen");
    let file = path.to_str().expect("a path");
    std::fs::write(folder.path().join("kept"), "as it was").expect("a file");
    let statements = [
        format!("ATTACH '{file}' AS x"),
        format!("ATTACH DATABASE 'file:{file}?mode=rwc' AS x"),
        "DETACH main".into(),
        "PRAGMA writable_schema = ON".into(),
        "PRAGMA table_info(t)".into(),
        "PRAGMA temp_store_directory = '/'".into(),
        "VACUUM".into(),
        format!("VACUUM INTO '{file}'"),
        "SELECT load_extension('libevil')".into(),
        "SELECT load_extension('libevil', 'init')".into(),
        format!("SELECT writefile('{file}', 'x')"),
        "SELECT readfile('/etc/passwd')".into(),
        "SELECT edit('x', 'vi')".into(),
        "SELECT fts3_tokenizer('simple')".into(),
        "SELECT fts3_tokenizer('simple', 'x')".into(),
        "SELECT sqlite_compileoption_get(1)".into(),
        "SELECT * FROM sqlite_master".into(),
        "SELECT * FROM sqlite_schema".into(),
        "SELECT * FROM main.sqlite_master".into(),
        "SELECT * FROM temp.sqlite_temp_schema".into(),
        "SELECT * FROM dbstat".into(),
        "SELECT * FROM \"table 0\"".into(),
        "SELECT * FROM pragma_table_info('t')".into(),
        "SELECT * FROM pragma_database_list".into(),
        "SELECT * FROM pragma_database_list()".into(),
        "SELECT * FROM fts5vocab('a', 'b')".into(),
        "UPDATE sqlite_master SET sql = 'x'".into(),
        "INSERT INTO t VALUES (1, 2)".into(),
        "DELETE FROM t".into(),
        "CREATE TABLE x AS SELECT * FROM t".into(),
        "CREATE VIRTUAL TABLE x USING fts5(a)".into(),
        "CREATE TEMP VIEW v AS SELECT 1".into(),
        "WITH x AS (INSERT INTO t VALUES (1) RETURNING n) SELECT * FROM x".into(),
        "WITH x AS (SELECT 1) UPDATE t SET n = 1".into(),
        "WITH x AS (SELECT 1) REPLACE INTO t SELECT * FROM x".into(),
        "SELECT * FROM (DELETE FROM t RETURNING n)".into(),
        "SELECT (INSERT INTO t VALUES (1))".into(),
        "SELECT n INTO x FROM t".into(),
        "SELECT 1; DROP TABLE t".into(),
        "SELECT 1;; SELECT 2".into(),
        format!("SELECT 1; ATTACH '{file}' AS x; --"),
        "SELECT 1 /* ; */ ; /* */ PRAGMA x".into(),
        "SELECT 1 -- \n ; DELETE FROM t".into(),
        "SELECT 1 /*! UNION SELECT 2 */".into(),
        "SELECT 1\0; DELETE FROM t".into(),
        "SELECT '\0'".into(),
        "BEGIN".into(),
        "SAVEPOINT x".into(),
        "EXPLAIN SELECT 1".into(),
        "SELECT ?".into(),
        "SELECT $1, :a, @b".into(),
        "SELECT 'a' MATCH 'b'".into(),
        "SELECT 'a' REGEXP 'b'".into(),
        "SELECT x'53514C'".into(),
        "SELECT n FROM t INDEXED BY i".into(),
        "SELECT 'open".into(),
        "SELECT \"open".into(),
        "SELECT 1 FROM".into(),
        ")".repeat(100),
    ];
    for sql in &statements {
        let begun = Instant::now();
        let fault = fault(sql, &within(REFUSAL_MAX)).await;
        let codes = ["syntax", "unsupported", "unknown_table", "unknown_column"];
        assert!(codes.contains(&fault.code), "{sql}: {fault}");
        assert!(begun.elapsed() < REFUSAL_MAX, "{sql}");
    }
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["kept"]);
    assert_eq!(std::fs::read(folder.path().join("kept")).expect("the file"), b"as it was");
}

#[tokio::test]
async fn what_is_too_large_is_refused_with_its_bound() {
    let _shared = MEMORY.read().await;
    let deep = |open: &str, close: &str, times: usize| {
        format!("SELECT {}1{}", open.repeat(times), close.repeat(times))
    };
    let statements = [
        "SELECT length(randomblob(1000000000)), (SELECT 1)".to_string(),
        "SELECT length(zeroblob(1000000000))".into(),
        "SELECT length(printf('%.*c', 1000000000, 'x'))".into(),
        "SELECT length(printf('%1000000000d', 1))".into(),
        "SELECT length(replace(printf('%.*c', 90000, 'x'), 'x', 'yyyyyyyyyy'))".into(),
        "WITH RECURSIVE c(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM c) SELECT max(length(x)) FROM c"
            .into(),
        "SELECT group_concat(printf('%.*c', 90000, 'x')) FROM t".into(),
        "SELECT json_group_array(printf('%.*c', 90000, 'x')) FROM t".into(),
        "SELECT 'a' LIKE printf('%.*c', 50000, '%')".into(),
        deep("(", ")", 60),
        deep("(", ")", 5_000),
        deep("(SELECT ", ")", 60),
        deep("abs(", ")", 400),
        deep("-", "", 3_000),
        deep("NOT ", "", 900),
        deep("CASE WHEN 1 THEN ", " END", 200),
        format!("SELECT {}", vec!["1"; 20_000].join("+")),
        format!("SELECT {}", vec!["1"; 3_000].join(",")),
        vec!["SELECT 1"; 200].join(" UNION ALL "),
        format!("SELECT 1 FROM t WHERE {}", vec!["n = 1"; 5_000].join(" OR ")),
        format!("SELECT 1 FROM {}", vec!["t"; 70].join(", ")),
        format!("SELECT 1 FROM {}", (0..40).map(|index| format!("t{index}")).collect::<Vec<_>>().join(", ")),
        format!("SELECT coalesce({})", vec!["NULL"; 500].join(", ")),
        format!("SELECT '{}'", "x".repeat(1 << 20)),
        " ".repeat(1 << 20),
        format!("SELECT {}", "(".repeat(SQL_BYTES_MAX - 7)),
        format!("SELECT 1 FROM {}t", "(".repeat(900)),
        format!("SELECT 1{}", "::int".repeat(12_000)),
        format!("SELECT 1{}", " IS NULL".repeat(8_000)),
    ];
    for sql in &statements {
        let begun = Instant::now();
        let fault = fault(sql, &within(REFUSAL_MAX)).await;
        let codes = ["capacity", "too_long", "unsupported", "syntax"];
        assert!(codes.contains(&fault.code), "{sql:.80}: {fault}");
        assert!(begun.elapsed() < REFUSAL_MAX, "{sql:.80}");
    }
    for (sql, code) in [
        (0, "unsupported"),
        (2, "capacity"),
        (4, "capacity"),
        (5, "capacity"),
        (6, "capacity"),
        (7, "unsupported"),
        (23, "too_long"),
    ] {
        assert_eq!(fault(&statements[sql], &within(REFUSAL_MAX)).await.code, code, "{:.80}", statements[sql]);
    }
}

#[tokio::test]
async fn what_does_not_end_is_cut_at_its_time_limit() {
    let _shared = MEMORY.read().await;
    for sql in [
        ENDLESS,
        "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT 1 - x FROM c) SELECT max(x) FROM c",
        "SELECT count(*) FROM t a, t b, t c, t d WHERE a.n + b.n + c.n + d.n = -1",
        "SELECT (SELECT count(*) FROM t x, t y, t z WHERE x.n < a.n) FROM t a",
        "SELECT count(*) FROM t a JOIN t b ON a.timestamp <> b.timestamp JOIN t c ON c._row_id > b._row_id",
    ] {
        let begun = Instant::now();
        let fault = fault(sql, &within(Duration::from_millis(300))).await;
        assert_eq!(fault.code, "timeout", "{sql}: {fault}");
        assert!(begun.elapsed() < STOP_MAX, "{sql}: {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn an_endless_answer_is_cut_too_and_a_slow_reader_holds_nothing_up() {
    let _shared = MEMORY.read().await;
    let sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    let beyond = Beyond::parse(sql, 0).expect("a statement");
    let mut answer = run(beyond, Vec::new(), &within(Duration::from_millis(300))).await.expect("a beginning");
    let first = answer.next().await.expect("rows").expect("a batch");
    assert_eq!(first.len(), 100);
    tokio::time::sleep(Duration::from_millis(400)).await; // as long as the time limit and more: nobody reads
    let begun = Instant::now();
    let fault = loop {
        match answer.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("an endless answer ended"),
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault.code, "timeout");
    assert!(begun.elapsed() < STOP_MAX);
    assert_eq!(answer.next().await.expect("the end"), None);
}

#[tokio::test]
async fn what_keeps_too_much_is_cut_at_the_bound_of_memory() {
    let _alone = MEMORY.write().await;
    let sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) \
               SELECT printf('%.1000c', 'x') || x AS long FROM c ORDER BY long";
    let fault = fault(sql, &within(Duration::from_secs(120))).await;
    assert_eq!(fault.code, "capacity", "{fault}");
    assert!(fault.message.contains("KEPT_BYTES_MAX"), "{fault}");
}

#[tokio::test]
async fn a_statement_that_nobody_wants_stops_and_gives_its_turn_back() {
    let _shared = MEMORY.read().await;
    // More than may run at once, each cancelled or dropped: if one went on, the last would have no turn.
    for index in 0..2 * STATEMENTS_MAX {
        let context = within(Duration::from_secs(600));
        let asked = tokio::spawn({
            let context = context.clone();
            async move { ask(ENDLESS, tables, &context).await.map(|_| ()) }
        });
        tokio::task::yield_now().await;
        if index % 2 == 0 {
            context.cancelled.cancel();
            let begun = Instant::now();
            let ended = asked.await.expect("no panic").expect_err("it does not end");
            assert_eq!(ended.code, "cancelled");
            assert!(begun.elapsed() < STOP_MAX, "{:?}", begun.elapsed());
        } else {
            asked.abort();
            assert!(asked.await.expect_err("it was dropped").is_cancelled());
        }
    }
    let (_, rows) = ask("SELECT count(*) FROM t a JOIN t b USING (_row_id)", tables, &within(REFUSAL_MAX))
        .await
        .expect("a turn");
    assert_eq!(rows.len(), 1);
}
