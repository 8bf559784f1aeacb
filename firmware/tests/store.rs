//! The row store against a queue that never forgets by itself: the same rows, the same losses, for any inserts,
//! readers and acknowledgements.

use firmware::{
    catalog::{TableError, TableId},
    store::Store,
};
use proptest::{collection::vec, prelude::*};
use shared::{
    limits::{CREATED_TABLES_MAX, CREATED_UNITS_MAX, PAGE_BYTES, TABLES_MAX, TEXT_BYTES_MAX, UNIT_BYTES_MAX},
    page::Page,
    rowcode::RowError,
    schema::{Column, ColumnSpec, TIME_COLUMN, TableSpec},
    value::{ColumnType, Value},
};
use std::collections::VecDeque;

const fn column(name: &'static str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec { name, kind, unit: "", description: "" }
}

static TABLE: TableSpec = TableSpec {
    dbms: "demo",
    name: "mixed",
    columns: &[TIME_COLUMN, column("number", ColumnType::Int), column("text", ColumnType::Text)],
};

fn store(pages: usize, budget: usize) -> (Store<'static>, TableId) {
    let pages = Box::leak(vec![[0xA5; PAGE_BYTES]; pages].into_boxed_slice());
    let store = Store::new(pages, &[(&TABLE, budget)]).unwrap();
    let table = store.catalog().find("demo", "mixed").unwrap();
    (store, table)
}

/// A row as the model keeps it.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    row_id: u64,
    time_us: i64,
    number: Option<i64>,
    text: String,
}

/// Every row from this one on that the store still has, and how many it has lost before the first.
fn read_from(store: &Store<'_>, table: TableId, row_id: u64) -> (u64, Vec<Row>) {
    let (mut next, mut lost, mut rows) = (row_id, 0, Vec::new());
    while let Some(bytes) = store.page_with(table, next) {
        let page = Page::read(bytes).expect("a page");
        assert_eq!(page.check(store.catalog().table(table).unwrap().kinds()), Ok(()));
        lost += page.first_row_id().saturating_sub(next);
        assert!(page.first_row_id() <= next || rows.is_empty(), "only the first page may begin late");
        let mut decoder = page.rows(store.catalog().table(table).unwrap().kinds());
        let mut cells = [Value::Null; 3];
        for row_id in page.first_row_id().. {
            if !decoder.next_row(&mut cells).unwrap() {
                break;
            }
            let [Value::Timestamp(time_us), number, Value::Text(text)] = cells else { panic!("{cells:?}") };
            let number = if let Value::Int(number) = number { Some(number) } else { None };
            if row_id >= next {
                rows.push(Row { row_id, time_us, number, text: text.to_string() });
            }
        }
        assert!(page.next_row_id() > next);
        next = page.next_row_id();
    }
    (lost, rows)
}

/// Pages with rows.
fn pages_held(store: &Store<'_>, table: TableId) -> usize {
    let after = |row_id| store.page_with(table, row_id).map(|bytes| Page::read(bytes).unwrap().next_row_id());
    std::iter::successors(after(0), |row_id| after(*row_id)).count()
}

#[derive(Clone, Debug)]
enum Event {
    /// Rows like this one, so much later each.
    Insert {
        rows: u16,
        step_us: u64,
        number: Option<i64>,
        text: u8,
    },
    /// A row that must be refused.
    Refused(u8),
    /// The clock runs back.
    Back(u64),
    /// A reader that wants the row at this share of all.
    Read(u16),
    Acknowledge(u16),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1_u16..400, 0_u64..2_000_000, any::<Option<i64>>(), 0_u8..20)
            .prop_map(|(rows, step_us, number, text)| Event::Insert { rows, step_us, number, text }),
        1 => (0_u8..3).prop_map(Event::Refused),
        1 => (0_u64..9_000_000).prop_map(Event::Back),
        2 => any::<u16>().prop_map(Event::Read),
        1 => any::<u16>().prop_map(Event::Acknowledge),
    ]
}

/// The rows that nobody has forgotten, and what was done to the others.
#[derive(Default)]
struct Model {
    rows: VecDeque<Row>,
    next_row_id: u64,
    acknowledged: u64,
    overwritten: u64,
    unread: u64,
    time_us: i64,
}

impl Model {
    /// The store has nothing before this row any more.
    fn forget_before(&mut self, first_row_id: u64) {
        while self.rows.front().is_some_and(|row| row.row_id < first_row_id) {
            let row = self.rows.pop_front().unwrap();
            self.overwritten += 1;
            self.unread += u64::from(row.row_id >= self.acknowledged);
        }
    }
}

