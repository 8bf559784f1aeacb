//! One question to many boards: what the bridge answers is what SQLite answers over the rows of all of them.

use picolake::tools::{Context, Options, Tools};
use picolake_tests::{
    ask::{ask, ask_sql},
    field::{SimBoard, answer, error, in_virtual_time},
    oracle::{Answer, Cell, Dice, Outcome, Query, Sqlite, Table, cases, compare},
};
use serde_json::json;
use shared::{link_test::mix, message::ErrorCode, value::Value};
use std::{io::Write as _, time::Duration};
use tokio::time::sleep;

/// Questions in all; a tenth of them in every run.
const CASES: u64 = 5_000;
const CASES_PER_FIELD: u64 = 50;
const BOARDS_MAX: u64 = 20;
/// A field has no more rows: each is inserted by a command.
const ROWS_MAX: usize = 150;

/// Boards that have a table of generated rows, each some of them, and each perhaps without some of its columns.
struct Fleet {
    boards: Vec<SimBoard>,
    tools: Tools,
    /// The rows of all boards, one board behind the other.
    union: Table,
}

impl Fleet {
    async fn of(seed: u64, without_pushdown: bool) -> Self {
        let mut dice = Dice::new(mix(seed));
        let mut table = Table::of(seed);
        table.rows.truncate(ROWS_MAX);
        let count = 1 + dice.below(BOARDS_MAX);
        let boards: Vec<SimBoard> = (0..count).map(|n| SimBoard::start(&format!("b{n:02}"))).collect();
        let field = picolake::field::Field::new(boards.iter().map(|board| board.board(true)));
        let tools = Tools::new(field, Options { without_pushdown, ..Options::default() }).unwrap();
        let mut has = Vec::new();
        for board in &boards {
            // The first board has every column, so that they stand in their order.
            let columns: Vec<usize> =
                (1..table.columns.len()).filter(|_| board.name == "b00" || !dice.percent(10)).collect();
            let specs: Vec<String> = columns
                .iter()
                .map(|column| {
                    let column = &table.columns[*column];
                    let kind = match column.kind {
                        shared::value::ColumnType::Float32 => "float32",
                        kind => kind.name(),
                    };
                    format!("\"{}\" {kind}", column.name)
                })
                .collect();
            let create = format!("create table demo.{} ({}) rows = 400", Table::NAME, specs.join(", "));
            let session = &tools.field().board(&board.name).unwrap().session;
            ask(session, &create).await.unwrap_or_else(|error| panic!("{create}: {error}"));
            has.push(columns);
        }
        for row in &table.rows {
            let place = dice.below(count) as usize;
            let cells: Vec<String> = has[place]
                .iter()
                .filter(|column| !matches!(row[**column], Cell::Null))
                .map(|column| format!("\"{}\": {}", table.columns[*column].name, written(&row[*column])))
                .collect();
            let insert = format!("insert demo {} {{{}}}", Table::NAME, cells.join(", "));
            let session = &tools.field().board(&boards[place].name).unwrap().session;
            ask(session, &insert).await.unwrap_or_else(|error| panic!("{insert}: {error}"));
            sleep(Duration::from_micros(dice.pick(&[0, 0, 1, 1, 130_000]))).await;
        }
        let mut union = Table { rows: Vec::new(), ..table };
        for (board, columns) in boards.iter().zip(&has) {
            let session = &tools.field().board(&board.name).unwrap().session;
            let rows = ask_sql(session, &format!("SELECT * FROM {}", Table::NAME)).await.unwrap();
            for row in rows.answer.rows {
                let mut whole = vec![Cell::Null; union.columns.len()];
                for (column, cell) in std::iter::once(&0).chain(columns).zip(row) {
                    whole[*column] = cell;
                }
                union.rows.push(whole);
            }
        }
        Self { boards, tools, union }
    }

    async fn answer(&self, sql: &str) -> Result<Answer, (ErrorCode, String)> {
        let failed = |fault: picolake::tools::ToolError| {
            let code = match fault.code {
                "capacity" => ErrorCode::Capacity,
                "overflow" => ErrorCode::Overflow,
                _ => ErrorCode::Unsupported,
            };
            (code, fault.to_string())
        };
        let mut stream = self.tools.stream_query("demo", sql, Context::default()).await.map_err(failed)?;
        let columns = stream.columns().iter().map(|column| column.name.clone()).collect();
        let mut rows = Vec::new();
        while let Some(batch) = stream.next_batch().await.map_err(failed)? {
            stream.rows(&batch, |cells| rows.push(cells.iter().map(as_cell).collect())).map_err(failed)?;
        }
        Ok(Answer { columns, rows })
    }
}

