//! Every capacity of the wire and of what travels on it, with the inequalities between them.

/// Bytes of a page: rows packed together on the board. A sealed page travels in one frame as it is.
pub const PAGE_BYTES: usize = 1024;

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
/// Columns of a table or of an answer.
pub const COLUMNS_MAX: usize = 32;

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
/// Quiet from the bridge until the board gives the session up.
pub const SESSION_QUIET_US_MAX: u64 = 20_000_000;

const _: () = {
    assert!(PAGE_BYTES < BODY_BYTES_MAX);
    assert!(REQUEST_BYTES_MAX <= BODY_BYTES_MAX);
    assert!(COMMAND_BYTES_MAX < REQUEST_BYTES_MAX);
    assert!(BODY_BYTES_MAX <= u16::MAX as usize);
    assert!(REQUESTS_MAX <= u8::MAX as usize);
    assert!(LINK_SILENT_US_MAX < SESSION_QUIET_US_MAX);
};
