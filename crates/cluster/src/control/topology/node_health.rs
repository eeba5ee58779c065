//! Which nodes failed under a Workload, and which of its pods can never be bound (docs/reference/kueue.md §4.11).
//!
//! A node fails at once if it is gone or has no condition Ready. One that is not Ready, or has a taint that the Workload does not
//! tolerate for ever, fails when no pod of the Workload runs there any more; without the gate TASReplaceNodeOnPodTermination,
//! or with TASReplaceNodeDueToNotReadyOverFixedTime, when it was not Ready for 30 seconds. Everything is read from the present
//! objects, so that nothing is remembered over a restart. While it is unknown whether pods tolerate a taint, it decides nothing.

use std::{collections::BTreeMap, time::Duration};

use ::jobs::{admitted_infos::AssignedFlavors, pod_tolerations::PodTolerations};
use config::gates::{Gate, Gates};
use crds::{meta::Taint, v1beta2::Workload};
use index::status::nodes_of_pod_set;
use jiff::Timestamp;

use super::watched_node::{Readiness, WatchedNode};
use crate::control::{outbox::after, workloads::is_of_single_pod};

/// How long a node may be not Ready, where time decides.
const NODE_FAILURE_DELAY: Duration = Duration::from_secs(30);

/// What decides about failed nodes, by gate.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each gate is a switch of its own")]
pub(crate) struct NodeReplacementGates {
    /// `TASFailedNodeReplacement`.
    enabled: bool,
    /// `TASReplaceNodeOnPodTermination`.
    on_pod_termination: bool,
    /// `TASReplaceNodeOnNodeTaints`.
    on_taints: bool,
    /// `TASReplaceNodeDueToNotReadyOverFixedTime`.
    over_fixed_time: bool,
    /// `SkipReassignmentForPodOwnedWorkloads`.
    keeps_single_pods: bool,
}

impl From<&Gates> for NodeReplacementGates {
    fn from(gates: &Gates) -> Self {
        Self {
            enabled: gates.enabled(Gate::TopologyAwareScheduling)
                && gates.enabled(Gate::TASFailedNodeReplacement),
            on_pod_termination: gates.enabled(Gate::TASReplaceNodeOnPodTermination),
            on_taints: gates.enabled(Gate::TASReplaceNodeOnNodeTaints),
            over_fixed_time: gates.enabled(Gate::TASReplaceNodeDueToNotReadyOverFixedTime),
            keeps_single_pods: gates.enabled(Gate::SkipReassignmentForPodOwnedWorkloads),
        }
    }
}

/// A node under a Workload, from the best state to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeHealth {
    /// It is fine.
    Healthy,
    /// It has a taint, and it is unknown whether the Workload tolerates it: it is as the status says.
    Undecided,
    /// Pods of the Workload that run there keep it; others cannot be bound there.
    Failing,
    /// Pods of the Workload that run there keep it until this time: then it has failed.
    FailingUntil(Timestamp),
    /// It has failed.
    Failed,
}

impl NodeReplacementGates {
    pub(super) fn enabled(self) -> bool {
        self.enabled
    }

    /// Whether a Workload keeps its nodes when they fail. That of a single pod ends with the pod, which cannot move: another node
    /// would only be counted as used instead of the one where the pod is.
    pub(super) fn keeps_nodes(self, workload: &Workload) -> bool {
        self.keeps_single_pods && is_of_single_pod(workload)
    }

    /// Whether pods end that wait for a node of this health. Without the gate TASReplaceNodeOnPodTermination a node has time to
    /// recover, and pods wait for it: an end would cost their job a retry.
    pub(super) fn ends_waiting_pods(self, health: NodeHealth) -> bool {
        match health {
            NodeHealth::Healthy | NodeHealth::Undecided => false,
            NodeHealth::FailingUntil(_) => self.on_pod_termination,
            NodeHealth::Failing | NodeHealth::Failed => true,
        }
    }

