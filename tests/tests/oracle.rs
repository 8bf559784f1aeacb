//! Generated queries over generated tables: what the engine answers is what SQLite answers.

#[path = "oracle/by_hand.rs"]
mod by_hand;
#[path = "oracle/engine.rs"]
mod engine;
#[path = "oracle/split.rs"]
mod split;

use engine::PagesEngine;
use picolake_tests::oracle::{
    Engine, Outcome, Partition, Query, Sqlite, Table, cases, compare, multiset_difference,
};
use shared::{link_test::mix, message::ErrorCode, sql};
use split::SplitEngine;
use std::{io::Write, ops::Range};

/// Pairs of a query and its answer from SQLite.
const PAIRS: u64 = 20_000;
const PAIRS_PER_TABLE: u64 = 50;
/// Tables whose rows are taken apart by a condition, in so many ways each.
const PARTITIONED_TABLES: u64 = 400;
const PARTITIONS_PER_TABLE: u64 = 5;

/// The seeds of this run; `PICOLAKE_SEED` is the one table to look at.
fn tables(all: u64) -> Range<u64> {
    match std::env::var("PICOLAKE_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a seed is a number");
            seed..seed + 1
        }
        Err(_) => 0..cases(all),
    }
}

#[derive(Debug, Default)]
struct Tally {
    same: u64,
    rows: u64,
    overflow: u64,
    capacity: u64,
    misfits: u64,
}

#[test]
fn every_query_gets_the_answer_of_sqlite() {
    let mut tally = Tally::default();
    let mut differences = Vec::new();
    for seed in tables(PAIRS / PAIRS_PER_TABLE) {
        let table = Table::of(seed);
        let sqlite = Sqlite::new(&table).expect("SQLite takes the rows");
        let mut engine = PagesEngine::new(&table);
        for index in 0..PAIRS_PER_TABLE {
            let query = Query::of(mix(seed << 16 | index), &table);
            let expected = sqlite.run(&query);
            let actual = engine.run(&query.picolake);
            match compare(&query, &expected, &actual) {
                Ok(Outcome::Same) => {
                    tally.same += 1;
                    tally.rows += expected.map_or(0, |answer| answer.rows.len() as u64);
                }
                Ok(Outcome::Overflow) => tally.overflow += 1,
                Ok(Outcome::Capacity) => tally.capacity += 1,
                Err(why) => differences.push((seed, index, why, query)),
            }
        }
        tally.misfits += engine.misfits;
    }
    let found = differences.len();
    for (seed, index, why, query) in differences.iter().take(20) {
        eprintln!("PICOLAKE_SEED={seed} query {index}: {why}\n  {}\n  {}", query.picolake, query.sqlite);
    }
    if let Some((seed, ..)) = differences.first() {
        panic!("{found} differences; the first is in:\n{}", Table::of(*seed));
    }
    let _ = writeln!(std::io::stderr(), "{tally:?}");
    let all = tally.same + tally.overflow + tally.capacity;
    assert!(tally.capacity * 20 <= all, "more than one query in twenty is too large: {tally:?}");
    assert!(tally.same < 500 || tally.rows > tally.same, "most answers have no rows: {tally:?}");
}

