//! The bridge `picolake`: it keeps a session with each board and answers for them.
//!
//! ```text
//!   link ── opens serial, tcp, unix, simulated        bytes
//!   board ── a session for each board                 parts of answers
//!   config ── picolake.yaml                           names
//!   field ── all boards, and what tables they have    names
//!   archive ── a durable copy of the boards' rows     pages, SQLite
//!   query ── a SELECT over boards, batch by batch     rows
//!   tools ── tools.yaml, calls, pages of answers      JSON
//!   jobs ── whole answers into files                  files
//!   mcp ── what MCP clients and programs ask          MCP, HTTP
//!   owner ── one process has the links, others ask it  lines
//!   cli ── what a person types                        text
//! ```

pub mod archive;
pub mod board;
pub mod cli;
pub mod config;
pub mod fault;
pub mod field;
pub mod jobs;
pub mod link;
pub mod mcp;
pub mod owner;
pub mod query;
pub mod tools;
