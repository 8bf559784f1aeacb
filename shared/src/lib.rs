//! What both sides of the wire agree on: values, messages, frames, and both ends of the protocol.
//!
//! ```text
//!   board                                                  bridge
//!   firmware::commands                                     picolake::board
//!        │ answers                                   asks │
//!   [device] Device ── [message] ── [frame] ══ link ══ [frame] ── [message] ── [host] Host
//! ```
//!
//! Read in this order: [`limits`] (every capacity), [`value`] and [`schema`] (what a row is made of),
//! [`rowcode`] (rows ↔ bits), [`page`] (rows that are kept together), [`command`] (the text a person types), [`message`] (what travels),
//! [`frame`] (how it travels), [`device`] and [`host`] (who says what when). [`format`] writes answers as text, [`time`] is the calendar,
//! [`clock`] what a board knows of UTC, [`link_test`] the rows that links are measured with.
//!
//! Nothing here allocates, waits, or asks what time it is: bytes and time come in, bytes and events go out.
#![no_std]
#![warn(missing_docs)]

pub mod clock;
pub mod command;
pub mod device;
pub mod engine;
pub mod format;
pub mod frame;
pub mod host;
pub mod limits;
pub mod link_test;
pub mod message;
pub mod page;
pub mod rowcode;
pub mod schema;
pub mod sql;
pub mod time;
pub mod value;

/// The wire versions this build speaks. Two neighbours always share one.
pub mod version {
    /// The oldest wire version still understood.
    pub const MIN: u8 = 1;
    /// The newest wire version, spoken when the other side knows it too.
    pub const CURRENT: u8 = 1;
}
