//! Every bound of SQL that runs in SQLite on the gateway.

/// Bytes of a statement.
pub const SQL_BYTES_MAX: usize = 64 * 1024;
/// How deep a statement may be: what stands in one another, and what stands in one row without a comma.
pub(super) const SQL_DEPTH_MAX: usize = 1_000;
/// How deep parentheses, signs and subqueries nest.
pub(super) const NESTING_MAX: usize = 50;
/// Tables that one statement reads.
pub const TABLES_MAX: usize = 16;
/// Bytes of a condition that boards are asked to filter by.
pub(super) const FILTER_BYTES_MAX: usize = 480;

/// Bytes of a text that SQLite makes or keeps, and of a row that it sorts. The answer to one call is shorter, and no
/// function of SQLite's takes long for so few: within one of them there is no stopping it.
pub(super) const VALUE_BYTES_MAX: i32 = 100_000;
/// Columns of an answer, of GROUP BY, of ORDER BY.
pub(super) const ANSWER_COLUMNS_MAX: i32 = 200;
/// SELECTs that UNION and its like join.
pub(super) const COMPOUND_SELECTS_MAX: i32 = 50;
/// Arguments of a function.
pub(super) const ARGUMENTS_MAX: i32 = 50;
/// Instructions of a compiled statement.
pub(super) const INSTRUCTIONS_MAX: i32 = 100_000;
/// Bytes of the pattern of LIKE and GLOB.
pub(super) const PATTERN_BYTES_MAX: i32 = 200;

/// Bytes that all statements together keep in SQLite at most: what they sort, group, and look up again. One that keeps
/// nothing is not stopped by what others keep; of the others, the one that has been at work longest.
pub const KEPT_BYTES_MAX: i64 = 256 << 20;
/// Statements that run at once; others wait their turn.
pub const STATEMENTS_MAX: usize = 4;
/// Instructions between two looks at the clock, at the memory, and whether the answer is still wanted.
pub(super) const INSTRUCTIONS_PER_LOOK: i32 = 1_000;

/// Rows of a batch.
pub const BATCH_ROWS_MAX: usize = 100;
/// Bytes of text after which a batch is not filled further.
pub(super) const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Batches that wait for whoever reads them.
pub(super) const BATCHES_WAITING_MAX: usize = 2;
/// Stack of the thread that a statement is read and run on: enough for [`SQL_DEPTH_MAX`], also without optimisation.
pub(super) const STACK_BYTES: usize = 32 << 20;

/// Bytes of rows that were fetched from boards for one statement, packed: some 20 million rows.
pub const PACKED_BYTES_MAX: usize = 64 << 20;
/// Bytes of a block of packed rows.
pub(super) const BLOCK_BYTES: usize = 4096;
/// Rows of a block of packed rows.
pub(super) const BLOCK_ROWS_MAX: u16 = 512;
/// Pages that a source in memory hands out at once.
pub(super) const CHUNK_PAGES: usize = 64;
