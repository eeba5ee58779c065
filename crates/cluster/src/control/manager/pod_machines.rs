//! The machines of pods in the manager's own cluster: topologies, elastic jobs, failure recovery.

use std::sync::Arc;

use ::jobs::admitted_infos::AssignedFlavors;
use crds::names::gates;
use jiff::Timestamp;
use runtime::{watch::Change, writer::WriteOutcome};

use crate::control::{
    change::for_each_object,
    context::Context,
    elastic_pods::{ElasticPods, WatchedElasticPod},
    failure_recovery::{FailureRecovery, NodeReachability, WatchedTerminatingPod},
    measurement::Measurement,
    observed::Observed,
    outbox::{Purpose, Settled, Ticket},
    timers::Reevaluation,
    topology::{ClusterTopology, NodeReplacementGates, WatchedNode},
    workload_measurements::gate_removed,
    workloads::{WorkloadChange, Workloads},
};

/// The machines of pods in the manager's own cluster.
#[derive(Debug)]
pub(super) struct PodMachines {
    pub(super) topology: ClusterTopology,
    elastic: ElasticPods,
    failure_recovery: FailureRecovery,
}

impl PodMachines {
    pub(super) fn new(node_replacement: NodeReplacementGates) -> Self {
        Self {
            topology: ClusterTopology::new(node_replacement),
            elastic: ElasticPods::default(),
            failure_recovery: FailureRecovery::default(),
        }
    }

    /// Records a node of topologies; `None` if it is gone.
    pub(super) fn observe_node(&mut self, name: &str, node: Option<&Arc<Observed<WatchedNode>>>) {
        self.topology.observe_node(name, node.map(|node| node.content()));
    }

    /// Records pods of elastic jobs. They start later than everything else is decided, and change nothing of it.
    pub(super) fn elastic_pods(
        &mut self,
        change: Change<Observed<WatchedElasticPod>>,
        ctx: &mut Context,
    ) {
        for_each_object(change, |key, pod| self.elastic.observe_pod(&key, pod.as_ref(), ctx));
    }

    /// Records pods that may be deleted by force.
    pub(super) fn terminating_pods(
        &mut self,
        change: Change<Observed<WatchedTerminatingPod>>,
        ctx: &mut Context,
    ) {
        for_each_object(change, |key, pod| {
            self.failure_recovery.observe_pod(&key, pod.as_ref(), ctx);
        });
    }

    /// Records whether nodes are reachable.
    pub(super) fn nodes(&mut self, change: Change<Observed<NodeReachability>>, ctx: &mut Context) {
        for_each_object(change, |key, node| {
            let node = node.map(|node| *node.content());
            self.failure_recovery.observe_node(&key.name, node, ctx);
        });
    }

    /// Takes a change of a Workload.
    pub(super) fn workload_changed(&mut self, change: &WorkloadChange, ctx: &mut Context) {
        self.topology.workload_changed(change, ctx);
        self.elastic.workload_changed(change, ctx);
    }

    /// Takes the gates off pods, and ends those on unreachable nodes.
    pub(super) fn evaluate(
        &mut self,
        workloads: &Workloads,
        flavors: AssignedFlavors<'_>,
        ctx: &mut Context,
    ) {
        self.topology.ungate(workloads, flavors, ctx);
        self.elastic.ungate(workloads, ctx);
        self.failure_recovery.evaluate(ctx);
    }

    /// Whether writes with this purpose are those of a machine of pods.
    pub(super) fn writes(purpose: Purpose) -> bool {
        matches!(
            purpose,
            Purpose::UngateTopology
                | Purpose::TerminatePod
                | Purpose::UngateElastic
                | Purpose::ForcefullyEnd
                | Purpose::ForcefullyDelete
        )
    }

    /// Takes the answer to the write of a pod.
    pub(super) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        (settled, workloads): (&Settled, &Workloads),
        ctx: &mut Context,
    ) {
        if let WriteOutcome::Done(_) = answer {
            ctx.measurements.extend(self.measured(ticket, workloads, ctx.now));
        }
        match ticket.purpose {
            Purpose::UngateElastic => self.elastic.answered(ticket, answer, settled, ctx),
            Purpose::ForcefullyEnd | Purpose::ForcefullyDelete => {
                self.failure_recovery.answered(ticket, answer, settled, ctx);
            }
            _ => self.topology.answered(ticket, answer, settled, ctx),
        }
    }

    /// What a done write measures: the removal of a gate.
    fn measured(
        &self,
        ticket: &Ticket,
        workloads: &Workloads,
        now: Timestamp,
    ) -> Option<Measurement> {
        match (ticket.purpose, &ticket.waiter) {
            (Purpose::UngateTopology, Reevaluation::Ungating(name)) => {
                let workload = self.topology.workload_of_pods(name, workloads)?;
                gate_removed(gates::TOPOLOGY, workload, now)
            }
            (Purpose::UngateElastic, Reevaluation::ElasticPods(chain)) => {
                gate_removed(gates::ELASTIC_JOB, self.elastic.granting(chain, workloads)?, now)
            }
            _ => None,
        }
    }
}
