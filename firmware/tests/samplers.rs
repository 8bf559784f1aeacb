//! The made-up sensors: every row is known, is one its table holds, takes few bytes, and comes when it is due.

use firmware::{
    Board, Facts,
    board::{StackUse, query_memory},
    catalog::TableId,
    sample::{Cells, PeriodError, Sampler, Schedule},
    samplers::{
        environment::{self, Environment},
        power::{self, Power},
        vibration::{self, Vibration},
    },
    store::Store,
};
use shared::{
    device::{Answerer, Now, Step},
    limits::{BODY_BYTES_MAX, PAGE_BYTES, SAMPLE_PERIOD_US_MAX, SAMPLE_PERIOD_US_MIN},
    message::{self, LinkCounters, Part, Request, ResetReason},
    page::Page,
    schema::TableSpec,
    value::Value,
};

fn demo() -> (Store<'static>, [TableId; 3]) {
    let pages = Box::leak(vec![[0; PAGE_BYTES]; 60].into_boxed_slice());
    let tables = [(&environment::TABLE, 20), (&power::TABLE, 20), (&vibration::TABLE, 20)];
    let store = Store::new(pages, &tables).unwrap();
    let ids = tables.map(|(spec, _)| store.catalog().find("demo", spec.name).unwrap());
    (store, ids)
}

/// The cells of the rows from the first that is there, the time not among them.
fn assert_rows<const N: usize>(store: &Store<'_>, table: TableId, row: impl Fn(u64) -> [Value<'static>; N]) {
    let mut next = store.first_row_id(table);
    while let Some(bytes) = store.page_with(table, next) {
        let page = Page::read(bytes).unwrap();
        let mut rows = page.rows(store.catalog().table(table).unwrap().kinds());
        let mut cells = [Value::Null; 8];
        while rows.next_row(&mut cells).unwrap() {
            assert_eq!(cells[1..=N], row(next));
            next += 1;
        }
    }
    assert_eq!(next, store.next_row_id(table));
}

#[test]
fn rows_come_when_they_are_due_and_are_the_ones_that_are_known() {
    let (mut store, [environment, power, vibration]) = demo();
    let mut samplers = (Environment { seed: 1 }, Power { seed: 2 }, Vibration { seed: 3 });
    let mut schedule = Schedule::default();
    assert_eq!(schedule.due_us(), None);
    for sampler in [&mut samplers.0 as &mut dyn Sampler, &mut samplers.1, &mut samplers.2] {
        assert!(schedule.add(&store, sampler, 500));
    }
    while let Some(due_us) = schedule.due_us().filter(|due_us| *due_us < 3_600_000_000) {
        schedule.run(&mut store, due_us);
    }
    assert_eq!((schedule.rows_refused(), schedule.rows_left_out()), (0, 0));
    assert_eq!(store.next_row_id(environment), 3_600);
    assert_eq!(store.next_row_id(power), 3_600);
    assert_eq!(store.next_row_id(vibration), 360_000);
    assert_rows(&store, environment, |index| environment::row(1, index));
    assert_rows(&store, power, |index| power::row(2, index));
    assert_rows(&store, vibration, |index| vibration::row(3, index));
}

#[test]
fn a_period_can_be_changed_within_its_bounds() {
    let (mut store, [environment, power, _]) = demo();
    let mut sampler = Environment { seed: 1 };
    let mut schedule = Schedule::default();
    assert!(schedule.add(&store, &mut sampler, 0));
    assert_eq!(schedule.period_us(environment), Some(1_000_000));
    schedule.run(&mut store, 0);
    assert_eq!(schedule.due_us(), Some(1_000_000));
    assert_eq!(schedule.set_period_us(environment, 500_000, 100_000), Ok(()));
    assert_eq!((schedule.period_us(environment), schedule.due_us()), (Some(500_000), Some(600_000)));
    assert_eq!(schedule.set_period_us(power, 500_000, 0), Err(PeriodError::NoSampler));
    for out in [SAMPLE_PERIOD_US_MIN - 1, SAMPLE_PERIOD_US_MAX + 1] {
        assert_eq!(schedule.set_period_us(environment, out, 0), Err(PeriodError::OutOfBounds));
    }
}

#[test]
fn a_sampler_that_is_late_leaves_rows_out_and_counts_them() {
    let (mut store, [environment, ..]) = demo();
    let mut sampler = Environment { seed: 1 };
    let mut schedule = Schedule::default();
    assert!(schedule.add(&store, &mut sampler, 0));
    schedule.run(&mut store, 0);
    schedule.run(&mut store, 1_999_999); // late, but not by a period
    assert_eq!((schedule.rows_left_out(), schedule.due_us()), (0, Some(2_000_000)));
    schedule.run(&mut store, 3_000_000); // the row of now is the one that is left out
    assert_eq!((schedule.rows_left_out(), schedule.due_us()), (1, Some(4_000_000)));
    // Late by many periods: one row, and the next a period from now.
    schedule.run(&mut store, 9_500_000);
    assert_eq!((store.next_row_id(environment), schedule.due_us()), (4, Some(10_500_000)));
    assert_eq!((schedule.rows_left_out(), schedule.rows_refused()), (1 + 5, 0));
}

