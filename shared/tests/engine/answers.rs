//! What queries answer. The oracle compares far more of them with SQLite; here is what SQLite does not have.

use crate::table::{NOW_US, Table, Texts, run};
use shared::{
    engine::Progress,
    limits::{
        AGGREGATES_MAX, DISTINCT_ROWS_MAX, DISTINCT_VALUES_MAX, EXPRESSION_DEPTH_MAX, GROUPS_MAX,
        SORT_ROWS_MAX,
    },
    link_test::mix,
    value::{ColumnType, Value},
};

/// Six rows: n, x, state.
fn small() -> Table {
    let mut table =
        Table::new(&[("n", ColumnType::Int), ("x", ColumnType::Float32), ("state", ColumnType::Text)]);
    table.offset_us = NOW_US;
    let rows = [
        (Value::Int(3), Value::Float32(20.1), Value::Text("idle")),
        (Value::Int(1), Value::Null, Value::Text("running")),
        (Value::Null, Value::Float32(-0.5), Value::Text("it's")),
        (Value::Int(1), Value::Float32(20.1), Value::Null),
        (Value::Int(i64::MAX), Value::Float32(1e10), Value::Text("idle")),
        (Value::Int(-7), Value::Float32(f32::NAN), Value::Text("Über")),
    ];
    for (index, (n, x, state)) in rows.into_iter().enumerate() {
        table.insert(index as i64 * 1_000_000, &[n, x, state]);
    }
    table
}

#[test]
fn rows_come_as_they_were_inserted() {
    let table = small();
    assert_eq!(table.ask("SELECT n, state FROM t WHERE x = 20.1 OR n < 0"), ["-7 Über"]); // 20.1 is no 32-bit float
    assert_eq!(table.ask("SELECT n, x FROM t WHERE x > 20.05 AND x < 20.15"), ["3 20.1", "1 20.1"]);
    assert_eq!(table.ask("SELECT * FROM t LIMIT 1"), ["2026-11-18T05:00:00Z 3 20.1 idle"]);
    assert_eq!(table.ask("SELECT state FROM t WHERE state = 'it''s'"), ["it's"]);
    assert_eq!(table.ask("SELECT n FROM t LIMIT 2 OFFSET 3"), ["1", "9223372036854775807"]);
    assert_eq!(
        table.ask("SELECT n + 1, n / 0, -n FROM t WHERE n > 3"),
        ["9.223372036854776e18 null -9223372036854775807"]
    );
    assert_eq!(table.ask("SELECT _board, _epoch, _row_id FROM t WHERE _row_id = 4"), ["0102 77 4"]);
    assert_eq!(table.ask("SELECT n FROM t WHERE x IS NULL"), ["1", "-7"]);
}

#[test]
fn groups_and_their_aggregates() {
    let table = small();
    assert_eq!(
        table.ask("SELECT state, sum(n) FROM t GROUP BY state"),
        ["overflow at 14: integer overflow in sum(); sum floats: sum(x::float)"]
    );
    assert_eq!(
        table.ask(
            "SELECT state, count(*), range(n), first(n), last(n) FROM t GROUP BY state ORDER BY 2 DESC, state"
        ),
        [
            "idle 2 9223372036854775804 3 9223372036854775807",
            "null 1 0 1 1",
            "it's 1 null null null",
            "running 1 0 1 1",
            "Über 1 0 -7 -7"
        ]
    );
    assert_eq!(
        table.ask("SELECT count(*), avg(n), min(x), max(state) FROM t WHERE n < 5"),
        ["4 -0.5 20.1 Über"]
    );
    assert_eq!(table.ask("SELECT count(*), sum(n), max(n) FROM t WHERE n > 5 AND n < 6"), ["0 null null"]);
    assert_eq!(table.ask("SELECT count(*) FROM t"), ["6"]);
    assert_eq!(table.ask("SELECT count(DISTINCT n), count(n) FROM t"), ["4 5"]);
    assert_eq!(table.ask("SELECT DISTINCT n FROM t WHERE n < 9 ORDER BY n DESC"), ["3", "1", "-7"]);
    assert_eq!(
        table.ask("SELECT variance(n), stddev(n) FROM t WHERE n BETWEEN 1 AND 3"),
        ["1.3333333333333335 1.1547005383792517"]
    );
    assert_eq!(table.ask("SELECT max(n) - min(n) AS d FROM t WHERE n < 9 HAVING d > 3"), ["10"]);
}

