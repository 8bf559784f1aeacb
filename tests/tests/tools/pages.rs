//! Pages: joined they are the whole, also while rows are inserted; caps hold whatever anybody asks for.

use crate::FIELD;
use firmware::samplers::vibration;
use picolake::tools::{CHARACTERS_MAX, Context, Options, ROWS_MAX, Tools};
use picolake_tests::{
    ask::ask,
    field::{SimBoard, answer, call, error, in_virtual_time, tools_on},
};
use serde_json::{Value, json};
use shared::value::Value as Cell;
use std::time::Duration;
use tokio::time::sleep;

/// Boards whose vibration is sampled each millisecond, for this long already.
async fn fast(names: &[&str], run: Duration) -> (Vec<SimBoard>, Tools) {
    let (boards, tools) = tools_on(names, Options::default());
    for board in tools.field().boards() {
        board.session.wait_up(Duration::from_secs(9)).await.unwrap();
        ask(&board.session, "set sample demo vibration = 1ms").await.unwrap();
    }
    sleep(run).await;
    (boards, tools)
}

/// Every row of every page, and how many pages; `between` runs before each page but the first.
async fn joined(tools: &Tools, first: Value, between: Duration) -> (Vec<Value>, usize) {
    let (limit, mut arguments) = (first["limit"].clone(), first);
    let (mut rows, mut pages) = (Vec::new(), 0);
    loop {
        let items = answer(tools, "query", arguments).await;
        pages += 1;
        let page = items[0].as_array().unwrap();
        rows.extend(page.iter().cloned());
        let Some(notes) = items.get(1) else { return (rows, pages) };
        assert_eq!(notes["row_count"], page.len());
        assert_eq!(notes["rows_lost"], 0);
        match notes["next_cursor"].as_str() {
            None => {
                assert_eq!(notes["truncated"], false);
                return (rows, pages);
            }
            Some(cursor) => arguments = json!({"cursor": cursor, "limit": limit}),
        }
        sleep(between).await;
    }
}

#[test]
fn pages_joined_are_the_whole_while_rows_are_inserted() {
    in_virtual_time(async {
        let (boards, tools) = fast(&FIELD, Duration::from_millis(700)).await;
        let query =
            json!({"table": "vibration", "select": ["_board", "_row_id", "x", "y", "z"], "limit": 90});
        let (rows, pages) = joined(&tools, query, Duration::from_millis(30)).await;
        assert!(pages > 15, "{pages} pages");
        let mut at = 0;
        for board in &boards {
            let id = rows[at]["_board"].clone();
            let of_board = rows[at..].iter().take_while(|row| row["_board"] == id).count();
            assert!((600..900).contains(&of_board), "{of_board} rows of {}", board.name);
            for index in 0..of_board as u64 {
                let row = &rows[at + index as usize];
                assert_eq!(row["_row_id"], index, "no gap and no repeat");
                let made = vibration::row(board.seed, index).map(|cell| match cell {
                    Cell::Int(v) => Value::from(v),
                    other => panic!("{other:?}"),
                });
                assert_eq!([row["x"].clone(), row["y"].clone(), row["z"].clone()], made, "row {index}");
            }
            at += of_board;
        }
        assert_eq!(at, rows.len(), "by board");
    });
}

