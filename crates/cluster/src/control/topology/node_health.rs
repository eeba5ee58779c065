//! Which nodes failed under a Workload, and which of its pods can never be bound (docs/reference/kueue.md §4.11).
//!
//! A node fails at once if it is gone or has no condition Ready. One that is not Ready, or has a taint that the Workload does not
//! tolerate for ever, fails when no pod of the Workload runs there any more, and not while the taint is tolerated; without the gate
//! TASReplaceNodeOnPodTermination, or with TASReplaceNodeDueToNotReadyOverFixedTime, when it was not Ready for 30 seconds. Everything
//! is read from the present objects, so that nothing is remembered over a restart. While it is unknown whether pods tolerate a taint,
//! it decides nothing.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use ::jobs::{admitted_infos::AssignedFlavors, pod_tolerations::PodTolerations};
use config::gates::{Gate, Gates};
use crds::{
    meta::{Taint, Toleration},
    v1beta2::Workload,
};
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
    /// It is fine until this time: then a taint is not tolerated any more. Of several taints the earliest time counts.
    HealthyUntil(Reverse<Timestamp>),
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
            NodeHealth::Healthy | NodeHealth::HealthyUntil(_) | NodeHealth::Undecided => false,
            NodeHealth::FailingUntil(_) => self.on_pod_termination,
            NodeHealth::Failing | NodeHealth::Failed => true,
        }
    }

    /// The health of a node under a Workload.
    pub(super) fn health(
        self,
        node: &WatchedNode,
        pods: &WorkloadOnNode<'_>,
        now: Timestamp,
    ) -> NodeHealth {
        match node.readiness {
            Readiness::Unknown => NodeHealth::Failed,
            Readiness::NotReady(since) => self.not_ready(since, pods.run, now),
            Readiness::Ready => self.by_taints(node, pods, now),
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

    fn by_taints(
        self,
        node: &WatchedNode,
        pods: &WorkloadOnNode<'_>,
        now: Timestamp,
    ) -> NodeHealth {
        let taints = node.taints.iter().filter(|_| self.on_taints);
        let of_all = taints.flat_map(|taint| {
            pods.tolerations.iter().map(move |one| self.by_taint(taint, one, pods, now))
        });
        of_all.max().unwrap_or(NodeHealth::Healthy)
    }

    fn by_taint(
        self,
        taint: &Taint,
        tolerations: &PodTolerations,
        pods: &WorkloadOnNode<'_>,
        now: Timestamp,
    ) -> NodeHealth {
        let all = &tolerations.known;
        let lasting = all.iter().filter(|one| one.toleration_seconds.is_none()).cloned();
        if index::tolerates(&lasting.collect::<Vec<_>>(), taint) {
            return NodeHealth::Healthy;
        }
        if !tolerations.complete {
            return NodeHealth::Undecided;
        }
        // Pods have to start there before they can run there.
        let until = tolerated_until(taint, all, pods.admitted_at);
        if let Some(until) = until.filter(|until| *until > now) {
            return NodeHealth::HealthyUntil(Reverse(until));
        }
        // Without the gate nothing waits for the pods that run there and do not tolerate it at all.
        let waits = self.on_pod_termination || until.is_some();
        if pods.run && waits { NodeHealth::Failing } else { NodeHealth::Failed }
    }
}

/// Until when a taint is tolerated that is tolerated for some time. The time begins with the taint or with the admission: a pod that
/// comes to a node with a taint has all of it (docs/reference/kueue.md §4.11).
fn tolerated_until(
    taint: &Taint,
    tolerations: &[Toleration],
    admitted_at: Option<Timestamp>,
) -> Option<Timestamp> {
    let mut matching =
        tolerations.iter().filter(|one| index::tolerates(std::slice::from_ref(*one), taint));
    let seconds = matching.next()?.toleration_seconds?;
    let since = taint.time_added.as_ref().map(|time| time.0).max(admitted_at)?;
    Some(after(since, Duration::from_secs(u64::try_from(seconds).unwrap_or(0))))
}

/// What decides about a node under a Workload, beside the node.
#[derive(Debug)]
pub(super) struct WorkloadOnNode<'a> {
    /// Of the pod sets with pods there.
    pub(super) tolerations: Vec<&'a PodTolerations>,
    /// A pod of the Workload runs there.
    pub(super) run: bool,
    /// When the Workload was admitted.
    pub(super) admitted_at: Option<Timestamp>,
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
        node.taints.extend(taint);
        node
    }

    fn tolerates(seconds: Option<i64>) -> Vec<Toleration> {
        let (operator, key) = ("Exists".to_owned(), "broken".to_owned());
        vec![Toleration { operator, key, toleration_seconds: seconds, ..Toleration::default() }]
    }

    fn complete(known: &[Toleration]) -> PodTolerations {
        PodTolerations { known: known.to_vec(), complete: true }
    }

    /// Pods of a Workload that was admitted at 50 s.
    fn pods<'a>(tolerations: &[&'a PodTolerations], run: bool) -> WorkloadOnNode<'a> {
        WorkloadOnNode { tolerations: tolerations.to_vec(), run, admitted_at: Some(at(50)) }
    }

    #[test]
    fn a_node_without_a_condition_has_failed() {
        let unknown = node(Readiness::Unknown, None);
        assert_eq!(ALL.health(&unknown, &pods(&[], true), at(0)), NodeHealth::Failed);
    }

    #[test]
    fn a_node_that_is_not_ready_fails_with_its_last_pod_or_by_time() {
        let down = node(Readiness::NotReady(Some(at(100))), None);
        let health =
            |gates: NodeReplacementGates, runs, now| gates.health(&down, &pods(&[], runs), at(now));
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
            gates.health(&tainted, &pods(&[&complete(tolerations)], runs), at(350))
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
        assert_eq!(ALL.health(&soft, &pods(&[&complete(&[])], false), at(0)), NodeHealth::Healthy);
    }

    #[test]
    fn a_taint_fails_no_node_while_it_is_tolerated() {
        let health = |added: Option<i64>, now: i64| {
            let mut tainted = node(Readiness::Ready, Some("NoExecute"));
            tainted.taints[0].time_added =
                added.map(|added| k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(added)));
            let for_a_while = complete(&tolerates(Some(300)));
            [false, true].map(|run| ALL.health(&tainted, &pods(&[&for_a_while], run), at(now)))
        };
        let until = |second| [NodeHealth::HealthyUntil(Reverse(at(second))); 2];
        let over = [NodeHealth::Failed, NodeHealth::Failing];
        assert_eq!(health(Some(100), 399), until(400), "the taint came later");
        assert_eq!(health(Some(100), 400), over);
        assert_eq!(health(Some(0), 349), until(350), "the pods came later");
        assert_eq!(health(Some(0), 350), over);
        assert_eq!(health(None, 349), until(350));
        let [sooner, later] = [10, 20].map(|second| NodeHealth::HealthyUntil(Reverse(at(second))));
        assert!(sooner > later && later > NodeHealth::Healthy && sooner < NodeHealth::Undecided);
    }

    #[test]
    fn a_taint_decides_nothing_while_tolerations_are_unknown() {
        let unknown = PodTolerations::default();
        let health = |gates: NodeReplacementGates, node: &WatchedNode| {
            gates.health(node, &pods(&[&unknown], false), at(0))
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
        let health =
            |pod_sets: &[&PodTolerations]| ALL.health(&tainted, &pods(pod_sets, false), at(0));
        assert_eq!(health(&[&with_own(None)]), NodeHealth::Healthy, "nothing can undo it");
        assert_eq!(health(&[&with_own(Some(300))]), NodeHealth::Undecided);
        assert_eq!(health(&[&unknown, &complete(&[])]), NodeHealth::Failed);
    }
}