#[test]
fn the_order_may_name_what_is_not_selected() {
    let table = small();
    assert_eq!(table.ask("SELECT state FROM t ORDER BY n DESC LIMIT 2"), ["idle", "idle"]);
    assert_eq!(table.ask("SELECT n FROM t ORDER BY x, _row_id LIMIT 3"), ["1", "-7", "null"]);
    assert_eq!(table.ask("SELECT n AS m FROM t WHERE n < 4 ORDER BY m LIMIT 2 OFFSET 1"), ["1", "1"]);
}

#[test]
fn time_has_buckets_and_periods_with_exact_bounds() {
    let mut table = Table::new(&[("n", ColumnType::Int)]);
    table.offset_us = NOW_US - 3_600_000_000; // the first row is an hour ago
    for minute in 0..=60 {
        table.insert(minute * 60_000_000, &[Value::Int(minute)]);
    }
    assert_eq!(
        table.ask("SELECT increments(minute, 20, timestamp) AS b, count(*), min(n) FROM t GROUP BY increments(minute, 20, timestamp)"),
        ["2026-11-18T04:00:00Z 20 0", "2026-11-18T04:20:00Z 20 20", "2026-11-18T04:40:00Z 20 40", "2026-11-18T05:00:00Z 1 60"]
    );
    assert_eq!(table.ask("SELECT increments(hour, 1, timestamp), max(n) FROM t").len(), 2);
    assert_eq!(
        table.ask("SELECT count(*), min(n), max(n) FROM t WHERE period(minute, 5, now(), timestamp)"),
        ["5 56 60"]
    );
    assert_eq!(
        table.ask("SELECT min(n), max(n) FROM t WHERE period(minute, 1, '2026-11-18T04:30:59Z', timestamp)"),
        ["30 30"]
    );
    assert_eq!(table.ask("SELECT count(*) FROM t WHERE period(day, 1, '2020-01-01', timestamp)"), ["0"]);
    assert_eq!(table.ask("SELECT n FROM t WHERE timestamp >= '2026-11-18T04:59:00Z'"), ["59", "60"]);
    assert_eq!(
        table.ask("SELECT n FROM t WHERE timestamp > now() - 2 minutes AND timestamp < now()"),
        ["59"]
    );
    assert_eq!(
        table.ask("SELECT n FROM t WHERE timestamp BETWEEN now() - interval '1 minute' AND now()"),
        ["59", "60"]
    );
}

#[test]
fn what_is_not_known_or_does_not_fit_is_refused_where_it_stands() {
    let table = small();
    for (sql, error) in [
        ("SELECT stat FROM t", "unknown_column at 7: did you mean `state`?"),
        ("SELECT n FROM t WHERE state > 5", "type at 30: text and int do not compare; cast one of them"),
        ("SELECT n FROM t WHERE state", "type at 22: this is no condition; compare it with something"),
        (
            "SELECT n, count(*) FROM t",
            "syntax at 7: this column is neither grouped by nor inside an aggregate",
        ),
        ("SELECT sum(state) FROM t", "type at 11: this aggregate takes numbers"),
        (
            "SELECT n FROM t WHERE timestamp > 'yesterday'",
            "value at 34: expected a time such as '2026-11-18T05:00:00Z'",
        ),
        ("SELECT abs(-9223372036854775808) FROM t", "overflow at 7: integer overflow in abs()"),
        ("SELECT n FROM t ORDER BY 9", "value at 25: there is no item of this number"),
        (
            "SELECT n FROM t WHERE period(day, 1, 3, timestamp)",
            "type at 37: period() ends at now() or at a moment",
        ),
        ("SELECT DISTINCT n FROM t ORDER BY x", "syntax at 34: with DISTINCT, sort by what is selected"),
    ] {
        assert_eq!(table.ask(sql), [error], "{sql}");
    }
}

