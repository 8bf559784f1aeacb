//! Rows, SQL and the console of the real image in QEMU.

use picolake::board::{AnswerError, Session};
use picolake_tests::{
    ask::{ask, ask_sql},
    oracle::{Answer, Cell, Outcome, Query, Sqlite, Table, compare},
    qemu::{Qemu, image},
    sensors::{SENSORS, Sensor},
};
use shared::{
    limits::{COMMAND_BYTES_MAX, CREATED_TABLES_MAX, STACK_BYTES_BUDGET},
    link_test::mix,
    message::ErrorCode,
    time::Utc,
    value::ColumnType,
};
use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(60);
const ORACLE_QUERIES: usize = 200;

/// A session over TCP with a board that is up.
async fn session(board: &Qemu) -> Session {
    let session = Session::connect(board.tcp.clone(), rand::random());
    let up = async {
        while session.wait_up(PATIENCE).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await; // the session tries again by itself
        }
    };
    tokio::time::timeout(PATIENCE, up).await.expect("the board comes up");
    session
}

#[tokio::test]
async fn the_rows_of_every_sensor_are_those_they_must_be() {
    let Some(image) = image("sampled rows") else { return };
    let board = Qemu::boot(&image).unwrap();
    let session = session(&board).await;
    let id = session.wait_up(PATIENCE).await.unwrap().board_id.clone();
    let seed = u32::from_str_radix(&id[4..], 16).unwrap();
    let enough = "SELECT count(*) >= 300 FROM vibration";
    while ask_sql(&session, enough).await.unwrap().answer.rows != [[Cell::Bool(true)]] {
        tokio::time::sleep(Duration::from_millis(50)).await; // rows come by the board's own clock
    }
    for Sensor { table, columns, row } in SENSORS {
        let rows = ask_sql(&session, &format!("SELECT {columns} FROM {table}")).await.unwrap();
        assert!(rows.clock_set && rows.lost == 0 && !rows.answer.rows.is_empty());
        for (index, found) in (0..).zip(&rows.answer.rows) {
            assert_eq!(*found, row(seed, index), "{table} row {index}");
        }
    }
    let backwards = "SELECT count(*) FROM vibration WHERE timestamp > now()";
    assert_eq!(ask_sql(&session, backwards).await.unwrap().answer.rows, [[Cell::Int(0)]]);
}

/// A row as the object of an insert; none if it does not fit a command.
fn insert(dbms: &str, table: &Table, row: &[Cell]) -> Option<String> {
    let members = table.columns.iter().zip(row).skip(1).filter_map(|(column, cell)| {
        let value = match cell {
            Cell::Null => return None,
            Cell::Bool(v) => v.to_string(),
            Cell::Int(v) => v.to_string(),
            Cell::Float(v) => format!("{v:?}"),
            Cell::Float32(v) => format!("{v:?}"),
            Cell::Timestamp(v) => format!("\"{}\"", Utc(*v)),
            Cell::Text(v) => serde_json::to_string(v).unwrap(),
        };
        Some(format!("\"{}\":{value}", column.name))
    });
    let object = members.collect::<Vec<_>>().join(",");
    let command = format!("insert {dbms} {} {{{object}}}", Table::NAME);
    (command.len() <= COMMAND_BYTES_MAX).then_some(command)
}

