//! The suspension of a cluster.
//!
//! ```text
//! running --spec.suspend--> Suspending --no pods--> Suspended --spec.suspend=false--> running
//! ```
//! A suspension that began ends before the cluster can be resumed. A `suspend` that is taken away does not resume.
//! Source: docs/reference/ray.md §3 "Pods (reconcilePods)", §4.

use serde_json::Value;

use super::{context::ClusterContext, failure::Failure, groups::delete_all};
use crate::{conditions_of, json::is_terminating, names, pass::Pass};

/// Where a cluster is in its suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspension {
    Running,
    Suspending,
    Suspended,
}

impl Suspension {
    /// As the status says.
    pub(crate) fn recorded(cluster: &Value) -> Self {
        // Both at once are invalid; the suspension that has not ended counts then.
        if conditions_of::is_true(cluster, names::SUSPENDING) {
            Self::Suspending
        } else if conditions_of::is_true(cluster, names::SUSPENDED) {
            Self::Suspended
        } else {
            Self::Running
        }
    }

    /// After a pass that found this number of pods.
    pub(crate) fn next(self, suspend: Option<bool>, n_pods: usize) -> Self {
        match self {
            Self::Running if suspend == Some(true) => Self::Suspending,
            Self::Suspending if n_pods == 0 => Self::Suspended,
            Self::Suspended if suspend == Some(false) => Self::Running,
            same => same,
        }
    }
}

/// Removes pods of a cluster that is suspended. Returns whether pods may be made.
pub(crate) fn reconcile_suspension(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
) -> Result<bool, Failure> {
    let wanted = context.spec.suspend == Some(true);
    if !context.settings.gates.status_conditions {
        return if wanted { delete_suspended(context, pass) } else { Ok(true) };
    }
    match Suspension::recorded(context.cluster) {
        // The status of this pass records the suspension first; pods are deleted from then on.
        Suspension::Running => Ok(!wanted),
        Suspension::Suspending => delete_suspended(context, pass),
        // A pod that a late create made would run without quota.
        Suspension::Suspended if context.spec.suspend != Some(false) && has_pods(context) => {
            delete_suspended(context, pass)
        }
        Suspension::Suspended => Ok(false),
    }
}

fn delete_suspended(context: &ClusterContext<'_>, pass: &mut Pass<'_>) -> Result<bool, Failure> {
    delete_all(context, pass, "due to suspension", "Pods")?;
    Ok(false)
}

fn has_pods(context: &ClusterContext<'_>) -> bool {
    context.heads().chain(context.workers()).any(|pod| !is_terminating(pod))
}
