//! `cordon`, `drain` and `uncordon`: a worker is drained by the DispatchPolicies of the MultiKueueConfigs that dispatch to it, and in a
//! window by annotations of its MultiKueueCluster (docs/reference/dispatch.md §3).
//!
//! [`plan`] decides which policies change, [`order`] and [`wait_until_empty`] read and write.

mod deadline;
mod execution;
mod policy_change;
mod window;

use crds::v1beta2::Workload;
use jiff::Timestamp;

pub use deadline::{DeadlineArgument, DeadlineParseFailure};
pub use execution::{DrainFailure, order, wait_until_empty, work_on};
pub use policy_change::{PolicyChange, PolicyObject, plan};
pub use window::{drain_in, schedule, window_argument};

/// What is wanted of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainOrder {
    /// Nothing new. A drain that is there stays, with its deadline.
    Cordon,
    /// Nothing new; running work is withdrawn at the deadline, never without one.
    Drain {
        /// The deadline.
        deadline: Option<Timestamp>,
    },
    /// The worker takes work again.
    End,
}

/// Whether a Workload is recorded or nominated for a worker and has not finished.
#[must_use]
pub fn holds_work_on(workload: &Workload, cluster: &str) -> bool {
    let status = &workload.status;
    let recorded = status.cluster_name.as_deref() == Some(cluster);
    let nominated = status.nominated_cluster_names.iter().any(|name| name == cluster);
    (recorded || nominated) && !workload.is_finished()
}
