//! Status transitions: each decision about a Workload is a function from one status to the next.
//!
//! A transition is complete: the returned status has everything that changes with it, so one write carries it. A
//! transition without a change returns an equal status, and nothing is written. Source: docs/reference/kueue.md §2.1
//! to §2.6; the texts of conditions are Kueue's.

pub(crate) mod admission;
mod admitted;
mod admitted_on_cluster;
mod check_states;
mod condition;
mod deactivation;
mod evicted;
mod field_ownership;
mod finished;
mod legacy_reasons;
mod message;
mod nominated;
mod pending;
mod pods_failing;
mod pods_ready;
mod preempted;
mod quota_released;
mod quota_reserved;
mod reason;
mod requeue_backoff;
mod status_stamp;
mod topology;
mod variants;

pub(crate) use self::admitted::awaits_topology;
pub use self::{
    admission::{moved_topologies, on_hosts, settled_topologies},
    admitted::admitted,
    admitted_on_cluster::{admitted_on, admitted_on_cluster},
    check_states::{
        REJECTED, RETRY, checks_in_state, lists_checks, retry_at, with_check_rejected,
        with_check_retry, with_check_state, with_checks, with_pending_message, with_ready_message,
        with_retries_reset,
    },
    condition::{NewCondition, find, find_true, set, set_for_generation},
    deactivation::{
        deactivated, deactivated_without_quota, deactivation_target, reactivated, was_deactivated,
        with_cause_of_deactivation,
    },
    evicted::{Eviction, evicted, migration_message},
    field_ownership::{applied_fields, status_apply},
    finished::{finished, replacement_message},
    legacy_reasons::with_legacy_reasons,
    message::for_condition,
    nominated::{awaits_other_checks, nominated},
    pending::{PendingCause, gated, pending},
    pods_failing::{pods_failing, pods_not_failing},
    pods_ready::pods_ready,
    preempted::{preempted, preemption_message},
    quota_released::{
        nomination_cancelled, quota_released, quota_released_without_requeue, reservation_dropped,
    },
    quota_reserved::{QuotaReservation, quota_reserved},
    requeue_backoff::{back_off, backoff_ended, queued_at, requeued},
    status_stamp::StatusStamp,
    topology::{
        PodSetTopology, assigned_nodes, nodes_of_pod_set, with_topologies, with_unhealthy_nodes,
    },
    variants::{ShownVariant, admitted_as_variant, with_open_gate},
};

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made for the call")]
mod tests;
