//! Admission checks: which ones a Workload needs for its flavors, and what their states mean.
//!
//! A rule of a ClusterQueue names a check and its flavors; a rule without flavors applies to all. A ClusterQueue is
//! inactive while one of its checks is missing or inactive. A head with a check in state Retry or Rejected is not
//! evaluated. A check that provides nodes delays the topology assignment to the second pass. Source:
//! docs/reference/kueue.md §2.3, §3.7, §4.2.
//!
//! Cost: one pass over the rules of the ClusterQueue per assignment.

use crate::dense_table::put;
use crate::ids::{CheckId, FlavorId, QueueId, WorkloadId};
use crate::queues::cluster_queue::ClusterQueueRecord;
use crate::spec::{AdmissionCheckRule, CheckSpec, CheckState, TopologyTiming};
use crate::state::State;
use crate::workloads::admission::Admission;
use crate::workloads::record::WorkloadRecord;

pub(crate) fn rules(queue: &ClusterQueueRecord) -> &[AdmissionCheckRule] {
    queue.spec.as_ref().map_or(&[], |spec| &spec.checks)
}

pub(crate) fn applies(rule: &AdmissionCheckRule, flavor: FlavorId) -> bool {
    rule.flavors.is_empty() || rule.flavors.contains(&flavor)
}

pub(crate) fn binds(rule: &AdmissionCheckRule, admission: &Admission) -> bool {
    let mut resources = admission.pod_sets.iter().flat_map(|one| &one.resources);
    // A rule for all flavors also binds a Workload without any flavor.
    rule.flavors.is_empty() || resources.any(|&(_, flavor, _)| applies(rule, flavor))
}

/// See [`Engine::is_admitted`].
pub(crate) fn is_admitted(state: &State, id: WorkloadId) -> bool {
    let workload = state.workloads.at(id);
    let Some(admission) = workload.admission.as_deref() else {
        return false;
    };
    let is_pending =
        |rule: &AdmissionCheckRule| !workload.checks.contains(&(rule.check, CheckState::Ready));
    let mut rules = rules(state.queue(admission.queue)).iter();
    // All checks Ready is not enough while a topology assignment is pending (§3.7).
    !rules.any(|rule| binds(rule, admission) && is_pending(rule))
        && !state.second_passes.is_pending(id)
}

fn spec(state: &State, check: CheckId) -> Option<CheckSpec> {
    state.checks.get(check.index()).copied().flatten()
}

/// Updates a check. ClusterQueues that use it may become active, and are requeued.
pub(crate) fn set_check(state: &mut State, id: CheckId, check: Option<CheckSpec>) {
    // A check that is observed again without a change requeues nothing.
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

/// A check of the ClusterQueue that does not exist or is inactive.
pub(crate) fn inactive(state: &State, queue: &ClusterQueueRecord) -> Option<CheckId> {
    let active = |check| spec(state, check).is_some_and(|check| check.active);
    rules(queue).iter().map(|rule| rule.check).find(|&check| !active(check))
}

/// A check of the Workload in state Retry or Rejected.
pub(crate) fn failed(workload: &WorkloadRecord) -> Option<CheckId> {
    let failed = |state| matches!(state, CheckState::Retry | CheckState::Rejected);
    workload.checks.iter().find(|(_, state)| failed(*state)).map(|(check, _)| *check)
}

/// When the topology of pods with this flavor is assigned: the latest timing of the checks that apply.
pub(crate) fn topology_timing(state: &State, queue: QueueId, flavor: FlavorId) -> TopologyTiming {
    let rules = rules(state.queue(queue)).iter().filter(|rule| applies(rule, flavor));
    let places = rules.filter_map(|rule| spec(state, rule.check)).map(|check| check.places);
    places.max().unwrap_or_default()
}
