//! Nodes that failed under reserving Workloads, and replacements that are not written yet.
//!
//! Until a replacement is written, the observed object still names the failed node; such an observation does not undo the
//! replacement. An attempt may be delayed after the first failure, so that nodes which fail together are found together.
//! Source: docs/reference/kueue.md §4.11.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::ids::{TopologyNodeId, WorkloadId};
use crate::spec::{AdmissionSpec, PodSetAdmission};
use crate::time::Time;
use crate::topology::DomainAssignment;
use crate::workloads::admission::AdmissionRecord;

/// A reserving Workload and the nodes that failed under it.
#[derive(Debug, Clone)]
pub(crate) struct NodeFailure {
    pub(crate) workload: WorkloadId,
    pub(crate) nodes: SmallVec<[TopologyNodeId; 1]>,
    /// The capacity generation of the last failed attempt.
    tried: Option<u64>,
    delay: AttemptDelay,
}

/// How far the delay before the first attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptDelay {
    /// No time was given since the failure was observed.
    New,
    Until(Time),
    Over,
}

/// Node failures and replacements of all Workloads.
#[derive(Debug, Default, Clone)]
pub(crate) struct NodeFailures {
    open: Vec<NodeFailure>,
    /// Counts how often capacity that may serve as a replacement was freed or added.
    capacity_generation: u64,
    /// The pod sets as they were assigned before their replacement.
    replacements: BTreeMap<WorkloadId, Vec<PodSetAdmission>>,
}

impl NodeFailures {
    /// Replaces the list of nodes that failed under a Workload; an empty list ends the failure. `is_delayed` is about the first
    /// attempt; a delay that has begun goes on when more nodes fail.
    pub(crate) fn set(
        &mut self,
        workload: WorkloadId,
        nodes: SmallVec<[TopologyNodeId; 1]>,
        is_delayed: bool,
    ) {
        let known = self.open.iter().find(|one| one.workload == workload).map(|one| one.delay);
        self.open.retain(|one| one.workload != workload);
        if !nodes.is_empty() {
            let first = if is_delayed { AttemptDelay::New } else { AttemptDelay::Over };
            let delay = known.unwrap_or(first);
            self.open.push(NodeFailure { workload, nodes, tried: None, delay });
        }
    }

    /// Begins delays, and ends those that are over. `delay` is in nanoseconds.
    pub(crate) fn pass_time(&mut self, now: Time, delay: i64) {
        for one in &mut self.open {
            match one.delay {
                AttemptDelay::New => {
                    one.delay = AttemptDelay::Until(Time(now.0.saturating_add(delay)));
                }
                AttemptDelay::Until(until) if until <= now => one.delay = AttemptDelay::Over,
                AttemptDelay::Until(_) | AttemptDelay::Over => {}
            }
        }
    }

    /// The earliest end of a delay; `now` if one has not begun.
    pub(crate) fn next_attempt(&self, now: Time) -> Option<Time> {
        let ends = self.open.iter().filter_map(|failure| match failure.delay {
            AttemptDelay::New => Some(now),
            AttemptDelay::Until(until) => Some(until),
            AttemptDelay::Over => None,
        });
        ends.min()
    }

    /// Removes a Workload that released its quota.
    pub(crate) fn remove(&mut self, workload: WorkloadId) {
        self.open.retain(|one| one.workload != workload);
        self.replacements.remove(&workload);
    }

    /// Whether a replacement is to be attempted in the next cycle.
    pub(crate) fn need_replacement(&self) -> bool {
        self.open.iter().any(|one| one.is_due(self.capacity_generation))
    }

    /// Notes that capacity was freed or added: failed attempts are repeated.
    pub(crate) fn capacity_changed(&mut self) {
        self.capacity_generation += 1;
    }

    /// Removes the failures to attempt now: their delay is over, and capacity changed since the last attempt.
    /// Failures that `keep` rejects are dropped.
    pub(crate) fn take_pending(&mut self, keep: impl Fn(&NodeFailure) -> bool) -> Vec<NodeFailure> {
        let mut open = std::mem::take(&mut self.open);
        open.retain(keep);
        let generation = self.capacity_generation;
        let (pending, later) = open.into_iter().partition(|one| one.is_due(generation));
        self.open = later;
        pending
    }

    /// Puts a failure back after a failed attempt; the next one needs a change of capacity.
    pub(crate) fn retry_later(&mut self, failure: NodeFailure) {
        let tried = Some(self.capacity_generation);
        self.open.push(NodeFailure { tried, ..failure });
    }

