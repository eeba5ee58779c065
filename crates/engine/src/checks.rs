//! Admission checks: which of them a Workload needs for the flavors it got, and what their states mean for it.
//!
//! A rule of a ClusterQueue names a check and the flavors that need it; a rule without flavors holds for all. A queue is
//! inactive while one of its checks is missing or not active. A head with a check that asks to start over, or that is
//! rejected, is not evaluated. A check that provides machines puts off the search for places in topologies to the
//! second pass. Source: docs/reference/kueue.md §2.3, §3.7, §4.2.
//!
//! Cost: a look at the rules of the queue per assignment; nothing where there are none.

use crate::dense_table::put;
use crate::ids::{CheckId, FlavorId, QueueId, WorkloadId};
use crate::queues::cluster_queue::ClusterQueueRecord;
use crate::spec::{AdmissionCheckRule, CheckSpec, CheckState, TopologyTiming};
use crate::state::State;
use crate::workloads::admission::Admission;
use crate::workloads::record::Workload;

pub(crate) fn rules(queue: &ClusterQueueRecord) -> &[AdmissionCheckRule] {
    queue.spec.as_ref().map_or(&[], |spec| &spec.checks)
}

pub(crate) fn applies(rule: &AdmissionCheckRule, flavor: FlavorId) -> bool {
    rule.flavors.is_empty() || rule.flavors.contains(&flavor)
}

pub(crate) fn binds(rule: &AdmissionCheckRule, admission: &Admission) -> bool {
    let mut resources = admission.pod_sets.iter().flat_map(|one| &one.resources);
    rule.flavors.is_empty() || resources.any(|&(_, flavor, _)| applies(rule, flavor))
}

/// See [`Engine::is_admitted`].
pub(crate) fn is_admitted(state: &State, id: WorkloadId) -> bool {
    let workload = state.workloads.at(id);
    let Some(admission) = workload.admission.as_deref() else {
        return false;
    };
    let waits =
        |rule: &AdmissionCheckRule| !workload.checks.contains(&(rule.check, CheckState::Ready));
    let mut rules = rules(state.queue(admission.queue)).iter();
    !rules.any(|rule| binds(rule, admission) && waits(rule)) && !state.second_passes.is_pending(id)
}

fn spec(state: &State, check: CheckId) -> Option<CheckSpec> {
    state.checks.get(check.index()).copied().flatten()
}

/// A check is new, changed, or gone: the queues that use it may become active, and those who wait there are woken.
pub(crate) fn set_check(state: &mut State, id: CheckId, check: Option<CheckSpec>) {
    if spec(state, id) == check {
        return;
    }
    put(&mut state.checks, id.index(), check);
    state.changes.request_rebuild();
    for index in 0..state.queues.len() {
        let queue = state.queues[index].as_ref();
        if queue.is_some_and(|queue| rules(queue).iter().any(|rule| rule.check == id)) {
            state.requeue_cohort_tree(QueueId::from(index));
        }
    }
}

/// A check of a queue that does not exist, or whose controller does not run.
pub(crate) fn inactive(state: &State, queue: &ClusterQueueRecord) -> Option<CheckId> {
    let active = |check| spec(state, check).is_some_and(|check| check.active);
    rules(queue).iter().map(|rule| rule.check).find(|&check| !active(check))
}

/// The check that sends a Workload back, or away.
pub(crate) fn failed(workload: &Workload) -> Option<CheckId> {
    let failed = |state| matches!(state, CheckState::Retry | CheckState::Rejected);
    workload.checks.iter().find(|(_, state)| failed(*state)).map(|(check, _)| *check)
}

/// When places for what gets this flavor are looked for: as late as the latest of its checks says.
pub(crate) fn topology_timing(state: &State, queue: QueueId, flavor: FlavorId) -> TopologyTiming {
    let rules = rules(state.queue(queue)).iter().filter(|rule| applies(rule, flavor));
    let places = rules.filter_map(|rule| spec(state, rule.check)).map(|check| check.places);
    places.max().unwrap_or_default()
}
