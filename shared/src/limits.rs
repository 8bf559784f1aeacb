//! Every capacity of the wire and of what travels on it, with the inequalities between them.

/// Bytes of a page: rows packed together on the board. A sealed page travels in one frame as it is.
pub const PAGE_BYTES: usize = 1024;
/// Bytes of a page in front of its rows.
pub const PAGE_HEADER_BYTES: usize = 32;

/// Bytes of a frame's header: kind, generation, request, sequence.
pub const HEADER_BYTES: usize = 8;
/// Bytes of a frame's check sum.
pub const CRC_BYTES: usize = 4;
/// Bytes of a frame's body: a page and what is said about it.
pub const BODY_BYTES_MAX: usize = PAGE_BYTES + 64;
/// Bytes of a frame before it is stuffed.
pub const FRAME_BYTES_MAX: usize = HEADER_BYTES + BODY_BYTES_MAX + CRC_BYTES;
/// Bytes of a frame on the wire: COBS adds one byte in 254 and one, the delimiter another.
pub const WIRE_BYTES_MAX: usize = cobs::max_encoding_length(FRAME_BYTES_MAX) + 1;

/// Bytes of a command's text.
pub const COMMAND_BYTES_MAX: usize = 1000;
/// Bytes of a request's body: a command and its envelope (tag, class, credit, cursor).
pub const REQUEST_BYTES_MAX: usize = COMMAND_BYTES_MAX + 48;
/// Bytes of the hint in an error.
pub const HINT_BYTES_MAX: usize = 64;
/// Bytes of a board's own id.
pub const BOARD_ID_BYTES_MAX: usize = 16;
/// Bytes of a build's name.
pub const BUILD_BYTES_MAX: usize = 48;
/// Bytes of a name: a database's, a table's, a column's.
pub const NAME_BYTES_MAX: usize = 32;
/// Bytes of a unit, such as `°C`.
pub const UNIT_BYTES_MAX: usize = 16;
/// Bytes of what `help` says of one command.
pub const HELP_BYTES_MAX: usize = 320;
/// Different values that `extract` can sort.
pub const EXTRACT_VALUES_MAX: usize = 32;
/// Columns of an answer.
pub const COLUMNS_MAX: usize = 32;
/// Columns of a table, `timestamp` among them.
pub const TABLE_COLUMNS_MAX: usize = 16;
/// Bytes of a text in a cell.
pub const TEXT_BYTES_MAX: usize = 64;
/// Different texts of a column that a run of rows remembers, so that they need not stand in it again.
pub const RECENT_TEXTS_MAX: usize = 8;
/// Rows of a page: what one step of a scan reads at most.
pub const PAGE_ROWS_MAX: u16 = 512;

/// Tables of a board, built in or created.
pub const TABLES_MAX: usize = 8;
/// Tables that can be created while the board runs.
pub const CREATED_TABLES_MAX: usize = 4;
/// Different units of all created tables.
pub const CREATED_UNITS_MAX: usize = 16;
/// Pages of a table at least: one is written while the one before is read.
pub const TABLE_PAGES_MIN: usize = 2;
/// Pages of all tables.
pub const PAGES_MAX: usize = 32_768;
/// Pages of a created table of which nobody said how many rows it is to keep.
pub const CREATED_PAGES_DEFAULT: usize = 4;
/// The least time between two rows of a sampler.
pub const SAMPLE_PERIOD_US_MIN: u64 = 1_000;
/// The most time between two rows of a sampler.
pub const SAMPLE_PERIOD_US_MAX: u64 = 24 * 3_600 * 1_000_000;

/// A board's clock is not moved by less.
pub const CLOCK_STEP_US_MIN: i64 = 1_000_000;
/// How often a board's clock can step until its oldest steps become one.
pub const CLOCK_SEGMENTS_MAX: usize = 8;

/// Nodes of all expressions of a query.
pub const SQL_NODES_MAX: usize = 128;
/// Members of all lists of a query: values of IN, arguments of functions.
pub const SQL_LIST_ITEMS_MAX: usize = 64;
/// How deep expressions nest.
pub const EXPRESSION_DEPTH_MAX: usize = 16;
/// Items of a SELECT.
pub const SELECT_ITEMS_MAX: usize = 16;
/// Keys of GROUP BY.
pub const GROUP_KEYS_MAX: usize = 4;
/// Keys of ORDER BY.
pub const SORT_KEYS_MAX: usize = 4;
/// Comparisons with constants that a filter is taken apart into; one with more is evaluated as an expression.
pub const FILTER_TERMS_MAX: usize = 4;
/// Different aggregates of a query.
pub const AGGREGATES_MAX: usize = 12;

