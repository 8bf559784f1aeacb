//! What every Picolake board runs, whatever the chip: portable, no heap, no HAL.
//!
//! ```text
//!   board package          this library                      shared
//!   pins, drivers   ──▶   serve ── one for each link   ──▶   device (protocol)
//!   facts           ──▶   board ── who it is, its clock
//!                         commands ── answers to requests
//!                         console ── the same answers as text
//!   samplers        ──▶   sample ── rows when they are due
//!                         store, catalog ── rows in pages, and which tables there are
//!                         net ── the links over TCP
//! ```
//!
//! A board package brings [`Facts`](board::Facts), a [`Clock`](clock::Clock), and for each link two halves of
//! `embedded-io-async`; then it runs [`serve`](serve::serve) for each. The simulated board does the same on the host.
#![no_std]

#[cfg(feature = "bench")]
pub mod bench;
pub mod board;
pub mod catalog;
pub mod clock;
mod commands;
pub mod console;
mod listing;
#[cfg(feature = "net")]
pub mod net;
mod page_stream;
mod queries;
pub mod sample;
pub mod samplers;
pub mod serve;
pub mod store;
mod test_rows;

pub use board::{Board, Facts};
pub use serve::serve;
pub use shared::page::PageBuffer;

/// The firmware's name and version, as it introduces itself.
pub const BUILD: &str = concat!("picolake ", env!("CARGO_PKG_VERSION"));
