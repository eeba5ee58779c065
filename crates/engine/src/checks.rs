//! Admission checks: which ones a Workload needs for its flavors, and what their states mean.
//!
//! A rule of a ClusterQueue names a check and its flavors; a rule without flavors applies to all. A ClusterQueue is
//! inactive while one of its checks is missing or inactive. A head with a check in state Retry or Rejected is not
//! evaluated. A check that provides nodes delays the topology assignment to the second pass. Source:
//! docs/reference/kueue.md §2.3, §3.7, §4.2.
//!
//! Cost: one pass over the rules of the ClusterQueue per assignment.

use crate::ids::{CheckId, FlavorId, QueueId, WorkloadId};
use crate::queues::cluster_queue::ClusterQueueRecord;
use crate::queues::layer::QueueLayer;
use crate::spec::{AdmissionCheckRule, CheckState, PodSetAdmission, TopologyTiming};
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::WorkloadRecord;

pub(crate) fn rules(queue: &ClusterQueueRecord) -> &[AdmissionCheckRule] {
    queue.spec.as_ref().map_or(&[], |spec| &spec.checks)
}

pub(crate) fn applies(rule: &AdmissionCheckRule, flavor: FlavorId) -> bool {
    rule.flavors.is_empty() || rule.flavors.contains(&flavor)
}

pub(crate) fn binds(rule: &AdmissionCheckRule, admission: &AdmissionRecord) -> bool {
    let mut flavors = admission.pod_sets.iter().flat_map(PodSetAdmission::flavors);
    // A rule for all flavors also binds a Workload without any flavor.
    rule.flavors.is_empty() || flavors.any(|flavor| applies(rule, flavor))
}

/// See [`Engine::is_admitted`].
pub(crate) fn is_admitted(queues: &QueueLayer, workloads: &WorkloadLayer, id: WorkloadId) -> bool {
    let workload = workloads.at(id);
    let Some(admission) = workload.admission.as_deref() else {
        return false;
    };
    let is_pending =
        |rule: &AdmissionCheckRule| !workload.checks.contains(&(rule.check, CheckState::Ready));
    let mut rules = rules(queues.at(admission.queue)).iter();
    // All checks Ready is not enough while a topology assignment is pending (§3.7).
    !rules.any(|rule| binds(rule, admission) && is_pending(rule))
        && !workloads.second_passes().is_pending(id)
}

/// A check of the ClusterQueue that does not exist or is inactive.
pub(crate) fn inactive(queues: &QueueLayer, queue: &ClusterQueueRecord) -> Option<CheckId> {
    let active = |check| queues.check(check).is_some_and(|check| check.active);
    rules(queue).iter().map(|rule| rule.check).find(|&check| !active(check))
}

/// A check of the Workload in state Retry or Rejected.
pub(crate) fn failed(workload: &WorkloadRecord) -> Option<CheckId> {
    // Retry starts the checks over and Rejected ends in deactivation; both precede a new attempt
    // (§2.3).
    let failed = |state| matches!(state, CheckState::Retry | CheckState::Rejected);
    workload.checks.iter().find(|(_, state)| failed(*state)).map(|(check, _)| *check)
}

/// When the topology of pods with this flavor is assigned: the latest timing of the checks that apply.
pub(crate) fn topology_timing(
    queues: &QueueLayer,
    queue: QueueId,
    flavor: FlavorId,
) -> TopologyTiming {
    let rules = rules(queues.at(queue)).iter().filter(|rule| applies(rule, flavor));
    let timings = rules.filter_map(|rule| queues.check(rule.check)).map(|check| check.topology);
    timings.max().unwrap_or_default()
}