#[test]
fn every_bound_is_named_when_it_is_reached_and_the_engine_goes_on() {
    let mut table = Table::new(&[("n", ColumnType::Int), ("s", ColumnType::Text)]);
    let texts: Vec<String> = (0..300).map(|n| format!("{n:03}")).collect();
    for (n, text) in texts.iter().enumerate() {
        table.insert(n as i64, &[Value::Int(n as i64), Value::Text(text)]);
    }
    let many_texts = format!("SELECT length(lower('{0}')), length(lower('{0}')) FROM t", "x".repeat(200));
    let sums: Vec<String> = (0..=AGGREGATES_MAX).map(|n| format!("sum(n + {n})")).collect();
    let many_sums = format!("SELECT {} FROM t", sums.join(" + "));
    let many_quotes = format!("SELECT n FROM t WHERE s = '{}'", "it''s ".repeat(150));
    for (sql, bound) in [
        ("SELECT n, count(*) FROM t GROUP BY n", "GROUPS_MAX"),
        ("SELECT s, count(*) FROM t GROUP BY s", "WORKSPACE_BYTES"),
        ("SELECT n FROM t ORDER BY n", "SORT_ROWS_MAX"),
        ("SELECT s, n FROM t ORDER BY s", "WORKSPACE_BYTES"),
        ("SELECT DISTINCT n FROM t", "DISTINCT_ROWS_MAX"),
        ("SELECT count(DISTINCT n) FROM t", "DISTINCT_VALUES_MAX"),
        (&many_texts, "EXPRESSION_TEXT_BYTES_MAX"),
        (&many_sums, "AGGREGATES_MAX"),
        (&many_quotes, "QUERY_TEXT_BYTES_MAX"),
    ] {
        let failure = table.answer(sql).unwrap_err();
        assert_eq!(failure.code.name(), "capacity", "{sql}: {failure:?}");
        assert!(failure.hint.starts_with(bound), "{sql}: {failure:?}");
        assert_eq!(table.ask("SELECT max(n) FROM t"), ["299"]);
    }
    let at_bound = |sql: String, max: usize| assert_eq!(table.ask(&sql).len(), max, "{sql}");
    at_bound(format!("SELECT n, count(*) FROM t WHERE n < {GROUPS_MAX} GROUP BY n"), GROUPS_MAX);
    at_bound(format!("SELECT n FROM t WHERE n < {SORT_ROWS_MAX} ORDER BY n DESC"), SORT_ROWS_MAX);
    at_bound(format!("SELECT DISTINCT n FROM t WHERE n < {DISTINCT_ROWS_MAX}"), DISTINCT_ROWS_MAX);
    assert_eq!(
        table.ask(&format!("SELECT count(DISTINCT n) FROM t WHERE n < {DISTINCT_VALUES_MAX}")),
        [DISTINCT_VALUES_MAX.to_string()]
    );
    // With a LIMIT only the first are kept, however many there are.
    assert_eq!(table.ask("SELECT n FROM t ORDER BY n DESC LIMIT 3"), ["299", "298", "297"]);
}

#[test]
fn rows_that_go_while_they_are_read_are_counted() {
    let mut table = Table::new(&[("n", ColumnType::Int)]);
    for n in 0..3_000 {
        table.insert(n, &[Value::Int(shared::link_test::mix(n as u64).cast_signed())]);
    }
    for sql in ["SELECT n FROM t", "SELECT count(n) FROM t"] {
        let mut query = table.open(sql, NOW_US).unwrap();
        let mut first = Vec::new();
        struct One<'a>(&'a mut Vec<i64>);
        impl shared::engine::RowSink for One<'_> {
            fn push(&mut self, cells: &[Value<'_>]) -> Result<(), shared::rowcode::RowError> {
                if let Value::Int(n) = cells[0] {
                    self.0.push(n);
                }
                Ok(())
            }
        }
        query.step(&table, &mut One(&mut first)).unwrap();
        let before = table.rows() - query.remaining().count() as u64;
        (0..4).for_each(|_| table.drop_page());
        let mut rest = Vec::new();
        run(&mut query, &table, &mut rest).unwrap();
        let lost = query.take_lost();
        assert!(lost > 0);
        let read = if sql.contains("count") {
            rest[0].parse::<u64>().unwrap()
        } else {
            first.len() as u64 + rest.len() as u64
        };
        assert_eq!(read + lost, 3_000, "{sql}: {before} were read before");
    }
}

