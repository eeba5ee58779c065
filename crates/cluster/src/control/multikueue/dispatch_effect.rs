//! What a step of a Workload's dispatch means for the hub.

use crds::v1beta2::ReclaimablePod;

use crate::control::{job_key::JobKey, jobs::JobChange, workloads::Transition};

/// See the module.
#[derive(Debug)]
pub(crate) enum DispatchEffect {
    /// Part of the next status.
    Propose(Transition),
    /// The reservation ends: no worker took the Workload. With the message.
    Unreserve(String),
    /// This epoch is written.
    RaiseEpoch(u64),
    /// The term of this leader is written, and the guarantee if it is ExactlyOnce; that succeeds on the newest version only.
    ConfirmVersion { term: u64, exactly_once: bool },
    /// These pods of the Workload need no quota any more.
    Reclaim(Vec<ReclaimablePod>),
    /// The status of the hub's jobs is written.
    WriteJobs(Vec<(JobKey, JobChange)>),
}
