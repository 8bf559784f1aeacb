//! The bytes of each wire version, literally: what one build writes, every later build must read.

#[path = "wire/golden.rs"]
mod golden;
#[path = "wire/v01.rs"]
mod v01;