#[test]
fn the_parts_of_a_table_are_joined_to_the_answer_of_sqlite() {
    let mut tally = Tally::default();
    let (mut pushed, mut refused) = (0, 0);
    for seed in tables(PAIRS / PAIRS_PER_TABLE) {
        let table = Table::of(seed);
        let sqlite = Sqlite::new(&table).expect("SQLite takes the rows");
        let mut engine = SplitEngine::new(&table, seed);
        for index in 0..PAIRS_PER_TABLE {
            let query = Query::of(mix(seed << 16 | index), &table);
            let expected = sqlite.run(&query);
            match compare(&query, &expected, &engine.run(&query.picolake)) {
                Ok(Outcome::Same) => tally.same += 1,
                Ok(Outcome::Overflow) => tally.overflow += 1,
                Ok(Outcome::Capacity) => tally.capacity += 1,
                Err(why) => panic!(
                    "PICOLAKE_SEED={seed} query {index}: {why}\n  {}\n  {}\n{table}",
                    query.picolake, query.sqlite
                ),
            }
        }
        (pushed, refused) = (pushed + engine.pushed, refused + engine.refused);
    }
    let _ = writeln!(std::io::stderr(), "{tally:?}, {pushed} parts by boards, {refused} refused");
    let all = tally.same + tally.overflow + tally.capacity;
    assert!(tally.capacity * 20 <= all, "more than one query in twenty is too large: {tally:?}");
    assert!(all < 500 || pushed > all && refused * 4 < pushed, "{pushed} pushed, {refused} refused");
}

#[test]
fn groups_are_the_same_in_whatever_order_boards_answer() {
    let mut compared = 0;
    for seed in tables(PAIRS / PAIRS_PER_TABLE) {
        let table = Table::of(seed);
        let sqlite = Sqlite::new(&table).expect("SQLite takes the rows");
        let mut engine = SplitEngine::new(&table, seed);
        engine.reverse();
        for index in 0..PAIRS_PER_TABLE {
            let query = Query::of(mix(seed << 16 | index), &table);
            // Which row is the first of one time is a matter of order; so is which of two equal rows stays.
            let is_ordered =
                ["first", "last", "SELECT DISTINCT"].iter().any(|word| query.picolake.contains(word));
            if !query.picolake.contains("GROUP BY") || is_ordered {
                continue;
            }
            let expected = sqlite.run(&query);
            let same = compare(&query, &expected, &engine.run(&query.picolake));
            assert!(
                same.is_ok(),
                "PICOLAKE_SEED={seed} query {index}: {same:?}\n  {}\n{table}",
                query.picolake
            );
            compared += 1;
        }
    }
    assert!(compared > 200 || std::env::var("PICOLAKE_SEED").is_ok(), "{compared}");
}

#[test]
fn a_condition_takes_the_rows_of_a_table_apart() {
    for seed in tables(PARTITIONED_TABLES) {
        let table = Table::of(seed);
        let mut engine = PagesEngine::new(&table);
        for index in 0..PARTITIONS_PER_TABLE {
            let partition = Partition::of(mix(seed << 16 | index | 1 << 15), &table);
            let mut run = |query: &Query| {
                engine.run(&query.picolake).unwrap_or_else(|(code, hint)| {
                    panic!("PICOLAKE_SEED={seed}: {}: {}: {hint}\n{table}", query.picolake, code.name())
                })
            };
            let whole = run(&partition.whole);
            let parts = [0, 1, 2].map(|part| run(&partition.parts[part]));
            if let Some(why) = multiset_difference(&whole, &parts) {
                panic!("PICOLAKE_SEED={seed}: {}: {why}\n{table}", partition.parts[0].picolake);
            }
        }
    }
}

#[test]
fn every_generated_query_is_one_in_both_languages() {
    let (mut overflows, mut rows) = (0, 0);
    for seed in tables(PAIRS / PAIRS_PER_TABLE) {
        let table = Table::of(seed);
        let sqlite = Sqlite::new(&table).expect("SQLite takes the rows");
        for index in 0..PAIRS_PER_TABLE {
            let query = Query::of(mix(seed << 16 | index), &table);
            if let Err(failure) = sql::parse(&query.picolake) {
                assert_eq!(failure.code, ErrorCode::Capacity, "{failure:?}\n{}", query.picolake);
            }
            match sqlite.run(&query) {
                Ok(answer) => rows += answer.rows.len(),
                Err(message) if message == "integer overflow" => overflows += 1,
                Err(message) => panic!("PICOLAKE_SEED={seed}: {message}\n{}", query.sqlite),
            }
        }
    }
    let _ = writeln!(std::io::stderr(), "{rows} rows, {overflows} overflows");
}
