//! Requeues inadmissible Workloads. Kueue: `QueueInadmissibleWorkloads`.
//!
//! A requeue concerns the whole cohort tree in which capacity was freed or the configuration changed. Source:
//! docs/reference/kueue.md §3.6.

use crate::ids::QueueId;
use crate::queues::cluster_queue::namespace_matches;
use crate::spec::{NamespaceSelector, QueueEligibility};
use crate::state::State;

/// Makes the inadmissible Workloads of a ClusterQueue active. Returns the number of classes and Workloads visited.
pub(super) fn requeue_cluster_queue(state: &mut State, id: QueueId) -> usize {
    let State { queues, workloads, namespaces, classes, .. } = state;
    let Some(queue) = &mut queues[id.index()] else {
        return 0;
    };
    let selector = &queue.namespaces;
    let selects_namespaces = !matches!(selector, NamespaceSelector::All(all) if all.is_empty());
    let requeued = queue.pending.requeue_inadmissible(
        workloads,
        selects_namespaces,
        |one| {
            one.eligibility == QueueEligibility::Eligible
                && one.awaited_capacity.is_none()
                && namespace_matches(selector, namespaces, one)
        },
        |class| classes.release(class),
    );
    state.list_if_head(id);
    requeued
}
