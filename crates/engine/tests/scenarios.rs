//! Scenarios: one rule each, told in a small text language. See `scenarios/fixture.rs` for the language.

#[path = "scenarios/borrowing.rs"]
mod borrowing;
#[path = "scenarios/fixture.rs"]
mod fixture;
#[path = "scenarios/placing.rs"]
mod placing;
#[path = "scenarios/preempting.rs"]
mod preempting;
#[path = "scenarios/queueing.rs"]
mod queueing;
