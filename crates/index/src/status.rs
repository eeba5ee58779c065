//! Decisions out: each transition of a Workload is a function from one status to the next.
//!
//! A transition is complete: everything that changes with it is in the one status it returns, so that one write carries
//! it. Where nothing changes the returned status is equal, and nothing is written. Source: docs/reference/kueue.md §2.1 to
//! §2.6; the words of conditions are upstream's.

mod admission;
mod admitted;
mod checks;
mod condition;
mod deactivation;
mod dispatched;
mod evicted;
mod finished;
mod message;
mod owned;
mod pending;
mod pods_ready;
mod preempted;
mod released;
mod requeued;
mod reserved;

pub use self::{
    admitted::admitted,
    checks::{check_rejected, check_retry, with_checks},
    condition::{find, set},
    deactivation::{deactivated, deactivation_target},
    dispatched::dispatched,
    evicted::{Eviction, evicted, migration_message},
    finished::{finished, replacement_message},
    message::{for_condition, for_event},
    owned::owned,
    pending::{gated, pending},
    pods_ready::pods_ready,
    preempted::{preempted, preemption_message},
    released::{released, unplaced},
    requeued::{backed_off, requeued},
    reserved::{Reservation, reserved},
};

use jiff::Timestamp;

/// When a transition happens, and to which generation of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The clock.
    pub now: Timestamp,
    /// `metadata.generation`.
    pub generation: i64,
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made for the call")]
mod tests;