    /// Puts back failures that were not attempted.
    pub(crate) fn put_back(&mut self, failures: &mut Vec<NodeFailure>) {
        self.open.append(failures);
    }

    /// Records a replacement that is not written yet, with the pod sets as they were assigned before.
    pub(crate) fn replaced(&mut self, workload: WorkloadId, before: Vec<PodSetAdmission>) {
        self.replacements.insert(workload, before);
    }

    /// Forgets a replacement that is written.
    pub(crate) fn written(&mut self, workload: WorkloadId) {
        self.replacements.remove(&workload);
    }

    /// Applies a replacement that is not written yet to an observed admission. If the observed pods are neither where they
    /// were before nor where they are now, the observation wins and the replacement is dropped.
    pub(crate) fn complete(
        &mut self,
        id: WorkloadId,
        current: &AdmissionRecord,
        mut observed: AdmissionSpec,
    ) -> AdmissionSpec {
        let Some(before) = self.replacements.get(&id) else {
            return observed;
        };
        let (mut stale, mut elsewhere) = (Vec::new(), false);
        let pairs = before.iter().zip(&current.pod_sets).zip(&observed.pod_sets).enumerate();
        for (index, ((before, current), observed)) in pairs {
            let observed = pods_by_node(&observed.domains);
            if observed == pods_by_node(&current.domains) {
                continue;
            }
            // Observed from before the replacement: the pods stay where they were moved.
            stale.push((index, current.domains.clone()));
            elsewhere |= observed != pods_by_node(&before.domains);
        }
        // Another writer assigned the pods; the present replacement does not apply to its
        // assignment.
        if elsewhere {
            self.replacements.remove(&id);
            return observed;
        }
        for (index, domains) in stale {
            observed.pod_sets[index].domains = domains;
        }
        observed
    }
}

impl NodeFailure {
    /// Whether it is to be attempted. Without a change of capacity an attempt would fail again.
    fn is_due(&self, generation: u64) -> bool {
        self.delay == AttemptDelay::Over && self.tried != Some(generation)
    }
}

/// Number of pods by node name. API objects name nodes by hostname alone, the last value of a domain.
fn pods_by_node(domains: &[DomainAssignment]) -> BTreeMap<Option<&str>, i64> {
    let mut pods = BTreeMap::new();
    for one in domains {
        *pods.entry(one.values.last().map(AsRef::as_ref)).or_insert(0) += one.count;
    }
    pods
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::QueueId;
    use crate::time::Time;

    fn on(nodes: &[&str]) -> Vec<PodSetAdmission> {
        let place =
            |node: &&str| DomainAssignment { values: vec![(*node).into()].into(), count: 1 };
        vec![PodSetAdmission { domains: nodes.iter().map(place).collect(), ..Default::default() }]
    }

    fn admission(nodes: &[&str]) -> AdmissionSpec {
        let (queue, reserved_at) = (QueueId::from(0), Time(0));
        AdmissionSpec { queue, reserved_at, evicted: false, pod_sets: on(nodes) }
    }

    /// A Workload whose pod on node `a` was moved to `b`.
    fn replaced() -> (NodeFailures, AdmissionRecord) {
        let mut failures = NodeFailures::default();
        failures.replaced(WorkloadId::from(0), on(&["a", "c"]));
        let AdmissionSpec { queue, reserved_at, evicted, pod_sets } = admission(&["b", "c"]);
        let (taken_over, usage) = (false, Default::default());
        (failures, AdmissionRecord { queue, reserved_at, evicted, taken_over, usage, pod_sets })
    }

    #[test]
    fn an_observation_from_before_a_replacement_does_not_undo_it() {
        let (mut failures, current) = replaced();
        let id = WorkloadId::from(0);
        let observed = failures.complete(id, &current, admission(&["a", "c"]));
        assert_eq!(observed.pod_sets, on(&["b", "c"]));
        failures.written(id);
        let observed = failures.complete(id, &current, admission(&["a", "c"]));
        assert_eq!(observed.pod_sets, on(&["a", "c"]));
    }

    #[test]
    fn an_observation_of_other_nodes_overrides_the_replacement() {
        let (mut failures, current) = replaced();
        let id = WorkloadId::from(0);
        assert_eq!(
            failures.complete(id, &current, admission(&["d", "c"])).pod_sets,
            on(&["d", "c"])
        );
        let observed = failures.complete(id, &current, admission(&["a", "c"]));
        assert_eq!(observed.pod_sets, on(&["a", "c"]), "it is forgotten");
    }
}
