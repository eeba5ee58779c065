//! Decisions out: each transition of a Workload is a function from one status to the next.
//!
//! A transition is complete: everything that changes with it is in the one status it returns, so that one write carries
//! it. Where nothing changes the returned status is equal, and nothing is written. Source: docs/reference/kueue.md §2.1 to
//! §2.6; the words of conditions are upstream's.

mod admission;
mod admitted;
mod admitted_on_cluster;
mod check_states;
mod condition;
mod deactivation;
mod evicted;
mod field_ownership;
mod finished;
mod message;
mod pending;
mod pods_ready;
mod preempted;
mod quota_released;
mod quota_reserved;
mod requeue_backoff;

pub use self::{
    admitted::admitted,
    admitted_on_cluster::admitted_on_cluster,
    check_states::{check_rejected, check_retry, with_checks},
    condition::{find, set},
    deactivation::{deactivated, deactivation_target},
    evicted::{Eviction, evicted, migration_message},
    field_ownership::owned_fields,
    finished::{finished, replacement_message},
    message::{for_condition, for_event},
    pending::{gated, pending},
    pods_ready::pods_ready,
    preempted::{preempted, preemption_message},
    quota_released::{nomination_cancelled, quota_released},
    quota_reserved::{QuotaReservation, quota_reserved},
    requeue_backoff::{back_off, requeued},
};

use jiff::Timestamp;

/// When a transition happens, and to which generation of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusStamp {
    /// The clock.
    pub now: Timestamp,
    /// `metadata.generation`.
    pub generation: i64,
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made for the call")]
mod tests;