#[test]
fn groups_gathered_apart_merge_into_those_of_the_whole() {
    let columns = [("n", ColumnType::Int), ("x", ColumnType::Float64), ("s", ColumnType::Text)];
    let sql = "SELECT s, count(*), count(x), sum(n), avg(n), min(n), max(x), range(n), first(n), last(n), \
               count(DISTINCT n), round(variance(n), 6) FROM t GROUP BY s";
    for seed in 0..50 {
        let mut tables = [(); 4].map(|()| Table::new(&columns));
        let mut whole = Table::new(&columns);
        for row in 0..mix(seed) % 300 {
            let random = mix(seed << 32 | row);
            let n =
                if random.is_multiple_of(7) { Value::Null } else { Value::Int((random >> 8) as i64 % 20) };
            let x = if random.is_multiple_of(5) {
                Value::Null
            } else {
                Value::Float64((random >> 20) as i32 as f64 / 4.0)
            };
            let s = ["a", "b", "ü", ""][(random >> 40) as usize % 4];
            let part = (row * 4 / 300) as usize; // parts follow each other
            tables[part].insert(row as i64, &[n, x, Value::Text(s)]);
            whole.insert(row as i64, &[n, x, Value::Text(s)]);
        }
        let gathered = tables.each_ref().map(|table| {
            let mut query = table.open(sql, NOW_US).unwrap();
            while !query.is_gathered() {
                query.step(table, &mut Texts(Vec::new())).unwrap();
            }
            query
        });
        let [mut first, second, mut third, fourth] = gathered;
        first.merge(&second).unwrap();
        third.merge(&fourth).unwrap();
        first.merge(&third).unwrap(); // in whatever order neighbours are joined
        let mut rows = Vec::new();
        run(&mut first, &whole, &mut rows).unwrap();
        assert_eq!(rows, whole.ask(sql), "seed {seed}");
    }
}

#[test]
fn a_stream_that_goes_on_in_another_session_gives_exactly_the_rest() {
    let mut table = Table::new(&[("n", ColumnType::Int)]);
    for n in 0..2_000 {
        table.insert(n * 1_000_000, &[Value::Int(n)]);
    }
    for sql in [
        "SELECT n FROM t WHERE n % 3 = 0 LIMIT 300 OFFSET 50",
        "SELECT n FROM t WHERE period(minute, 10, '1970-01-01T00:20:00Z', timestamp)",
        "SELECT n FROM t WHERE NOT period(minute, 10, '1970-01-01T00:20:00Z', timestamp) AND n < 700",
    ] {
        let whole = table.ask(sql);
        let mut first = table.open(sql, NOW_US).unwrap();
        let mut rows = Vec::new();
        let next = loop {
            let mut sink = Texts(Vec::new());
            if let Progress::Rows(next) = first.step(&table, &mut sink).unwrap() {
                rows.append(&mut sink.0);
                if rows.len() > 40 {
                    break next;
                }
            }
        };
        let mut second = table.open(sql, NOW_US).unwrap();
        assert!(second.resume(next, table.rows(), rows.len() as u64), "{sql}");
        run(&mut second, &table, &mut rows).unwrap();
        assert_eq!(rows, whole, "{sql}");
    }
}

/// Twelve rows: i counts from 0 with a NULL at 5; x is half of it; s is a, b, c in turn; at is the row's time, or NULL.
fn dozen() -> Table {
    let columns = [
        ("i", ColumnType::Int),
        ("x", ColumnType::Float64),
        ("s", ColumnType::Text),
        ("at", ColumnType::Timestamp),
    ];
    let mut table = Table::new(&columns);
    table.offset_us = NOW_US;
    for k in 0..12_i64 {
        let known = |value| if k == 5 { Value::Null } else { value };
        let s = ["a", "b", "c"][k as usize % 3];
        let (i, at) = (known(Value::Int(k)), known(Value::Timestamp(NOW_US + k * 1_000_000)));
        table.insert(k * 1_000_000, &[i, Value::Float64(k as f64 / 2.0), Value::Text(s), at]);
    }
    table
}

#[test]
fn names_of_items_mean_what_they_mean_in_sqlite() {
    let table = dozen();
    let grouped = "SELECT (i % 3) + 1 AS g, i % 3 AS k, count(*) FROM t WHERE i >= 0 GROUP BY i % 3";
    assert_eq!(table.ask(&format!("{grouped} HAVING sum(g) > 0")), ["1 0 4", "2 1 4", "3 2 3"]);
    assert_eq!(table.ask(&format!("{grouped} ORDER BY sum(g) DESC")), ["3 2 3", "2 1 4", "1 0 4"]);
    assert_eq!(
        table.ask("SELECT sum(i) AS q, s FROM t GROUP BY s HAVING max(q) > 0"),
        ["syntax at 51: an aggregate cannot stand in another"]
    );
    assert_eq!(
        table.ask("SELECT sum(i) AS i, s FROM t GROUP BY s ORDER BY max(i)"),
        ["18 a", "22 b", "21 c"]
    );
    assert_eq!(table.ask("SELECT -i AS i FROM t ORDER BY i + 0 LIMIT 3"), ["null", "0", "-1"]);
    assert_eq!(table.ask("SELECT -i AS i FROM t ORDER BY i LIMIT 3"), ["null", "-11", "-10"]);
}

