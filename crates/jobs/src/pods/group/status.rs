//! What a group as a whole reports: its end, its activity, readiness, reclaimable pods and missing members
//! (docs/reference/kueue.md §7.8, §7.9).

use std::{borrow::Cow, collections::BTreeMap};

use crds::v1beta2::ReclaimablePod;
use jiff::Timestamp;

use crate::{JobGates, generic_job::JobOutcome, pods::Pod, prebuilt::prebuilt_name};

/// The end of a group; `None` while it goes on. A serving group never ends. A group that does not go on waits for no member of which
/// `is_held` says that it keeps its gate.
pub(super) fn finished(pods: &[&Pod], is_held: &dyn Fn(&Pod) -> bool) -> Option<JobOutcome> {
    if is_serving(pods) {
        return None;
    }
    let total = pods.iter().find_map(|pod| pod.group_total())?;
    let n_succeeded = pods.iter().filter(|pod| pod.has_succeeded()).count();
    let all = i64::try_from(n_succeeded).is_ok_and(|n_succeeded| n_succeeded >= total);
    let over = || {
        let any = pods.iter().any(|pod| pod.is_terminated());
        any && pods.iter().all(|pod| pod.is_terminated() || is_held(pod))
    };
    let unretriable = pods.iter().any(|pod| pod.is_unretriable());
    // Upstream reports success also for an unretriable group of which pods have failed; its message has the count.
    (all || (unretriable && over())).then(|| JobOutcome {
        success: true,
        message: format!("Pods succeeded: {n_succeeded}/{total}."),
    })
}

/// Whether the group serves.
pub(super) fn is_serving(pods: &[&Pod]) -> bool {
    pods.iter().any(|pod| pod.is_serving())
}

/// Until when quota is held for pods that run; `None` if none does.
pub(super) fn active_until(pods: &[&Pod], now: Timestamp, gates: JobGates) -> Option<Timestamp> {
    let running = pods.iter().filter(|pod| pod.status.phase == "Running");
    running.filter_map(|pod| pod.runs_until(now, gates)).max()
}

/// Whether every pod that the group needs is ready or has succeeded. In a serving group a pod that has ended serves no more.
///
/// Upstream counts ready pods only and evicts a group, after its recovery timeout, because a pod has succeeded.
pub(super) fn pods_ready(pods: &[&Pod]) -> bool {
    let Some(total) = pods.iter().find_map(|pod| pod.group_total()) else {
        return false;
    };
    let serving = is_serving(pods);
    let fine = |pod: &&&Pod| pod.is_ready() || (pod.has_succeeded() && !serving);
    let needed = pods.iter().filter(|pod| pod.is_runnable_or_succeeded());
    let (fine, others): (Vec<&&Pod>, Vec<&&Pod>) = needed.partition(fine);
    let n_fine = i64::try_from(fine.len()).unwrap_or(i64::MAX);
    n_fine >= total && others.is_empty()
}

/// Succeeded pods of each role. A serving group keeps its quota.
pub(super) fn reclaimable(pods: &[&Pod]) -> Vec<ReclaimablePod> {
    if is_serving(pods) {
        return Vec::new();
    }
    let mut succeeded: BTreeMap<Cow<'_, str>, i32> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.has_succeeded()) {
        *succeeded.entry(pod.role()).or_default() += 1;
    }
    let pods = succeeded.into_iter();
    pods.map(|(role, count)| ReclaimablePod { name: role.into_owned(), count }).collect()
}

/// Whether a pod may be absent because it was not created yet: the group is admitted before all its pods exist, or its Workload
/// was there first.
pub(super) fn may_be_incomplete(pods: &[&Pod], workload: &str, gates: JobGates) -> bool {
    let fast = pods.iter().any(|pod| pod.wants_fast_admission());
    let named = |pod: &Pod| prebuilt_name(pod, gates).name == workload;
    // The owner of such a serving group makes and replaces its pods, one after the other.
    if pods.iter().all(|pod| pod.is_serving() && named(pod)) {
        return true;
    }
    let prebuilt = pods.iter().all(|pod| pod.is_gated() && named(pod));
    (fast || prebuilt) && pods.iter().all(|pod| pod.is_runnable_or_succeeded())
}

/// Whether one of the pods stands for a group that is admitted before all its pods exist, and may be started.
pub(super) fn may_start_fast(pods: &[&Pod]) -> bool {
    let waits = |pod: &Pod| pod.is_gated() && !pod.is_deleting() && !pod.is_terminated();
    pods.iter().any(|pod| pod.wants_fast_admission() && waits(pod))
}