fn at(share: u16, all: u64) -> u64 {
    (all + 2) * u64::from(share) / u64::from(u16::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_store_is_a_queue_that_forgets_whole_pages(budget in 2_usize..6, events in vec(event(), 1..40)) {
        let (mut store, table) = store(8, budget);
        let mut model = Model::default();
        let mut uptime_us = 0_u64;
        for event in events {
            match event {
                Event::Insert { rows, step_us, number, text } => {
                    for row in 0..rows {
                        uptime_us += step_us;
                        let number = number.map(|number| number.wrapping_add(row.into()));
                        let text = "x".repeat(text.into());
                        let cells = [number.map_or(Value::Null, Value::Int), Value::Text(&text)];
                        prop_assert_eq!(store.insert(table, uptime_us, &cells), Ok(model.next_row_id));
                        model.time_us = model.time_us.max(uptime_us as i64);
                        let row_id = model.next_row_id;
                        model.rows.push_back(Row { row_id, time_us: model.time_us, number, text });
                        model.next_row_id += 1;
                        model.forget_before(store.first_row_id(table));
                    }
                }
                Event::Refused(what) => {
                    let long = "x".repeat(TEXT_BYTES_MAX + 1);
                    let (cells, error) = match what {
                        0 => (vec![Value::Float32(1.0), Value::Null], RowError::Type),
                        1 => (vec![Value::Int(1), Value::Text(&long)], RowError::TooLong),
                        _ => (vec![Value::Int(1)], RowError::Width),
                    };
                    prop_assert_eq!(store.insert(table, uptime_us, &cells), Err(error));
                }
                Event::Back(by_us) => uptime_us = uptime_us.saturating_sub(by_us),
                Event::Read(share) => {
                    let wanted = at(share, model.next_row_id);
                    let (lost, rows) = read_from(&store, table, wanted);
                    let there: Vec<_> = model.rows.iter().filter(|row| row.row_id >= wanted).cloned().collect();
                    let first = model.rows.front().map_or(model.next_row_id, |row| row.row_id);
                    prop_assert_eq!(lost, first.saturating_sub(wanted));
                    prop_assert_eq!(rows, there);
                }
                Event::Acknowledge(share) => {
                    let next = at(share, model.next_row_id);
                    store.acknowledge(table, next);
                    model.acknowledged = model.acknowledged.max(next.min(model.next_row_id));
                }
            }
            let counts = store.counts(table).unwrap();
            prop_assert_eq!(counts.next_row_id, model.next_row_id);
            prop_assert_eq!(counts.rows_overwritten, model.overwritten);
            prop_assert_eq!(counts.rows_overwritten_unread, model.unread);
            prop_assert_eq!(counts.acknowledged_row_id, model.acknowledged);
            prop_assert_eq!(counts.first_row_id + model.rows.len() as u64, model.next_row_id);
            prop_assert_eq!(counts.first_row_id, model.overwritten);
            let pages = pages_held(&store, table);
            prop_assert!(pages <= budget && (model.overwritten == 0 || pages == budget), "{} pages", pages);
        }
    }
}

#[test]
fn a_row_that_is_refused_costs_no_page() {
    let (mut store, table) = store(2, 2);
    let mut full = 0;
    while store.first_row_id(table) == 0 {
        store.insert(table, 0, &[Value::Null, Value::Null]).unwrap();
        full += 1;
    }
    assert!(full > 1_000, "{full} rows in two pages");
    // Up to the last row of a page, a bad row changes nothing.
    for _ in 0..1_100 {
        let before = (store.counts(table), store.page_with(table, 0).map(<[u8]>::to_vec));
        assert_eq!(store.insert(table, 0, &[Value::Bool(true), Value::Null]), Err(RowError::Type));
        assert_eq!((store.counts(table), store.page_with(table, 0).map(<[u8]>::to_vec)), before);
        store.insert(table, 0, &[Value::Null, Value::Null]).unwrap();
    }
}

fn plain(name: &str, kind: ColumnType) -> Column<'_> {
    Column { name, kind, unit: "" }
}

