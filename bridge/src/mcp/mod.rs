//! The bridge as MCP server: one [`Server`] behind every transport. It knows tools, not boards' bytes.
//!
//! ```text
//!   stdio ── lines on pipes, or from a guest ────┐
//!   http ─── /mcp, /sse + /messages/ ───────────┤── server ── tools
//!        └── /query, /healthz, /metrics          (resources, prompts, completions)
//! ```

mod catalogue;
mod completions;
pub mod http;
mod lines;
mod metrics;
mod progress;
mod prompts;
mod resources;
mod server;
mod stdio;
mod subscriptions;

pub(crate) use lines::too_long;
pub use metrics::Metrics;
pub use server::Server;
pub use stdio::{StdioError, serve as serve_stdio};
pub(crate) use stdio::{pipes, serve_lines};
pub(crate) use subscriptions::SUBSCRIPTIONS_MAX;

use std::time::Duration;

/// How long a call may take: Claude Desktop drops one at about a minute.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(45);
/// What a call that overlooks its time limit gets on top before it is stopped from outside.
const CALL_GRACE: Duration = Duration::from_secs(2);
/// Calls that run at once, over all clients; one more is told so at once.
pub const CALLS_RUNNING_MAX: usize = 64;
/// Characters of a client's name that are kept.
const CLIENT_NAME_CHARS_MAX: usize = 64;