/// Makes the table on the board; its rows are those that were taken, with the times that the board gave them.
async fn fill(session: &Session, dbms: &str, table: &mut Table) {
    let columns = table.columns.iter().skip(1).map(|column| {
        let kind = match column.kind {
            ColumnType::Float32 => "float32",
            ColumnType::Float64 => "float64",
            other => other.name(),
        };
        format!("{} {kind}", column.name)
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    ask(session, &format!("create table {dbms}.{} ({columns})", Table::NAME)).await.unwrap();
    let mut rows = Vec::new();
    for row in &table.rows {
        let Some(command) = insert(dbms, table, row) else { continue };
        ask(session, &command).await.unwrap_or_else(|error| panic!("{command}: {error}"));
        rows.push(row.clone());
    }
    let times = ask(session, &format!("sql {dbms} \"SELECT timestamp FROM {}\"", Table::NAME)).await.unwrap();
    assert_eq!(times.answer.rows.len(), rows.len(), "the board holds every row");
    for (row, time) in rows.iter_mut().zip(times.answer.rows) {
        row[0] = time[0].clone();
    }
    if let Some(Cell::Timestamp(last_us)) = rows.last().map(|row| row[0].clone()) {
        table.now_us = last_us + 1_500_000;
    }
    table.rows = rows;
}

/// The answer of the board as the oracle compares it.
async fn run(session: &Session, dbms: &str, sql: &str) -> Result<Answer, (ErrorCode, String)> {
    match ask(session, &format!("sql {dbms} \"{sql}\"")).await {
        Ok(rows) => Ok(rows.answer),
        Err(AnswerError::Refused { code, hint, .. }) => Err((code, hint)),
        Err(error) => panic!("{sql}: {error}"),
    }
}

#[tokio::test]
async fn the_board_answers_as_sqlite_does() {
    let Some(image) = image("oracle") else { return };
    let board = Qemu::boot(&image).unwrap();
    let session = session(&board).await;
    let per_table = ORACLE_QUERIES / CREATED_TABLES_MAX;
    let (mut same, mut capacity) = (0, 0);
    let mut seeds = (0..).filter(|seed| (30..150).contains(&Table::of(*seed).rows.len()));
    for nth in 0..CREATED_TABLES_MAX {
        let (dbms, mut table) = (format!("lab{nth}"), Table::of(seeds.next().unwrap()));
        fill(&session, &dbms, &mut table).await;
        let sqlite = Sqlite::new(&table).unwrap();
        let now = format!("TIMESTAMP '{}'", Utc(table.now_us));
        let queries = (0..).map(|index| Query::of(mix(table.seed << 16 | index), &table)).map(|query| {
            let sql = query.picolake.replace("now()", &now);
            (query, sql)
        });
        let fits = |(_, sql): &(Query, String)| sql.len() + 20 <= COMMAND_BYTES_MAX;
        for (query, sql) in queries.filter(fits).take(per_table) {
            let actual = run(&session, &dbms, &sql).await.map(|mut answer| {
                answer.columns.iter_mut().for_each(|name| *name = name.replace(&now, "now()"));
                answer
            });
            match compare(&query, &sqlite.run(&query), &actual) {
                Ok(Outcome::Same | Outcome::Overflow) => same += 1,
                Ok(Outcome::Capacity) => capacity += 1,
                Err(why) => panic!("{why}\n{sql}\n{}\n{table}", query.sqlite),
            }
        }
    }
    // What a board's memory is too small for, the gateway does.
    assert_eq!(same + capacity, ORACLE_QUERIES);
    assert!(capacity * 10 <= ORACLE_QUERIES, "{same} the same, {capacity} too large");
}

#[tokio::test]
async fn the_worst_queries_stay_within_the_stack() {
    let Some(image) = image("stack") else { return };
    let board = Qemu::boot(&image).unwrap();
    let session = session(&board).await;
    let deep = (0..14).fold("x".to_string(), |inner, _| format!("abs({inner})"));
    let text = (0..8).fold("temperature::text".to_string(), |inner, _| format!("lower({inner})"));
    let members = (0..40).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    for sql in [
        format!("SELECT {deep} FROM vibration WHERE {deep} > 0"),
        format!("SELECT {deep} % 9 AS k, count(*), stddev(y), sum(z::float) FROM vibration GROUP BY k ORDER BY 3, 2 DESC"),
        format!("SELECT *, {deep}, x::text, lower(y::text) FROM vibration WHERE z IN ({members}) OR x IS NOT NULL"),
        "SELECT DISTINCT state, round(voltage, 2), upper(state) FROM power ORDER BY 1, 2 DESC LIMIT 50".into(),
        "SELECT state, avg(voltage), range(current), count(DISTINCT voltage) FROM power GROUP BY state HAVING count(*) > 0".into(),
        format!("SELECT max({text}), min({text}) FROM environment WHERE {text} <> 'x' GROUP BY {text} ORDER BY {text} LIMIT 5"),
        "SELECT increments(month, 1, timestamp), last(x) FROM vibration WHERE period(week, 2, now(), timestamp)".into(),
    ] {
        ask_sql(&session, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    ask(
        &session,
        r#"create table lab.wide (a text, b text, c text, d text, e text, f text, g text, h text)"#,
    )
    .await
    .unwrap();
    let text = "ü".repeat(32);
    let all = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| format!("\"{name}\":\"{text}\"")).join(",");
    ask(&session, &format!("insert lab wide {{{all}}}")).await.unwrap();
    assert_eq!(
        ask(&session, r#"sql lab "SELECT * FROM wide ORDER BY a""#).await.unwrap().answer.rows.len(),
        1
    );
    let mut console = Console::connect(&board);
    console.ask(r#"sql lab format = json "SELECT * FROM wide""#, "Statistics");
    let status = console.ask("get status where format = mcp", "link_resumes");
    let used = status.split("\"stack_bytes_used_max\":").nth(1).unwrap().split(',').next().unwrap();
    let used: u32 = used.parse().unwrap();
    assert!(used <= STACK_BYTES_BUDGET, "{used} bytes of stack were used, {STACK_BYTES_BUDGET} are allowed");
}

/// The text console on the board's second serial port.
struct Console(UnixStream);

impl Console {
    fn connect(board: &Qemu) -> Self {
        let stream = UnixStream::connect(&board.console).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// Types a line; returns what came up to the line that has `last`.
    fn ask(&mut self, line: &str, last: &str) -> String {
        writeln!(self.0, "{line}").unwrap();
        let (mut heard, mut buffer) = (Vec::new(), [0; 1024]);
        loop {
            let text = String::from_utf8_lossy(&heard).into_owned();
            if text.split_once(last).is_some_and(|(_, rest)| rest.contains('\n')) {
                return text;
            }
            match self.0.read(&mut buffer) {
                Ok(len @ 1..) => heard.extend_from_slice(&buffer[..len]),
                end => panic!("{end:?} after {text}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_can_type_commands_on_the_console() {
    let Some(image) = image("console") else { return };
    let board = Qemu::boot(&image).unwrap();
    let session = session(&board).await; // sets the clock
    let mut console = Console::connect(&board);
    let table = console.ask(r#"sql demo "SELECT count(*) AS n FROM power WHERE voltage > 0""#, "└");
    assert!(table.contains("│ n"), "{table}");
    let json = console.ask("get tables where dbms = demo and format = json", "vibration");
    assert!(json.contains(r#"[{"table":{"dbms":"demo","name":"environment"}}"#), "{json}");
    let fault = console.ask("get statsu", "did you mean");
    assert!(fault.contains("    ^") && fault.contains("`status`"), "{fault}");
    console.ask("help", "set sample");
    drop(session);
}