    /// The health of a node for pod sets with these tolerations. `runs` says whether a pod of the Workload runs there.
    pub(super) fn health(
        self,
        node: &WatchedNode,
        pod_sets: &[&PodTolerations],
        runs: bool,
        now: Timestamp,
    ) -> NodeHealth {
        match node.readiness {
            Readiness::Unknown => NodeHealth::Failed,
            Readiness::NotReady(since) => self.not_ready(since, runs, now),
            Readiness::Ready => self.by_taints(node, pod_sets, runs),
        }
    }

    fn not_ready(self, since: Option<Timestamp>, runs: bool, now: Timestamp) -> NodeHealth {
        let over = after(since.unwrap_or(now), NODE_FAILURE_DELAY);
        let by_time = self.over_fixed_time || !self.on_pod_termination;
        match (by_time, self.on_pod_termination && !runs) {
            (_, true) => NodeHealth::Failed,
            (true, _) if over <= now => NodeHealth::Failed,
            (true, _) => NodeHealth::FailingUntil(over),
            (false, _) => NodeHealth::Failing,
        }
    }

    fn by_taints(self, node: &WatchedNode, pod_sets: &[&PodTolerations], runs: bool) -> NodeHealth {
        let taints = node.info.taints.iter().filter(|_| self.on_taints);
        let of_all = taints.flat_map(|taint| {
            pod_sets.iter().map(move |tolerations| self.by_taint(taint, tolerations, runs))
        });
        of_all.max().unwrap_or(NodeHealth::Healthy)
    }

    fn by_taint(self, taint: &Taint, tolerations: &PodTolerations, runs: bool) -> NodeHealth {
        let all = &tolerations.known;
        let lasting = all.iter().filter(|one| one.toleration_seconds.is_none()).cloned();
        if index::tolerates(&lasting.collect::<Vec<_>>(), taint) {
            return NodeHealth::Healthy;
        }
        if !tolerations.complete {
            return NodeHealth::Undecided;
        }
        // Without the gate nothing waits for the pods that run there and do not tolerate it at all.
        let waits = self.on_pod_termination || index::tolerates(all, taint);
        if runs && waits { NodeHealth::Failing } else { NodeHealth::Failed }
    }
}

/// The nodes that a Workload has pods on.
#[derive(Debug)]
pub(super) struct AssignedNodes {
    /// Pod sets by the hostname of their node.
    pub(super) by_hostname: BTreeMap<String, Vec<usize>>,
    /// By pod set.
    tolerations: Vec<PodTolerations>,
}

impl AssignedNodes {
    pub(super) fn of(workload: &Workload, flavors: AssignedFlavors<'_>) -> Self {
        let admission = workload.status.admission.iter();
        let assigned: Vec<_> = admission.flat_map(|one| &one.pod_set_assignments).collect();
        let mut by_hostname: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (pod_set, one) in assigned.iter().enumerate() {
            for hostname in nodes_of_pod_set(one) {
                let pod_sets = by_hostname.entry(hostname).or_default();
                if pod_sets.last() != Some(&pod_set) {
                    pod_sets.push(pod_set);
                }
            }
        }
        let tolerations =
            assigned.iter().map(|one| PodTolerations::of(workload, one, flavors)).collect();
        Self { by_hostname, tolerations }
    }