#[test]
fn limit_offset_and_filters_mean_the_same_over_pages() {
    in_virtual_time(async {
        let (_boards, tools) = fast(&FIELD, Duration::from_millis(300)).await;
        let select = "SELECT _board, _row_id FROM vibration WHERE _row_id % 3 = 0 OR _row_id % 5 = 0";
        let (whole, _) = joined(&tools, json!({"sql": select, "limit": 1000}), Duration::ZERO).await;
        for (limit, offset) in [(150, 0), (150, 95), (1, 130), (0, 0), (1000, 20)] {
            let sql = format!("{select} LIMIT {limit} OFFSET {offset}");
            let (rows, _) = joined(&tools, json!({"sql": sql, "limit": 40}), Duration::ZERO).await;
            assert!(rows.len() <= limit);
            // The first board has as many rows as it had, the others come later and may have more.
            let same = whole.iter().skip(offset).take(rows.len().min(90usize.saturating_sub(offset)));
            assert!(rows.iter().zip(same).all(|(row, whole)| row == whole), "LIMIT {limit} OFFSET {offset}");
            if limit < 1000 {
                assert_eq!(rows.len(), limit, "LIMIT {limit} OFFSET {offset}");
            }
        }
        let again = answer(&tools, "query", json!({"sql": select, "limit": 7})).await;
        let cursor = &again[1]["next_cursor"];
        let page = answer(&tools, "query", json!({"cursor": cursor, "limit": 7})).await;
        assert_eq!(
            page,
            answer(&tools, "query", json!({"cursor": cursor, "limit": 7})).await,
            "a page can be asked twice"
        );
    });
}