/// Bytes of a query's text and of the texts that are made from it when it is planned.
pub const QUERY_TEXT_BYTES_MAX: usize = COMMAND_BYTES_MAX + 64;
/// Bytes of the texts that the expressions of one row make (`lower(x)`, `x::text`).
pub const EXPRESSION_TEXT_BYTES_MAX: usize = 256;
/// Bytes in which a board's query keeps its groups, the rows it sorts, and the values it has seen.
pub const WORKSPACE_BYTES: usize = 4096;
/// Queries that a board runs at once; the next one waits.
pub const QUERIES_MAX: usize = 3;
/// Bytes of stack that the QEMU board uses at most, whatever it is asked.
pub const STACK_BYTES_BUDGET: u32 = 20 * 1024;
/// Groups of a query.
pub const GROUPS_MAX: usize = 128;
/// Rows that are sorted; with a LIMIT, only so many of the first are kept.
pub const SORT_ROWS_MAX: usize = 128;
/// Different rows of SELECT DISTINCT.
pub const DISTINCT_ROWS_MAX: usize = 128;
/// Different values of all `count(DISTINCT x)` of a query.
pub const DISTINCT_VALUES_MAX: usize = 192;

/// Requests open at once on one link.
pub const REQUESTS_MAX: usize = 8;
/// Batches that may be under way to the bridge for one request: what the bridge buffers at most.
pub const CREDIT_BATCHES_MAX: u32 = 16;
/// Frames of one generation of a request; then it is resumed in the next, so that no count overflows.
pub const GENERATION_FRAMES_MAX: u32 = 1 << 31;

/// How long a side waits for the answer to its first hello before it says hello again.
pub const HELLO_RETRY_US: u64 = 250_000;
/// Hellos without an answer until the link counts as one that does not speak Picolake.
pub const HELLO_ATTEMPTS_MAX: u32 = 20;
/// The least time between two hellos, however often a board asks for one.
pub const HELLO_PROMPTED_US: u64 = 10_000;
/// How long a board keeps a link on which nobody has begun a session: as long as a bridge goes on saying hello.
pub const LINK_MUTE_US_MAX: u64 = HELLO_RETRY_US * HELLO_ATTEMPTS_MAX as u64;
/// Quiet on a link until the bridge asks whether the board is still there.
pub const KEEPALIVE_US: u64 = 2_000_000;
/// Quiet on an open request until the bridge asks how far the board has come.
pub const PROBE_US_MIN: u64 = 200_000;
/// The longest wait for the answer to a ping before the next.
pub const PROBE_US_MAX: u64 = 2_000_000;
/// Pings without a sign of the board until the link counts as broken.
pub const PING_ATTEMPTS_MAX: u32 = 6;
/// Quiet from the board until the link counts as broken, though it takes no ping.
pub const LINK_SILENT_US_MAX: u64 = KEEPALIVE_US + PING_ATTEMPTS_MAX as u64 * PROBE_US_MAX;
/// Resumes without one good frame between them until a request fails.
pub const RESUMES_MAX: u32 = 24;
/// The first wait before a busy board is asked again; it doubles each time.
pub const BUSY_RETRY_US_MIN: u64 = 5_000;
/// The longest wait before a busy board is asked again.
pub const BUSY_RETRY_US_MAX: u64 = 500_000;
/// Times that a request finds the board busy until it fails: some 40 seconds.
pub const BUSY_ATTEMPTS_MAX: u32 = 86;
/// Quiet from the bridge until the board gives the session up.
pub const SESSION_QUIET_US_MAX: u64 = 20_000_000;

const _: () = {
    assert!(PAGE_BYTES < BODY_BYTES_MAX);
    assert!(REQUEST_BYTES_MAX <= BODY_BYTES_MAX);
    assert!(COMMAND_BYTES_MAX < REQUEST_BYTES_MAX);
    assert!(BODY_BYTES_MAX <= u16::MAX as usize);
    assert!(REQUESTS_MAX <= u8::MAX as usize);
    assert!(HELP_BYTES_MAX < BODY_BYTES_MAX);
    assert!(
        CREATED_TABLES_MAX <= TABLES_MAX
            && TABLES_MAX <= u8::MAX as usize
            && CREATED_UNITS_MAX <= u8::MAX as usize
    );
    assert!(TABLE_PAGES_MIN <= CREATED_PAGES_DEFAULT && PAGES_MAX <= u16::MAX as usize);
    assert!(TABLE_COLUMNS_MAX < COLUMNS_MAX);
    assert!(COLUMNS_MAX <= u32::BITS as usize); // a bit for each in a pattern of NULLs
    assert!(TEXT_BYTES_MAX <= u8::MAX as usize); // a text's length is a byte
    assert!(SELECT_ITEMS_MAX + TABLE_COLUMNS_MAX <= COLUMNS_MAX);
    assert!(SQL_NODES_MAX <= u8::MAX as usize); // a node's number is a byte
    assert!(SQL_LIST_ITEMS_MAX <= u8::MAX as usize);
    assert!(LINK_SILENT_US_MAX < SESSION_QUIET_US_MAX);
};
