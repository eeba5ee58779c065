//! Machines that failed under holders, and moves away from them that are not written yet.
//!
//! What is told of a Workload before its move is written still names the machine; it does not take the move back.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::ids::{TopologyNodeId, WorkloadId};
use crate::spec::{AdmissionSpec, PodSetAdmission};
use crate::topology::DomainAssignment;
use crate::workloads::admission::Admission;

/// A holder and the machines that failed under it.
#[derive(Debug, Clone)]
pub(crate) struct NodeFailure {
    pub(crate) workload: WorkloadId,
    pub(crate) hosts: SmallVec<[TopologyNodeId; 1]>,
    /// What had been freed when it was last looked at in vain.
    pub(crate) tried: Option<u64>,
}

/// Where a Workload stood before it was moved away from a machine.
#[derive(Debug, Clone)]
pub(crate) struct PodMove {
    pub(crate) host: TopologyNodeId,
    pub(crate) before: Vec<PodSetAdmission>,
}

/// Everybody whose machine failed.
#[derive(Debug, Default, Clone)]
pub(crate) struct NodeFailures {
    pub(crate) open: Vec<NodeFailure>,
    /// How often something was freed or added that may serve as a replacement.
    pub(crate) freed: u64,
    moves: BTreeMap<WorkloadId, PodMove>,
}

impl NodeFailures {
    /// All machines that failed under a Workload.
    pub(crate) fn set(&mut self, workload: WorkloadId, hosts: SmallVec<[TopologyNodeId; 1]>) {
        self.open.retain(|one| one.workload != workload);
        if !hosts.is_empty() {
            self.open.push(NodeFailure { workload, hosts, tried: None });
        }
    }

    /// The Workload holds nothing any more.
    pub(crate) fn forget(&mut self, workload: WorkloadId) {
        self.open.retain(|one| one.workload != workload);
        self.moves.remove(&workload);
    }

    /// Whether anybody is to be looked at.
    pub(crate) fn are_due(&self) -> bool {
        self.open.iter().any(|one| one.tried != Some(self.freed))
    }

    pub(crate) fn freed(&mut self) {
        self.freed += 1;
    }

    pub(crate) fn moved(&mut self, workload: WorkloadId, from: PodMove) {
        self.moves.insert(workload, from);
    }

    /// What was decided is written.
    pub(crate) fn written(&mut self, workload: WorkloadId) {
        self.moves.remove(&workload);
    }

    /// The move that is not written yet, and will not be.
    pub(crate) fn take_move(&mut self, workload: WorkloadId) -> Option<PodMove> {
        self.moves.remove(&workload)
    }

    /// What is told of an admission, with the places of a move that is not written yet. Who is told to stand somewhere
    /// else altogether has not been moved.
    pub(crate) fn with_moves(
        &mut self,
        id: WorkloadId,
        current: &Admission,
        mut told: AdmissionSpec,
    ) -> AdmissionSpec {
        let Some(from) = self.moves.get(&id) else {
            return told;
        };
        let (mut stale, mut elsewhere) = (Vec::new(), false);
        let pairs = from.before.iter().zip(&current.pod_sets).zip(&told.pod_sets).enumerate();
        for (index, ((before, current), told)) in pairs {
            let told = machines(&told.domains);
            if told == machines(&before.domains) {
                stale.push((index, current.domains.clone()));
            } else {
                elsewhere |= told != machines(&current.domains);
            }
        }
        if elsewhere {
            self.moves.remove(&id);
            return told;
        }
        for (index, domains) in stale {
            told.pod_sets[index].domains = domains;
        }
        told
    }
}

/// Pods by machine. Assignments of API objects name machines by host name alone.
fn machines(domains: &[DomainAssignment]) -> BTreeMap<Option<&str>, i64> {
    let mut machines = BTreeMap::new();
    for one in domains {
        *machines.entry(one.values.last().map(AsRef::as_ref)).or_insert(0) += one.count;
    }
    machines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::QueueId;
    use crate::time::Time;

    fn on(hosts: &[&str]) -> Vec<PodSetAdmission> {
        let place =
            |host: &&str| DomainAssignment { values: vec![(*host).into()].into(), count: 1 };
        vec![PodSetAdmission { domains: hosts.iter().map(place).collect(), ..Default::default() }]
    }

    fn told(hosts: &[&str]) -> AdmissionSpec {
        let (queue, reserved_at) = (QueueId::from(0), Time(0));
        AdmissionSpec { queue, reserved_at, evicted: false, pod_sets: on(hosts) }
    }

    /// A Workload that was moved from `a` to `b`.
    fn moved() -> (NodeFailures, Admission) {
        let mut failures = NodeFailures::default();
        let from = PodMove { host: TopologyNodeId::from(0), before: on(&["a", "c"]) };
        failures.moved(WorkloadId::from(0), from);
        let AdmissionSpec { queue, reserved_at, evicted, pod_sets } = told(&["b", "c"]);
        let (taken_over, usage) = (false, Default::default());
        (failures, Admission { queue, reserved_at, evicted, taken_over, usage, pod_sets })
    }

    #[test]
    fn what_is_told_from_before_a_move_does_not_take_it_back() {
        let (mut failures, current) = moved();
        let id = WorkloadId::from(0);
        let heard = failures.with_moves(id, &current, told(&["a", "c"]));
        assert_eq!(heard.pod_sets, on(&["b", "c"]));
        failures.written(id);
        let heard = failures.with_moves(id, &current, told(&["a", "c"]));
        assert_eq!(heard.pod_sets, on(&["a", "c"]));
    }

    #[test]
    fn who_is_told_to_stand_elsewhere_does() {
        let (mut failures, current) = moved();
        let id = WorkloadId::from(0);
        assert_eq!(failures.with_moves(id, &current, told(&["d", "c"])).pod_sets, on(&["d", "c"]));
        assert!(failures.take_move(id).is_none());
    }
}