#[test]
fn caps_hold_whatever_the_sql_says() {
    in_virtual_time(async {
        let (_boards, tools) = fast(&["pump"], Duration::from_secs(3)).await;
        for sql in [
            "SELECT * FROM vibration LIMIT 1000000",
            "SELECT _row_id FROM vibration",
            "SELECT *, *, * FROM vibration",
        ] {
            for format in ["mcp", "json", "table"] {
                let outcome =
                    call(&tools, "query", json!({"sql": sql, "limit": 1_000_000, "format": format})).await;
                let characters: usize = outcome.items.iter().map(|item| item.chars().count()).sum();
                assert!(!outcome.is_error && characters <= CHARACTERS_MAX, "{sql} in {format}: {characters}");
                let notes: Value = serde_json::from_str(&outcome.items[1]).unwrap();
                assert!(notes["row_count"].as_u64().unwrap() <= ROWS_MAX);
                assert_eq!(notes["truncated"], true);
                assert!(notes["next_cursor"].is_string());
            }
        }
        let (rows, _) =
            joined(&tools, json!({"sql": "SELECT *, _row_id FROM vibration", "limit": 1000}), Duration::ZERO)
                .await;
        let ids: Vec<u64> = rows.iter().filter_map(|row| row["_row_id"].as_u64()).collect();
        assert!(ids.len() > 2000 && ids.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{} rows", ids.len());
        let default = answer(&tools, "query", json!({"table": "vibration"})).await;
        assert_eq!(default[0].as_array().map(Vec::len), Some(100));
    });
}

#[test]
fn a_computed_answer_is_paged_from_one_moment() {
    in_virtual_time(async {
        let (_boards, tools) = fast(&["pump"], Duration::from_secs(1)).await;
        let groups = json!({"sql": "SELECT _row_id % 50 AS k, count(*) AS n FROM vibration GROUP BY _row_id % 50", "limit": 7});
        let (rows, pages) = joined(&tools, groups, Duration::from_millis(200)).await;
        let counts: Vec<u64> = rows.iter().filter_map(|row| row["n"].as_u64()).collect();
        assert_eq!((rows.len(), pages), (50, 8));
        assert!(
            counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1,
            "of one moment: {counts:?}"
        );

        let sorted =
            json!({"table": "vibration", "select": ["_row_id"], "order_by": ["_row_id DESC"], "limit": 100});
        // A board sorts some hundred rows; the bridge sorts them all.
        let (rows, pages) = joined(&tools, sorted, Duration::from_millis(200)).await;
        let ids: Vec<u64> = rows.iter().filter_map(|row| row["_row_id"].as_u64()).collect();
        assert!(pages > 3 && ids.windows(2).all(|pair| pair[0] == pair[1] + 1), "{ids:?}");
        assert_eq!(ids.last(), Some(&0));
    });
}

#[test]
fn rows_overwritten_between_pages_are_counted() {
    in_virtual_time(async {
        let (_boards, tools) = fast(&["pump"], Duration::from_millis(500)).await;
        let query = json!({"table": "vibration", "select": ["_row_id"], "limit": 100});
        let first = answer(&tools, "query", query).await;
        sleep(Duration::from_secs(120)).await;
        let second = answer(&tools, "query", json!({"cursor": first[1]["next_cursor"]})).await;
        assert_eq!(second[0], json!([]));
        assert!(second[1]["rows_lost"].as_u64().unwrap() > 300, "{}", second[1]);
    });
}

#[test]
fn rows_given_and_rows_lost_are_all_rows_of_the_snapshot() {
    in_virtual_time(async {
        let (_boards, tools) = fast(&["pump"], Duration::from_secs(4)).await;
        let oldest = async || {
            let items =
                answer(&tools, "query", json!({"sql": "SELECT _row_id FROM vibration LIMIT 1"})).await;
            items[0][0]["_row_id"].as_u64().unwrap()
        };
        let query = json!({"table": "vibration", "select": ["_row_id"], "where": "x > -99999", "limit": 300});
        let mut items = answer(&tools, "query", query).await;
        assert_eq!(items[0][0]["_row_id"], 0);
        let (mut given, mut lost, mut last, mut pages) = (0, 0, 0, 0);
        loop {
            let ids: Vec<u64> =
                items[0].as_array().unwrap().iter().filter_map(|row| row["_row_id"].as_u64()).collect();
            assert!(
                ids.windows(2).all(|pair| pair[0] < pair[1])
                    && (pages == 0 || ids.iter().all(|id| *id > last))
            );
            given += ids.len() as u64;
            lost += items[1]["rows_lost"].as_u64().unwrap();
            last = ids.last().copied().unwrap_or(last);
            assert_eq!(given + lost, last + 1, "after {pages} pages");
            pages += 1;
            let Some(cursor) = items[1]["next_cursor"].as_str() else { break };
            let cursor = cursor.to_string();
            while pages == 2 && oldest().await < last + 200 {
                sleep(Duration::from_millis(50)).await;
            }
            items = answer(&tools, "query", json!({"cursor": cursor, "limit": 300})).await;
        }
        assert!(lost >= 199 && given > 2000, "{given} given, {lost} lost");
    });
}

#[test]
fn a_board_that_goes_away_leaves_its_part_out_and_says_so() {
    in_virtual_time(async {
        let (boards, tools) = fast(&FIELD, Duration::from_millis(400)).await;
        let query = json!({"table": "vibration", "select": ["_board"], "limit": 1000});
        let all = answer(&tools, "query", query.clone()).await;
        let ids: Vec<Value> = all[0].as_array().unwrap().iter().map(|row| row["_board"].clone()).collect();
        let (call, ()) = tokio::join!(call(&tools, "query", query.clone()), async {
            tokio::task::yield_now().await;
            boards[1].cut();
        });
        assert!(!call.is_error, "{call:?}");
        let rows: Vec<Value> = serde_json::from_str(&call.items[0]).unwrap();
        let notes: Value = serde_json::from_str(&call.items[1]).unwrap();
        assert_eq!(notes["boards"][0]["name"], "pump");
        assert!(notes["boards"][0]["missing"].as_str().unwrap().contains("board_offline"), "{notes}");
        let pump = ids.iter().find(|id| **id != ids[0]).unwrap();
        assert!(rows.iter().all(|row| row["_board"] != *pump), "its part is missing whole");
        let mut strict = query.clone();
        strict["strict"] = true.into();
        assert_eq!(error(&tools, "query", strict).await["code"], "board_offline");
        let alone = json!({"table": "vibration", "boards": ["pump"]});
        assert_eq!(error(&tools, "query", alone).await["code"], "board_offline");
        boards.iter().for_each(SimBoard::cut);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(error(&tools, "query", query).await["code"], "board_offline");
        assert_eq!(error(&tools, "list_databases", json!({})).await["code"], "board_offline");
    });
}

#[test]
fn a_board_that_goes_away_between_pages_is_named_on_every_page_behind_it() {
    in_virtual_time(async {
        let (boards, tools) = fast(&FIELD, Duration::from_millis(700)).await;
        let query = json!({"table": "vibration", "select": ["_board"], "limit": 200});
        let mut items = answer(&tools, "query", query).await;
        let first = items[0][0]["_board"].clone();
        boards[1].cut();
        let (mut pages_behind, mut is_named) = (0, false);
        while let Some(cursor) = items[1]["next_cursor"].as_str().map(str::to_string) {
            items = answer(&tools, "query", json!({"cursor": cursor, "limit": 200})).await;
            let missing =
                items[1]["boards"].as_array().into_iter().flatten().find(|board| board["name"] == "pump");
            let is_missing = missing.is_some_and(|board| board["missing"].is_string());
            assert!(is_missing || !is_named, "{}", items[1]);
            is_named |= is_missing;
            pages_behind += u32::from(is_named && items[0][0]["_board"] != first);
        }
        assert!(pages_behind >= 2, "{pages_behind} pages behind the board that is missing");
    });
}

#[test]
fn a_cancelled_call_is_cancelled_on_the_board_too() {
    in_virtual_time(async {
        let (_boards, tools) = fast(&["pump"], Duration::from_secs(2)).await;
        let context = Context::default();
        let token = context.cancelled.clone();
        let mut stream = tools.stream_query("demo", "SELECT * FROM vibration", context).await.unwrap();
        assert!(stream.next().await.unwrap().is_some());
        token.cancel();
        while let Ok(rows) = stream.next().await {
            assert!(rows.is_some(), "it does not end as if it were complete");
        }
        drop(stream);
        sleep(Duration::from_secs(1)).await;
        let status = answer(&tools, "node_status", json!({})).await;
        assert_eq!(status[0][0]["queries"], 0);
    });
}

#[test]
fn a_stream_that_is_read_slowly_counts_what_it_lost() {
    in_virtual_time(async {
        let (_boards, tools) = fast(&["pump"], Duration::from_secs(4)).await;
        // So wide that the rest cannot be on its way while nobody reads.
        let columns: Vec<String> = (0..13).map(|n| format!("x * {n} + 0.123 AS c{n}")).collect();
        let sql = format!("SELECT _row_id, {} FROM vibration", columns.join(", "));
        let mut stream = tools.stream_query("demo", &sql, Context::default()).await.unwrap();
        let (mut given, mut last) = (0, 0);
        while let Some(batch) = stream.next().await.unwrap() {
            if given == 0 {
                sleep(Duration::from_secs(20)).await;
            }
            given += batch.row_count;
            let rows: Vec<Value> = serde_json::from_str(&batch.rows).unwrap();
            last = rows.last().unwrap()["_row_id"].as_u64().unwrap();
        }
        assert!(stream.rows_lost() > 0 && given + stream.rows_lost() > last, "{given} of {last}");
    });
}

#[test]
fn a_stream_gives_every_row_once() {
    in_virtual_time(async {
        let (_boards, tools) = fast(&FIELD, Duration::from_millis(500)).await;
        let sql = "SELECT _board, _row_id FROM vibration LIMIT 1100 OFFSET 100";
        let mut stream = tools.stream_query("demo", sql, Context::default()).await.unwrap();
        let (mut rows, mut batches) = (Vec::new(), 0);
        while let Some(batch) = stream.next().await.unwrap() {
            let parsed: Vec<Value> = serde_json::from_str(&batch.rows).unwrap();
            assert_eq!(parsed.len() as u64, batch.row_count);
            rows.extend(parsed);
            batches += 1;
        }
        assert_eq!((rows.len(), batches >= 3), (1100, true));
        assert_eq!(rows[0]["_row_id"], 100);
        let steps = rows.windows(2).filter(|pair| pair[0]["_board"] == pair[1]["_board"]);
        for pair in steps {
            assert_eq!(pair[0]["_row_id"].as_u64().unwrap() + 1, pair[1]["_row_id"].as_u64().unwrap());
        }
    });
}
