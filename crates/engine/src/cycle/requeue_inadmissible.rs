//! Bringing derived state up to date before a cycle, and waking parked Workloads.
//!
//! Source: docs/reference/kueue.md §3.6. A wake-up concerns the whole tree in which something was freed or changed; trees
//! with a cohort cycle are left alone.

use crate::ids::QueueId;
use crate::queues::cluster_queue::namespace_matches;
use crate::spec::{NamespaceSelector, QueueEligibility};
use crate::state::State;

/// Brings everybody back in line who is parked in a queue. Returns how many shapes and Workloads that were.
pub(super) fn wake_queue(state: &mut State, id: QueueId) -> usize {
    let State { queues, workloads, namespaces, classes, .. } = state;
    let Some(queue) = &mut queues[id.index()] else {
        return 0;
    };
    let selector = &queue.namespaces;
    let choosy = !matches!(selector, NamespaceSelector::All(all) if all.is_empty());
    let woken = queue.pending.wake(
        workloads,
        choosy,
        |one| {
            one.eligibility == QueueEligibility::Eligible
                && one.wake.is_none()
                && namespace_matches(selector, namespaces, one)
        },
        |class| classes.release(class),
    );
    state.list_if_head(id);
    woken
}
