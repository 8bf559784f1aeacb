//! The pages of a table as an archive gets them: every row once or told as lost, wherever a link broke in between.

use firmware::{
    Board, Facts,
    board::{StackUse, query_memory},
    store::Store,
};
use proptest::{collection::vec, prelude::*};
use shared::{
    device::{Answerer, Now, Step},
    limits::{BODY_BYTES_MAX, PAGE_BYTES},
    message::{self, Cursor, ErrorCode, LinkCounters, Pages, Part, Request, ResetReason},
    page::Page,
    schema::{ColumnSpec, TIME_COLUMN, TableSpec},
    value::{ColumnType, Value},
};

const EPOCH: u64 = 7;
/// Rows of text are long: a page has few of them, and turns often.
static TABLE: TableSpec = TableSpec {
    dbms: "demo",
    name: "notes",
    columns: &[
        TIME_COLUMN,
        ColumnSpec { name: "text", kind: ColumnType::Text, unit: "", description: "what was seen" },
    ],
};

fn text_of(row_id: u64) -> String {
    format!("{row_id:>48x}")
}

/// What an archive that asks for pages has learnt.
#[derive(Default)]
struct Archive {
    /// The texts by row_id, each once.
    rows: Vec<(u64, String)>,
    lost: u64,
    next: u64,
}

impl Archive {
    /// Takes a page from the row on that is missing.
    fn take(&mut self, bytes: &[u8]) {
        let page = Page::read(bytes).expect("a page");
        let kinds = || TABLE.columns.iter().map(|column| column.kind);
        assert_eq!(page.check(kinds()), Ok(()));
        let (mut decoder, mut cells) = (page.rows(kinds()), [Value::Null; 2]);
        for row_id in page.first_row_id()..page.next_row_id() {
            assert!(decoder.next_row(&mut cells).unwrap());
            if row_id >= self.next {
                let Value::Text(text) = cells[1] else { panic!("{cells:?}") };
                self.rows.push((row_id, text.into()));
            }
        }
        self.next = self.next.max(page.next_row_id());
    }
}

/// What happens while pages are sent.
#[derive(Clone, Debug)]
enum Event {
    /// So many rows come.
    Insert(u16),
    /// So many frames arrive.
    Frames(u8),
    /// The frames under way are lost; the stream goes on in a new generation.
    Resume,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![(1..120_u16).prop_map(Event::Insert), (1..6_u8).prop_map(Event::Frames), Just(Event::Resume),]
}