fn written(cell: &Cell) -> String {
    match cell {
        Cell::Null => "null".into(),
        Cell::Bool(value) => value.to_string(),
        Cell::Int(value) => value.to_string(),
        Cell::Float(value) => format!("{value:?}"),
        Cell::Float32(value) => format!("{value:?}"),
        Cell::Timestamp(us) => format!("\"{}\"", shared::time::Utc(*us)),
        Cell::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
    }
}

fn as_cell(value: &Value<'_>) -> Cell {
    match *value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Bool(value),
        Value::Int(value) => Cell::Int(value),
        Value::Float32(value) => Cell::Float32(value),
        Value::Float64(value) => Cell::Float(value),
        Value::Timestamp(value) => Cell::Timestamp(value),
        Value::Text(text) => Cell::Text(text.to_string()),
    }
}

/// Asks the generated queries of a field; `now()` and row ids mean something else to each board, so none has them.
async fn compare_all(fleet: &Fleet, seed: u64, tally: &mut [u64; 3]) {
    let sqlite = Sqlite::new(&fleet.union).unwrap();
    let queries = (0..).map(|index| Query::of(mix(seed << 16 | index), &fleet.union));
    let is_fit = |query: &Query| !query.picolake.contains("_row_id") && !query.picolake.contains("now()");
    for query in queries.filter(is_fit).take(CASES_PER_FIELD as usize) {
        let expected = sqlite.run(&query);
        match compare(&query, &expected, &fleet.answer(&query.picolake).await) {
            Ok(Outcome::Same) => tally[0] += 1,
            Ok(Outcome::Overflow) => tally[1] += 1,
            Ok(Outcome::Capacity) => tally[2] += 1,
            Err(why) => panic!(
                "PICOLAKE_SEED={seed}, {} boards: {why}\n  {}\n  {}\n{}",
                fleet.boards.len(),
                query.picolake,
                query.sqlite,
                fleet.union
            ),
        }
    }
}

#[test]
fn a_question_to_many_boards_gets_the_answer_of_sqlite_over_all_rows() {
    let seeds = match std::env::var("PICOLAKE_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a seed is a number");
            seed..seed + 1
        }
        Err(_) => 0..cases(CASES / CASES_PER_FIELD),
    };
    let mut tally = [0; 3];
    for seed in seeds {
        in_virtual_time(async {
            let fleet = Fleet::of(seed, seed % 4 == 3).await;
            compare_all(&fleet, seed, &mut tally).await;
        });
    }
    let [same, overflow, capacity] = tally;
    let _ = writeln!(std::io::stderr(), "{same} the same, {overflow} overflows, {capacity} too large");
    assert!(capacity * 20 <= same, "{tally:?}");
}

/// Three boards with rows of their own, and tools on them.
async fn three() -> (Vec<SimBoard>, Tools) {
    let (boards, tools) = picolake_tests::field::tools_on(&["a", "b", "c"], Options::default());
    for (n, board) in ["a", "b", "c"].iter().enumerate() {
        let session = &tools.field().board(board).unwrap().session;
        ask(session, "create table demo.notes (level int, text text)").await.unwrap();
        for row in 0..200 {
            let insert =
                format!("insert demo notes {{\"level\": {}, \"text\": \"{board}{row}\"}}", row * 10 + n);
            ask(session, &insert).await.unwrap();
        }
    }
    (boards, tools)
}

#[test]
fn a_board_that_is_gone_is_named_and_the_others_are_joined() {
    in_virtual_time(async {
        let (boards, tools) = three().await;
        let groups = json!({"sql": "SELECT count(*) AS n, sum(level) AS s FROM notes"});
        assert_eq!(answer(&tools, "query", groups.clone()).await[0], json!([{"n": 600, "s": 597_600}]));
        boards[1].cut();
        let items = answer(&tools, "query", groups.clone()).await;
        assert_eq!(items[0], json!([{"n": 400, "s": 398_400}]));
        let named = &items[1]["boards"];
        assert_eq!(
            (&named[0]["name"], &named[1], &named[2]),
            (&json!("b"), &json!({"name": "a"}), &json!({"name": "c"}))
        );
        assert!(named[0]["missing"].as_str().is_some_and(|why| why.starts_with("board_offline: ")));
        let mut strict = groups;
        strict["strict"] = json!(true);
        assert_eq!(error(&tools, "query", strict).await["code"], "board_offline");
    });
}

