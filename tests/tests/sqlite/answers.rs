//! What statements beyond the dialect answer, by hand.

use crate::tables::{Cells, ask, columns, json, packed, pages};
use picolake::query::{
    Context,
    sqlite::{Beyond, TableRows},
};
use shared::value::{
    ColumnType::{self, Bool, Float32, Int, Text, Timestamp},
    Value,
};

const SECOND_US: i64 = 1_000_000;
/// 2026-11-18T05:00:00Z
const START_US: i64 = 1_794_978_000_000_000;

const SENSORS: [(&str, ColumnType); 5] =
    [("timestamp", Timestamp), ("device", Text), ("temp", Float32), ("ok", Bool), ("n", Int)];
const LIMITS: [(&str, ColumnType); 3] = [("timestamp", Timestamp), ("device", Text), ("top", Float32)];

/// Two boards, one of them after a restart, with a row each ten seconds.
fn tables(name: &str) -> Option<TableRows> {
    let row = |index: i64| -> Cells<'static> {
        vec![
            Value::Timestamp(START_US + index * 10 * SECOND_US),
            Value::Text(["pump", "fan", "oven"][(index % 3) as usize]),
            if index % 7 == 3 { Value::Null } else { Value::Float32(20.1 + (index % 5) as f32) },
            Value::Bool(index % 2 == 0),
            Value::Int(index),
        ]
    };
    match name {
        "sensors" => {
            let columns = columns(&SENSORS);
            let rows: Vec<Cells<'_>> = (0..900).map(row).collect();
            let sources = vec![
                pages("a1", 7, 100, &columns, &rows[..400]),
                packed("a1", 8, 0, &columns, &rows[400..600]),
                pages("b2", 7, 5, &columns, &rows[600..]),
            ];
            Some(TableRows { columns, sources })
        }
        "limits" => {
            let columns = columns(&LIMITS);
            let row = |device: &'static str, top: f32| {
                vec![Value::Timestamp(START_US), Value::Text(device), Value::Float32(top)]
            };
            let sources = vec![packed("b2", 7, 0, &columns, &[row("pump", 23.5), row("fan", 30.0)])];
            Some(TableRows { columns, sources })
        }
        _ => None,
    }
}

async fn lines(sql: &str) -> Vec<String> {
    let answer = ask(sql, tables, &Context::default()).await;
    answer.unwrap_or_else(|fault| panic!("{sql}: {fault}")).1.iter().map(|row| json(row)).collect()
}

async fn kinds(sql: &str) -> Vec<(String, &'static str)> {
    let (columns, _) =
        ask(sql, tables, &Context::default()).await.unwrap_or_else(|fault| panic!("{sql}: {fault}"));
    columns.into_iter().map(|column| (column.name, column.kind.name())).collect()
}

async fn code(sql: &str) -> &'static str {
    ask(sql, tables, &Context::default()).await.expect_err(sql).code
}

