//! The bridge `picolake`: it keeps a session with each board and answers for them.
//!
//! ```text
//!   link ── opens serial, tcp, unix, simulated        bytes
//!   board ── a session for each board                 parts of answers
//!   config ── picolake.yaml                           names
//!   mcp ── what MCP clients and programs ask          tools, JSON
//!   cli ── what a person types                        text
//! ```

pub mod board;
pub mod cli;
pub mod config;
pub mod link;
pub mod mcp;