/// Makes rows that its table does not hold.
#[derive(Debug)]
struct Broken;

impl Sampler for Broken {
    fn table(&self) -> &'static TableSpec {
        &environment::TABLE
    }

    fn period_us(&self) -> u64 {
        1_000_000
    }

    fn sample(&mut self, _: u64, _: &mut Cells<'_>) {}
}

#[test]
fn rows_that_are_refused_and_rows_that_are_left_out_are_told_in_the_status() {
    let (store, _) = demo();
    let (mut sampler, mut schedule, mut queries) = (Broken, Schedule::default(), Box::new(query_memory()));
    assert!(schedule.add(&store, &mut sampler, 0));
    let facts = Facts {
        kind: "test",
        id: heapless::Vec::new(),
        epoch: 7,
        boot_count: 1,
        panic_count: 0,
        reset_reason: ResetReason::PowerOn,
        stack: StackUse::default,
    };
    let mut board = Board::new(facts, store, schedule, &mut queries);
    board.sample(0);
    board.sample(4_000_000); // two rows are refused, and those of second 2, 3 and 4 left out
    let (link, mut body) = (LinkCounters::default(), [0; BODY_BYTES_MAX]);
    let now = Now { uptime_us: 4_000_000, link: &link };
    let mut work = board.open(Request::Command("get status"), None, now).unwrap();
    assert!(matches!(board.step(&mut work, &mut body, now), Step::Part(_)));
    let Some(Part::Status(status)) = message::read(&body) else { panic!("no status") };
    assert_eq!((status.rows, status.rows_missed), (0, 2 + 3));
}

#[test]
fn a_sampler_needs_its_table() {
    let store = Store::new(&mut [], &[]).unwrap();
    let mut sampler = Power { seed: 1 };
    assert!(!Schedule::default().add(&store, &mut sampler, 0));
}

#[test]
fn what_a_sampler_makes_is_believable() {
    for index in (0..200_000).step_by(7) {
        let [Value::Float32(celsius), Value::Float32(humidity), Value::Float32(hpa)] =
            environment::row(9, index)
        else {
            panic!("not three floats")
        };
        assert!(
            (10.0..=30.0).contains(&celsius) && (20.0..=90.0).contains(&humidity),
            "{celsius} {humidity}"
        );
        assert!((990.0..=1030.0).contains(&hpa), "{hpa}");
        let [Value::Float32(volts), Value::Float32(amperes), Value::Text(state)] = power::row(9, index)
        else {
            panic!("not two floats and a text")
        };
        assert!((220.0..=240.0).contains(&volts) && (0.0..=6.0).contains(&amperes), "{volts} {amperes}");
        assert_eq!(state == "running", amperes > 1.0);
        let axes = vibration::row(9, index);
        assert!(axes.iter().all(|axis| matches!(axis, Value::Int(-2_000..=2_000))), "{axes:?}");
    }
    let states: std::collections::BTreeSet<_> =
        (0..20_000).map(|index| format!("{:?}", power::row(9, index)[2])).collect();
    assert_eq!(states.len(), 3);
    let mut cells = Cells::new();
    Environment { seed: 9 }.sample(5, &mut cells);
    assert_eq!(cells, environment::row(9, 5));
}

#[test]
fn a_row_takes_few_bytes() {
    let (mut store, tables) = demo();
    let mut samplers = (Environment { seed: 1 }, Power { seed: 2 }, Vibration { seed: 3 });
    let samplers = [&mut samplers.0 as &mut dyn Sampler, &mut samplers.1, &mut samplers.2];
    for ((table, sampler), bytes_max) in tables.into_iter().zip(samplers).zip([3.5, 4.0, 6.0]) {
        for index in 0..40_000 {
            let mut cells = Cells::new();
            sampler.sample(index, &mut cells);
            let jitter_us = shared::link_test::mix(index) % 800;
            store.insert(table, index * sampler.period_us() + jitter_us, &cells).unwrap();
        }
        let rows = store.next_row_id(table) - store.first_row_id(table);
        let bytes = (20 * PAGE_BYTES) as f64 / rows as f64;
        eprintln!("{}: {bytes:.2} B a row", sampler.table().name);
        assert!(bytes <= bytes_max, "{bytes}");
    }
}