fn on_board(pages: usize, job: impl FnOnce(&mut Board<'_>)) {
    let facts = Facts {
        kind: "test",
        id: heapless::Vec::from_slice(&[1]).unwrap(),
        epoch: EPOCH,
        boot_count: 1,
        panic_count: 0,
        reset_reason: ResetReason::PowerOn,
        stack: StackUse::default,
    };
    let (mut memory, mut queries) = (vec![[0; PAGE_BYTES]; pages], Box::new(query_memory()));
    let store = Store::new(&mut memory, &[(&TABLE, pages)]).unwrap();
    job(&mut Board::new(facts, store, firmware::sample::Schedule::default(), &mut queries));
}

fn insert(board: &mut Board<'_>, rows: u16) {
    let table = board.store_mut().catalog().find("demo", "notes").unwrap();
    for _ in 0..rows {
        let row_id = board.store_mut().next_row_id(table);
        board.store_mut().insert(table, row_id * 1_000, &[Value::Text(&text_of(row_id))]).unwrap();
    }
}

fn wanted(from: u64, acknowledges: bool) -> Request<'static> {
    Request::Pages(Pages { dbms: "demo", table: "notes", epoch: EPOCH, from, acknowledges })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_row_comes_once_or_is_told_as_lost(
        begun_with in 0..400_u16,
        from in 0..500_u64,
        events in vec(event(), 0..40),
    ) {
        on_board(4, |board| {
            insert(board, begun_with);
            let from = from.min(u64::from(begun_with));
            let (link, mut body) = (LinkCounters::default(), [0; BODY_BYTES_MAX]);
            let now = Now { uptime_us: 0, link: &link };
            let mut archive = Archive { next: from, ..Archive::default() };
            let mut work = board.open(wanted(from, true), None, now).unwrap();
            let (mut cursor, mut heads, mut end): (Option<Cursor>, u32, u64) = (None, 0, 0);
            let mut is_done = false;
            for event in events.into_iter().chain([Event::Frames(u8::MAX)]) {
                let frames = match event {
                    Event::Insert(rows) => {
                        insert(board, rows);
                        0
                    }
                    Event::Resume if is_done => 0, // the end has arrived
                    Event::Resume => {
                        board.rewind(&mut work, cursor).unwrap();
                        0
                    }
                    Event::Frames(frames) => frames,
                };
                for _ in 0..frames {
                    if is_done {
                        break;
                    }
                    match board.step(&mut work, &mut body, now) {
                        Step::Part(len) => match message::read::<Part>(&body[..len]).unwrap() {
                            Part::Started(started) => {
                                heads += 1;
                                archive.lost += started.lost;
                                archive.next = archive.next.max(started.cursor.next);
                                end = started.cursor.end;
                                cursor = Some(started.cursor);
                            }
                            part => assert!(matches!(part, Part::Clock(_)), "{part:?}"),
                        },
                        Step::Rows(len) => {
                            let (head, page) = message::read_rows(&body[..len]).unwrap();
                            let before = cursor.unwrap();
                            assert_eq!(u64::from(head.count), head.next - before.next - head.lost);
                            cursor = Some(Cursor {
                                next: head.next,
                                rows: before.rows + u64::from(head.count),
                                ..before
                            });
                            archive.lost += head.lost;
                            archive.take(page);
                        }
                        Step::Done(done) => {
                            archive.lost += done.lost;
                            is_done = true;
                        }
                        step => panic!("{step:?}"),
                    }
                }
            }
            board.close(work);
            assert!(is_done && heads > 0);
            for (row_id, text) in &archive.rows {
                assert_eq!(*text, text_of(*row_id));
            }
            let in_stream = archive.rows.iter().filter(|(row_id, _)| *row_id < end).count() as u64;
            assert!(archive.rows.is_sorted_by_key(|(row_id, _)| *row_id));
            assert_eq!(in_stream + archive.lost, end - from);
        });
    }
}

#[test]
fn rows_that_an_archive_has_are_not_counted_as_lost() {
    let (link, now_us) = (LinkCounters::default(), 0);
    let now = Now { uptime_us: now_us, link: &link };
    let unread = |acknowledges| {
        let mut unread = 0;
        on_board(2, |board| {
            insert(board, 10);
            let work = board.open(wanted(10, acknowledges), None, now).unwrap();
            board.close(work);
            insert(board, 200);
            let table = board.store_mut().catalog().find("demo", "notes").unwrap();
            let counts = board.store_mut().counts(table).unwrap();
            assert!(counts.first_row_id > 10);
            unread = counts.first_row_id - counts.rows_overwritten_unread;
        });
        unread
    };
    assert_eq!((unread(true), unread(false)), (10, 0));
}

#[test]
fn rows_of_another_boot_and_tables_that_are_not_there_are_refused() {
    on_board(2, |board| {
        let link = LinkCounters::default();
        let now = Now { uptime_us: 0, link: &link };
        insert(board, 3);
        let of =
            |table, epoch| Request::Pages(Pages { dbms: "demo", table, epoch, from: 3, acknowledges: true });
        let code = |board: &mut Board<'_>, request| board.open(request, None, now).unwrap_err().code;
        assert_eq!(code(board, of("notes", EPOCH + 1)), ErrorCode::Cursor);
        assert_eq!(code(board, of("note", EPOCH)), ErrorCode::UnknownTable);
        let table = board.store_mut().catalog().find("demo", "notes").unwrap();
        assert_eq!(board.store_mut().counts(table).unwrap().acknowledged_row_id, 0);
        let beyond = Cursor { next: 2, end: 9, rows: 0 };
        assert_eq!(board.open(wanted(0, false), Some(beyond), now).unwrap_err().code, ErrorCode::Cursor);
        // Rows that are not there yet: an empty stream.
        assert!(board.open(wanted(99, false), None, now).is_ok());
    });
}