#[tokio::test]
async fn joins_and_subqueries_keep_the_types_of_their_columns() {
    let sql = "SELECT s.timestamp, s.temp, s.ok, l.top FROM sensors s JOIN limits l ON l.device = s.device \
               WHERE s.temp > l.top ORDER BY s.timestamp LIMIT 2";
    let expected =
        [r#"["2026-11-18T05:01:30Z",24.1,false,23.5]"#, r#"["2026-11-18T05:06:30Z",24.1,false,23.5]"#];
    assert_eq!(lines(sql).await, expected);
    assert_eq!(
        kinds(sql).await,
        [("timestamp", "timestamp"), ("temp", "float"), ("ok", "bool"), ("top", "float")]
            .map(|(name, kind)| (name.to_string(), kind))
    );
    let sql = "WITH hot AS (SELECT device d, max(temp) AS m, max(timestamp) AS t, count(*) FROM sensors GROUP BY 1) \
               SELECT *, m > 24 FROM hot ORDER BY d";
    let expected = [
        r#"["fan",24.1,"2026-11-18T07:29:40Z",300,true]"#,
        r#"["oven",24.1,"2026-11-18T07:29:50Z",300,true]"#,
        r#"["pump",24.1,"2026-11-18T07:29:30Z",300,true]"#,
    ];
    assert_eq!(lines(sql).await, expected);
    let sql =
        "SELECT x.t FROM (SELECT timestamp AS t FROM sensors UNION SELECT timestamp FROM limits) x LIMIT 1";
    assert_eq!(lines(sql).await, [r#"["2026-11-18T05:00:00Z"]"#]);
}

#[tokio::test]
async fn windows_count_over_all_boards() {
    let sql = "SELECT n, lag(timestamp) OVER w, temp - lag(temp) OVER w FROM sensors WINDOW w AS (ORDER BY timestamp) LIMIT 2";
    assert_eq!(lines(sql).await, ["[0,null,null]", r#"[1,"2026-11-18T05:00:00Z",1.0]"#]);
    let sql = "SELECT count(*) OVER (), row_number() OVER (ORDER BY n DESC), n FROM sensors ORDER BY n DESC LIMIT 1";
    assert_eq!(lines(sql).await, ["[900,1,899]"]);
    let sql = "SELECT n, count(*) OVER (ORDER BY timestamp RANGE BETWEEN interval '1 minute' PRECEDING AND CURRENT ROW) c \
               FROM sensors ORDER BY n LIMIT 1 OFFSET 50";
    assert_eq!(lines(sql).await, ["[50,7]"]);
}

#[tokio::test]
async fn the_functions_of_the_dialect_work_beside_joins() {
    let sql = "SELECT increments(hour, 1, s.timestamp) AS h, count(*), stddev(n)::float(3), range(temp)::float(2), \
               first(s.n), last(s.n), last_at(n) FROM sensors s LEFT JOIN limits l USING (device) GROUP BY h ORDER BY h";
    let expected = [
        r#"["2026-11-18T05:00:00Z",360,104.067,4.0,0,359,"2026-11-18T05:59:50Z"]"#,
        r#"["2026-11-18T06:00:00Z",360,104.067,4.0,360,719,"2026-11-18T06:59:50Z"]"#,
        r#"["2026-11-18T07:00:00Z",180,52.106,4.0,720,899,"2026-11-18T07:29:50Z"]"#,
    ];
    assert_eq!(lines(sql).await, expected);
    // The latest row of the whole table ends the period; a condition on others does not move it.
    let sql = "SELECT count(*), min(s.n), max(n) FROM sensors s, (SELECT 1) WHERE period(minute, 1, now(), s.timestamp)";
    assert_eq!(lines(sql).await, ["[6,894,899]"]);
    let sql = "SELECT now() - 1 day, now() - timestamp, date(timestamp), timestamp || '' FROM sensors WHERE EXISTS (SELECT 1) LIMIT 1";
    let expected = r#"["2026-11-17T11:06:40Z",22000000000,"2026-11-18","2026-11-18T05:00:00Z"]"#;
    assert_eq!(lines(sql).await, [expected]);
    assert_eq!(
        kinds("SELECT increments(minute, 5, timestamp), (SELECT 1) FROM sensors").await[0].0,
        "increments(minute, 5, timestamp)"
    );
    let sql = "WITH RECURSIVE t(m) AS (SELECT TIMESTAMP '2026-11-18' UNION ALL SELECT m + interval '12 hours' FROM t LIMIT 3) SELECT m FROM t";
    let expected =
        [r#"["2026-11-18T00:00:00Z"]"#, r#"["2026-11-18T12:00:00Z"]"#, r#"["2026-11-19T00:00:00Z"]"#];
    assert_eq!(lines(sql).await, expected);
    assert_eq!(
        lines("SELECT (SELECT 7)::text || '!', '3.9'::int, CAST('2.25' AS float)").await,
        [r#"["7!",3,2.25]"#]
    );
}

#[tokio::test]
async fn a_text_beside_a_moment_is_one_or_an_error() {
    let sql = "SELECT count(*) FROM sensors s JOIN limits l USING (device) WHERE s.timestamp >= '2026-11-18T06:59:50Z'";
    assert_eq!(lines(sql).await, ["[120]"]);
    let sql = "SELECT count(*) FROM sensors, (SELECT 1) WHERE timestamp BETWEEN '2026-11-18' AND '2026-11-18T05:00:20Z'";
    assert_eq!(lines(sql).await, ["[3]"]);
    let sql = "WITH b AS (SELECT increments(hour, 1, timestamp) AS h FROM sensors) SELECT count(*) FROM b WHERE h IN ('2026-11-18T07:00:00Z')";
    assert_eq!(lines(sql).await, ["[180]"]);
    assert_eq!(code("SELECT (SELECT 1) FROM sensors WHERE timestamp > 'yesterday'").await, "value");
    assert_eq!(code("SELECT (SELECT 1) FROM sensors WHERE nosuch = 1").await, "unknown_column");
    assert_eq!(code("SELECT (SELECT 1) FROM sensors WHERE \"nosuch\" = 1").await, "unknown_column");
    assert_eq!(code("SELECT (SELECT 1) FROM nosuch").await, "unknown_table");
}

#[tokio::test]
async fn rows_have_an_identity_that_a_star_leaves_out() {
    let sql = "SELECT _board, _epoch, count(*), min(_row_id), max(_row_id) FROM sensors, (SELECT 1) GROUP BY 1, 2 ORDER BY 1, 2";
    assert_eq!(
        lines(sql).await,
        [r#"["a1",7,400,100,499]"#, r#"["a1",8,200,0,199]"#, r#"["b2",7,300,5,304]"#]
    );
    let sql =
        "SELECT count(*) FROM sensors s WHERE _row_id BETWEEN 150 AND 160 AND _board = 'a1' AND (SELECT 1)";
    assert_eq!(lines(sql).await, ["[22]"]);
    let sql = "SELECT n FROM sensors WHERE _row_id = 5 AND _board = 'b2' OR n = 3 AND (SELECT 1) ORDER BY n";
    assert_eq!(lines(sql).await, ["[3]", "[600]"]);
    assert_eq!(kinds("SELECT s.*, (SELECT 1) AS one FROM demo.sensors s").await.len(), SENSORS.len() + 1);
    assert_eq!(lines("SELECT demo.sensors.n FROM demo.sensors WHERE n IN (SELECT 4)").await, ["[4]"]);
    assert_eq!(code("SELECT rowid, (SELECT 1) FROM sensors").await, "unsupported");
}

#[test]
fn conditions_of_one_table_are_for_boards() {
    let filter = |sql: &str, table: &str, columns: &[(&str, ColumnType)]| {
        let beyond = Beyond::parse(sql, START_US).unwrap_or_else(|fault| panic!("{sql}: {fault}"));
        let found =
            beyond.tables().iter().find(|used| used.name == table).expect("the table is read").clone();
        found.filter(columns)
    };
    let sensors = |sql: &str| filter(sql, "sensors", &SENSORS);
    let sql = "SELECT l.top FROM sensors s JOIN limits l USING (device) WHERE s.timestamp > now() - 1 hour AND \
               (s.temp BETWEEN 1 AND 2.5 OR s.device IN ('a', 'it''s')) AND l.top > 3 AND s.n < l.top";
    let expected = "(\"timestamp\" > TIMESTAMP '2026-11-18T04:00:00Z') AND \
                    ((\"temp\" BETWEEN 1 AND 2.5) OR (\"device\" IN ('a', 'it''s')))";
    assert_eq!(sensors(sql).as_deref(), Some(expected));
    assert_eq!(filter(sql, "limits", &LIMITS).as_deref(), Some("(\"top\" > 3)"));
    let sql = "SELECT 1 FROM limits l LEFT JOIN sensors s ON s.device = l.device WHERE s.temp IS NULL AND l.top > 1";
    assert_eq!(sensors(sql), None, "NULLs of an outer join are no rows of the table");
    assert_eq!(filter(sql, "limits", &LIMITS).as_deref(), Some("(\"top\" > 1)"));
    for sql in [
        "SELECT 1 FROM limits l RIGHT JOIN sensors s ON s.device = l.device WHERE l.top IS NULL AND s.temp > 1",
        "SELECT 1 FROM sensors a JOIN sensors b ON a.n = b.n WHERE a.temp > 3",
        "SELECT 1 FROM sensors s, limits WHERE temp > 3",
        "SELECT (SELECT 1) FROM sensors WHERE temp > 3 AND period(day, 1, now(), timestamp)",
        "SELECT (SELECT 1) FROM sensors WHERE temp + 1 > 3 OR device > 3",
        "SELECT (SELECT 1) FROM sensors WHERE device > 3 AND nosuch = 1 AND temp > (SELECT 1)",
        "SELECT 1 FROM limits WHERE EXISTS (SELECT 1 FROM sensors WHERE top > 3)",
    ] {
        assert_eq!(sensors(sql), None, "{sql}");
    }
}
