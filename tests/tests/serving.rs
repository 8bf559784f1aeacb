//! The server where its clients are many, slow, gone or wrong, and where it is told to stop.

#[path = "serving/cancelled.rs"]
mod cancelled;
#[path = "serving/lines.rs"]
mod lines;
#[path = "serving/many.rs"]
mod many;
#[path = "serving/slow.rs"]
mod slow;
#[path = "serving/stopped.rs"]
mod stopped;