#[test]
fn a_period_of_any_column_leaves_unknown_what_is_null() {
    let table = dozen();
    let count = |condition: &str| table.ask(&format!("SELECT count(*) FROM t WHERE {condition}"));
    assert_eq!(count("NOT period(second, 3, '2020-01-01', at)"), ["11"]);
    assert_eq!(count("NOT period(second, 3, '2030-01-01', at)"), ["8"]);
    assert_eq!(count("period(second, 3, '2030-01-01', at) IS NULL"), ["1"]);
    let two = "period(second, 3, '2030-01-01', at) OR period(second, 2, '2026-11-18T05:00:03Z', timestamp)";
    assert_eq!(count(two), ["5"]);
    assert_eq!(count("period(second, 2, now() + 4 seconds, timestamp)"), ["2"]);
}

#[test]
fn two_weeks_are_fourteen_days() {
    let mut table = Table::new(&[("age", ColumnType::Int)]);
    let (day_us, first_us) = (86_400_000_000, NOW_US - 20 * 86_400_000_000);
    table.offset_us = first_us;
    for age in (0..=20).rev() {
        table.insert((20 - age) * day_us, &[Value::Int(age)]);
    }
    let covered = |period: &str| {
        table.ask(&format!("SELECT count(*), max(age) FROM t WHERE period({period}, now(), timestamp)"))
    };
    assert_eq!(covered("week, 2"), ["14 13"]); // the row exactly fourteen days before the last is not in them
    assert_eq!(covered("day, 14"), ["14 13"]);
    assert_eq!(covered("week, 1"), ["7 6"]);
    assert_eq!(covered("month, 1"), ["21 20"]);
}

#[test]
fn numbers_and_moments_at_their_ends_do_what_sqlite_does_or_say_so() {
    let table = dozen();
    for (sql, answer) in [
        ("SELECT sum(x * 0 + 1e308) FROM t", "null"),
        ("SELECT sum(x * 0 + 1e308) > 1e308 FROM t", "true"),
        ("SELECT (1e308 * 10)::text FROM t LIMIT 1", "Inf"),
        ("SELECT round(0.49999999999999994) FROM t LIMIT 1", "1.0"),
        ("SELECT 3 days FROM t", "type at 7: an interval only moves a moment: now() - 3 days"),
        (
            "SELECT i FROM t ORDER BY interval '3 hours'",
            "type at 25: an interval only moves a moment: now() - 3 days",
        ),
        (
            "SELECT increments(day, 1, timestamp - 1794978000000000 - 9223372036854775807) FROM t LIMIT 1",
            "overflow at 7: the moment is outside the calendar",
        ),
        (
            "SELECT increments(month, 1, timestamp - 1794978000000000 - 9000000000000000000) FROM t LIMIT 1",
            "overflow at 7: the moment is outside the calendar",
        ),
    ] {
        assert_eq!(table.ask(sql), [answer], "{sql}");
    }
}

#[test]
fn chains_and_names_within_names_stay_bounded() {
    let table = dozen();
    let chain = |link: &str| format!("SELECT i {} FROM t LIMIT 1", link.repeat(EXPRESSION_DEPTH_MAX - 1));
    assert_eq!(table.ask(&chain("IN (1, 2, 3, 4) ")), ["false"]);
    assert_eq!(table.ask(&chain("BETWEEN 0 AND 1 ")), ["true"]);
    let nested = |inner: &str| (0..9).fold(inner.to_string(), |inner, _| format!("abs({inner})"));
    let sql = format!("SELECT {} AS q FROM t ORDER BY {} LIMIT 1", nested("i"), nested("q"));
    assert!(table.ask(&sql)[0].contains("EXPRESSION_DEPTH_MAX"), "{:?}", table.ask(&sql));
}

#[test]
fn what_was_lost_is_told_once() {
    let mut table = Table::new(&[("n", ColumnType::Int)]);
    for n in 0..3_000 {
        table.insert(n, &[Value::Int(mix(n as u64).cast_signed())]);
    }
    let mut query = table.open("SELECT n FROM t WHERE n = 0", NOW_US).unwrap();
    let mut sink = Texts(Vec::new());
    assert_eq!(query.step(&table, &mut sink).unwrap(), Progress::Working);
    (0..6).for_each(|_| table.drop_page());
    assert_eq!(query.step(&table, &mut sink).unwrap(), Progress::Working);
    assert!(query.resume(0, 3_000, 0));
    query.skip_lost(&table);
    assert_eq!(query.lost(), table.first_row_id());
}