#[test]
fn tables_are_created_within_their_bounds() {
    let (mut store, _) = store(40, 4);
    let celsius = Column { unit: "°C", ..plain("celsius", ColumnType::Float32) };
    let columns = [celsius, plain("state", ColumnType::Text)];
    let hash = store.catalog().hash();
    let id = store.create("field", "probe", &columns, None).unwrap();
    assert_ne!(store.catalog().hash(), hash);
    let table = store.catalog().table(id).unwrap();
    assert_eq!((table.dbms(), table.name(), table.width()), ("field", "probe", 3));
    assert_eq!(
        table.columns().collect::<Vec<_>>(),
        [TIME_COLUMN.column(), celsius, plain("state", ColumnType::Text)]
    );
    assert_eq!(store.insert(id, 5, &[Value::Float32(21.5), Value::Text("on")]), Ok(0));
    assert_eq!(store.create("field", "probe", &columns, None), Err(TableError::Exists));
    assert_eq!(store.create("demo", "mixed", &columns, None), Err(TableError::Exists));
    assert_eq!(store.create("field", "1st", &columns, None), Err(TableError::Name));
    assert_eq!(store.create("field", "", &columns, None), Err(TableError::Name));
    assert_eq!(store.create("field", &"n".repeat(33), &columns, None), Err(TableError::Name));
    assert_eq!(store.create("field", "x", &[plain("a b", ColumnType::Int)], None), Err(TableError::Name));
    let twice = [plain("a", ColumnType::Int), plain("a", ColumnType::Bool)];
    assert_eq!(store.create("field", "x", &twice, None), Err(TableError::Columns));
    let late = [plain("a", ColumnType::Int), plain("timestamp", ColumnType::Timestamp)];
    assert_eq!(store.create("field", "x", &late, None), Err(TableError::Columns));
    assert_eq!(
        store.create("field", "x", &[plain("timestamp", ColumnType::Int)], None),
        Err(TableError::Columns)
    );
    let unit = "µ".repeat(UNIT_BYTES_MAX / 2 + 1);
    let long_unit = [Column { unit: &unit, ..celsius }];
    let too_long = store.create("field", "x", &long_unit, None);
    assert_eq!(too_long, Err(TableError::Capacity("UNIT_BYTES_MAX", UNIT_BYTES_MAX)));
    let names: Vec<String> = (0..20).map(|index| format!("c{index}")).collect();
    let texts: Vec<_> = names.iter().map(|name| plain(name.as_str(), ColumnType::Text)).collect();
    let too_many = store.create("field", "x", &texts[..16], None);
    assert_eq!(too_many, Err(TableError::Capacity("TABLE_COLUMNS_MAX", 16)));
    let too_long = store.create("field", "x", &texts[..15], None);
    assert_eq!(too_long, Err(TableError::Capacity("PAGE_BYTES", PAGE_BYTES)));
    let too_large = store.create("field", "x", &columns, Some(1_000_000));
    assert_eq!(too_large, Err(TableError::Capacity("pages free", store.pages_free())));
    let whole = [plain("timestamp", ColumnType::Timestamp), plain("a", ColumnType::Int)];
    for name in ["b", "c", "d"] {
        let id = store.create("field", name, &whole, Some(100)).unwrap();
        assert_eq!((store.catalog().table(id).unwrap().width(), store.pages_of(id)), (2, 2));
    }
    let full = store.create("field", "e", &whole, None);
    assert_eq!(full, Err(TableError::Capacity("CREATED_TABLES_MAX", CREATED_TABLES_MAX)));
    assert_eq!(store.catalog().tables().count(), 1 + CREATED_TABLES_MAX);
}

#[test]
fn units_of_created_tables_are_kept_once_each() {
    let (mut store, _) = store(40, 4);
    let names: Vec<String> = (0..CREATED_UNITS_MAX).map(|index| format!("c{index}")).collect();
    let of = |units: std::ops::Range<usize>| -> Vec<_> {
        units.map(|index| Column { unit: &names[index], ..plain(&names[index], ColumnType::Int) }).collect()
    };
    let (some, rest) = (of(0..10), of(10..CREATED_UNITS_MAX));
    let first = store.create("field", "a", &some, None).unwrap();
    let again = store.create("field", "b", &some[5..], None).unwrap();
    let twice = [Column { unit: "%", ..plain("x", ColumnType::Int) }, Column { unit: "%", ..some[0] }];
    let last = store.create("field", "c", &[&rest[1..], &twice[..]].concat(), None).unwrap();
    let full = store.create("field", "d", &[plain("n", ColumnType::Int), rest[0]], None);
    assert_eq!(full, Err(TableError::Capacity("CREATED_UNITS_MAX", CREATED_UNITS_MAX)));
    let units = |id| -> Vec<&str> { store.catalog().table(id).unwrap().columns().map(|c| c.unit).collect() };
    assert_eq!(units(first)[1..], names[..10]);
    assert_eq!(units(again)[1..], names[5..10]);
    assert_eq!(units(last)[1..], ["c11", "c12", "c13", "c14", "c15", "%", "%"]);
}

#[test]
fn a_store_is_built_within_its_bounds() {
    let new = |pages: usize, tables: &[(&'static TableSpec, usize)]| {
        let pages = Box::leak(vec![[0; PAGE_BYTES]; pages].into_boxed_slice());
        Store::new(pages, tables).map(|store| store.pages_free())
    };
    assert_eq!(new(8, &[(&TABLE, 3)]), Ok(5));
    assert_eq!(new(8, &[]), Ok(8));
    assert_eq!(new(8, &[(&TABLE, 1)]), Err(TableError::Capacity("TABLE_PAGES_MIN", 2)));
    assert_eq!(new(8, &[(&TABLE, 9)]), Err(TableError::Capacity("pages free", 8)));
    assert_eq!(new(8, &[(&TABLE, 2), (&TABLE, 2)]), Err(TableError::Exists));
    let specs: Vec<&'static TableSpec> = (0..9)
        .map(|index| &*Box::leak(Box::new(TableSpec { name: format!("t{index}").leak(), ..TABLE })))
        .collect();
    let tables: Vec<_> = specs.iter().map(|spec| (*spec, 2)).collect();
    assert_eq!(new(20, &tables[..8]), Ok(4));
    assert_eq!(new(20, &tables), Err(TableError::Capacity("TABLES_MAX", TABLES_MAX)));
    static NO_TIME: TableSpec = TableSpec { columns: &[column("a", ColumnType::Int)], ..TABLE };
    assert_eq!(new(8, &[(&NO_TIME, 2)]), Err(TableError::Columns));
}
