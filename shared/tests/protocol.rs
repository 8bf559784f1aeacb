//! Device and host against each other, in virtual time, through a link in memory that does what each test says.

#[path = "protocol/board.rs"]
mod board;
#[path = "protocol/faults.rs"]
mod faults;
#[path = "protocol/hostile.rs"]
mod hostile;
#[path = "protocol/losses.rs"]
mod losses;
#[path = "protocol/once.rs"]
mod once;
#[path = "protocol/sessions.rs"]
mod sessions;
#[path = "protocol/sharing.rs"]
mod sharing;
#[path = "protocol/world.rs"]
mod world;
