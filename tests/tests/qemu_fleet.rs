//! One question to two boards in QEMU, one on its serial line and one over TCP, and to a simulated one.

use picolake::{
    board::Session,
    field::{Board, Field},
    link::{Address, sim::Simulation},
    tools::{Options, Tools},
};
use picolake_tests::{
    field::{answer, call},
    qemu::{Qemu, image},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long boards may take to come up, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: &str = "SELECT _board, count(*) AS n, min(_row_id) AS low, max(_row_id) AS high FROM vibration \
    WHERE _row_id < 50 GROUP BY _board";

fn board(name: &str, link: &Address) -> Board {
    Board::new(name, link.to_string(), Session::connect(link.clone(), 7), false)
}

fn field(serial: &Qemu, tcp: &Qemu) -> Field {
    let simulation = Simulation::named("third").unwrap();
    let open = move || {
        let link = simulation.connect();
        async move {
            link.map(|link| Box::new(link) as Box<dyn picolake::link::ByteStream>)
                .map_err(|error| error.to_string())
        }
    };
    Field::new([
        board("first", &serial.serial),
        board("second", &tcp.tcp),
        Board::new("third", "sim:third", Session::connect_with(open, 9), false),
    ])
}

/// Asks until every board has made its first fifty rows.
async fn fifty_rows_of_each(tools: &Tools) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let outcome = call(tools, "query", json!({"sql": ROWS, "strict": true})).await;
        if !outcome.is_error {
            let groups: Vec<Value> = serde_json::from_str(&outcome.items[0]).unwrap();
            if groups.len() == 3 && groups.iter().all(|group| group["n"] == 50) {
                return groups;
            }
        }
        assert!(begun.elapsed() < PATIENCE, "{outcome:?}");
        tokio::time::sleep(Duration::from_millis(50)).await; // the rows are made in real time
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_boards_in_qemu_and_a_simulated_one_answer_as_one_and_a_killed_one_is_named() {
    let Some(image) = image("a question to several boards") else { return };
    let (serial, tcp) = (Qemu::boot(&image).unwrap(), Qemu::boot(&image).unwrap());
    let tools = Tools::new(field(&serial, &tcp), Options::default()).unwrap();
    let groups = fifty_rows_of_each(&tools).await;
    for group in &groups {
        assert_eq!((&group["low"], &group["high"]), (&json!(0), &json!(49)), "{groups:?}");
    }
    let sum = json!({"sql": "SELECT count(*) AS n, sum(x) AS s FROM vibration WHERE _row_id < 50"});
    let whole = answer(&tools, "query", sum.clone()).await;
    let mut total = 0;
    for name in ["first", "second", "third"] {
        let mut one = sum.clone();
        one["boards"] = json!([name]);
        total += answer(&tools, "query", one).await[0][0]["s"].as_i64().unwrap();
    }
    assert_eq!(whole[0], json!([{"n": 150, "s": total}]));

    // A question that keeps the boards busy, and one of them goes in the middle of it.
    let slow = json!({"sql": "SELECT _board, _row_id, x FROM vibration ORDER BY x, y, z", "limit": 1});
    let asked = call(&tools, "query", slow);
    let killed = async {
        tokio::time::sleep(Duration::from_millis(3)).await; // any moment will do
        drop(tcp);
    };
    let (outcome, ()) = tokio::join!(asked, killed);
    assert!(!outcome.is_error, "{outcome:?}");
    let items = answer(&tools, "query", sum).await;
    assert_eq!(items[0][0]["n"], 100, "{items:?}");
    let missing = &items[1]["boards"][0];
    assert_eq!(missing["name"], "second", "{items:?}");
    assert!(
        missing["missing"]
            .as_str()
            .is_some_and(|why| why.contains("board_offline") || why.contains("timeout"))
    );
}