    /// Tolerations of these pod sets.
    pub(super) fn tolerations(&self, pod_sets: &[usize]) -> Vec<&PodTolerations> {
        pod_sets.iter().filter_map(|&one| self.tolerations.get(one)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crds::meta::Toleration;

    use super::*;

    const ALL: NodeReplacementGates = NodeReplacementGates {
        enabled: true,
        on_pod_termination: true,
        on_taints: true,
        over_fixed_time: false,
        keeps_single_pods: true,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn node(readiness: Readiness, taint: Option<&str>) -> WatchedNode {
        let mut node = WatchedNode { readiness, ..WatchedNode::default() };
        let taint = taint.map(|effect| Taint {
            key: "broken".to_owned(),
            effect: effect.to_owned(),
            value: String::new(),
            time_added: None,
        });
        node.info.taints.extend(taint);
        node
    }

    fn tolerates(seconds: Option<i64>) -> Vec<Toleration> {
        let (operator, key) = ("Exists".to_owned(), "broken".to_owned());
        vec![Toleration { operator, key, toleration_seconds: seconds, ..Toleration::default() }]
    }

    fn complete(known: &[Toleration]) -> PodTolerations {
        PodTolerations { known: known.to_vec(), complete: true }
    }

    #[test]
    fn a_node_without_a_condition_has_failed() {
        let unknown = node(Readiness::Unknown, None);
        assert_eq!(ALL.health(&unknown, &[], true, at(0)), NodeHealth::Failed);
    }

    #[test]
    fn a_node_that_is_not_ready_fails_with_its_last_pod_or_by_time() {
        let down = node(Readiness::NotReady(Some(at(100))), None);
        let health =
            |gates: NodeReplacementGates, runs, now| gates.health(&down, &[], runs, at(now));
        assert_eq!(health(ALL, true, 1000), NodeHealth::Failing);
        assert_eq!(health(ALL, false, 101), NodeHealth::Failed);
        let by_time = NodeReplacementGates { on_pod_termination: false, ..ALL };
        assert_eq!(health(by_time, false, 101), NodeHealth::FailingUntil(at(130)));
        assert_eq!(health(by_time, true, 130), NodeHealth::Failed);
        let either = NodeReplacementGates { over_fixed_time: true, ..ALL };
        assert_eq!(health(either, true, 101), NodeHealth::FailingUntil(at(130)));
        assert_eq!(health(either, false, 101), NodeHealth::Failed);
    }

    #[test]
    fn a_taint_fails_a_node_for_pods_that_do_not_tolerate_it() {
        let tainted = node(Readiness::Ready, Some("NoExecute"));
        let health = |gates: NodeReplacementGates, tolerations: &[Toleration], runs| {
            gates.health(&tainted, &[&complete(tolerations)], runs, at(0))
        };
        assert_eq!(health(ALL, &[], true), NodeHealth::Failing);
        assert_eq!(health(ALL, &[], false), NodeHealth::Failed);
        assert_eq!(health(ALL, &tolerates(None), false), NodeHealth::Healthy);
        assert_eq!(health(ALL, &tolerates(Some(300)), true), NodeHealth::Failing);
        assert_eq!(health(ALL, &tolerates(Some(300)), false), NodeHealth::Failed);
        let without = NodeReplacementGates { on_taints: false, ..ALL };
        assert_eq!(health(without, &[], false), NodeHealth::Healthy);
        let at_once = NodeReplacementGates { on_pod_termination: false, ..ALL };
        assert_eq!(health(at_once, &[], true), NodeHealth::Failed);
        let soft = node(Readiness::Ready, Some("PreferNoSchedule"));
        assert_eq!(ALL.health(&soft, &[&complete(&[])], false, at(0)), NodeHealth::Healthy);
    }

    #[test]
    fn a_taint_decides_nothing_while_tolerations_are_unknown() {
        let unknown = PodTolerations::default();
        let health = |gates: NodeReplacementGates, node: &WatchedNode| {
            gates.health(node, &[&unknown], false, at(0))
        };
        let tainted = node(Readiness::Ready, Some("NoSchedule"));
        assert_eq!(health(ALL, &tainted), NodeHealth::Undecided);
        let without = NodeReplacementGates { on_taints: false, ..ALL };
        assert_eq!(health(without, &tainted), NodeHealth::Healthy);
        let soft = node(Readiness::Ready, Some("PreferNoSchedule"));
        assert_eq!(health(ALL, &soft), NodeHealth::Healthy);
        let down = node(Readiness::NotReady(None), Some("NoSchedule"));
        assert_eq!(health(ALL, &down), NodeHealth::Failed, "no toleration matters");
        let with_own = |seconds| PodTolerations { known: tolerates(seconds), complete: false };
        let health = |pod_sets: &[&PodTolerations]| ALL.health(&tainted, pod_sets, false, at(0));
        assert_eq!(health(&[&with_own(None)]), NodeHealth::Healthy, "nothing can undo it");
        assert_eq!(health(&[&with_own(Some(300))]), NodeHealth::Undecided);
        assert_eq!(health(&[&unknown, &complete(&[])]), NodeHealth::Failed);
    }
}