#[test]
fn a_board_that_goes_in_the_middle_of_its_rows_leaves_none_of_them() {
    in_virtual_time(async {
        let (boards, tools) = three().await;
        // More rows than a board sorts, so that they come one after the other and are sorted here.
        let sorted = json!({"sql": "SELECT text FROM notes ORDER BY level DESC", "limit": 1000});
        let whole = answer(&tools, "query", sorted.clone()).await;
        assert_eq!(whole[0].as_array().unwrap().len(), 600);
        let asked = answer(&tools, "query", sorted);
        let cut = async {
            sleep(Duration::from_micros(50)).await;
            boards[2].stall();
        };
        let (items, ()) = tokio::join!(asked, cut);
        let rows = items[0].as_array().unwrap();
        if items.get(1).is_some_and(|notes| notes["boards"][0]["missing"].is_string()) {
            assert_eq!(rows.len(), 400, "{}", items[1]);
            assert!(rows.iter().all(|row| !row["text"].as_str().unwrap().starts_with('c')));
        } else {
            assert_eq!(rows.len(), 600, "all had come before the link stood still");
        }
    });
}

#[test]
fn more_groups_than_a_board_keeps_are_made_here_without_a_word() {
    in_virtual_time(async {
        let (_boards, tools) = three().await;
        let groups = json!({"sql": "SELECT level, count(*) AS n, last(text) AS t FROM notes GROUP BY level ORDER BY level", "limit": 1000});
        let items = answer(&tools, "query", groups).await;
        let rows = items[0].as_array().unwrap();
        assert_eq!(rows.len(), 600);
        assert_eq!(rows[5], json!({"level": 12, "n": 1, "t": "c1"}));
    });
}

#[test]
fn an_explanation_shows_what_each_board_is_asked_word_for_word() {
    in_virtual_time(async {
        let (_boards, tools) = three().await;
        let sql = "SELECT text, avg(level / 2.0) AS a FROM notes WHERE level > 5 AND (text LIKE 'a%' OR text = 'b1') GROUP BY text HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 3";
        let rows = answer(&tools, "explain_query", json!({"sql": sql})).await.remove(0);
        let asked: Vec<&str> = rows
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["step"] == "asked")
            .map(|row| row["detail"].as_str().unwrap())
            .collect();
        let fragment = "SELECT \"text\", sum(\"level\" / 2.0), sum_rest(\"level\" / 2.0), count(\"level\" / 2.0), count(*) \
             FROM \"notes\" WHERE \"level\" > 5 AND (\"text\" LIKE 'a%' OR \"text\" = 'b1') GROUP BY 1";
        assert_eq!(asked, [fragment; 3]);
        let here: Vec<&str> = rows
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["board"] == "(gateway)")
            .map(|row| row["step"].as_str().unwrap())
            .collect();
        assert_eq!(here, ["group", "merge", "merge", "having", "sort", "limit"]);
    });
}

#[test]
fn a_period_ends_at_the_last_row_of_the_whole_field() {
    in_virtual_time(async {
        let (_boards, tools) = three().await;
        sleep(Duration::from_secs(100)).await;
        let session = &tools.field().board("b").unwrap().session;
        ask(session, "insert demo notes {\"level\": 7, \"text\": \"last\"}").await.unwrap();
        let sql = "SELECT count(*) AS n FROM notes WHERE period(minute, 1, '2100-01-01', timestamp)";
        assert_eq!(answer(&tools, "query", json!({"sql": sql})).await[0], json!([{"n": 1}]));
        let sql = "SELECT text FROM notes WHERE period(minute, 1, '2100-01-01', timestamp)";
        assert_eq!(answer(&tools, "query", json!({"sql": sql})).await[0], json!([{"text": "last"}]));
        let sql = "SELECT count(*) AS n FROM notes WHERE period(minute, 1, '2020-01-01', timestamp)";
        assert_eq!(answer(&tools, "query", json!({"sql": sql})).await[0], json!([{"n": 0}]));
    });
}
