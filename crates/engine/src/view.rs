//! Read-only queries on the present tables, answered in a stable order.

use std::collections::BTreeMap;

use crate::admission_fair_sharing::FairSharingUsage;
use crate::amount::{Amount, NanoAmount};
use crate::checks::{binds, is_admitted, rules};
use crate::engine::Engine;
use crate::event::Event;
use crate::flavors::assignment::PodSetFlavorAssignment;
use crate::ids::{
    CheckId, CohortId, EquivalenceClassId, FlavorId, LocalQueueId, QueueId, ResourceId, WorkloadId,
};
use crate::quota::dominant_share::share;
use crate::slices::SliceClaims;
use crate::spec::{AdmissionCheckRule, AdmissionSpec, FairSharingWeight, PodSetAdmission};
use crate::state::State;
use crate::time::Time;
use crate::topology::{DomainAssignment, HOSTNAME_LABEL};

/// A topology assignment in the terms of the API object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedTopology {
    /// Node labels of the levels, from the top down.
    pub levels: Vec<String>,
    /// Per domain: values of these labels, and number of pods.
    pub domains: Vec<(Vec<String>, i64)>,
}

impl Engine {
    /// Active Workloads of a ClusterQueue, in queue order.
    pub fn active_workloads(&self, queue: QueueId) -> Vec<WorkloadId> {
        self.state.queues.at(queue).pending.active(&self.state.workloads)
    }

    /// Inadmissible Workloads of a ClusterQueue, in queue order.
    pub fn inadmissible_workloads(&self, queue: QueueId) -> Vec<WorkloadId> {
        self.state.queues.at(queue).pending.inadmissible(&self.state.workloads)
    }

    /// The equivalence class of a Workload.
    pub fn equivalence_class(&self, workload: WorkloadId) -> EquivalenceClassId {
        self.state.workloads.at(workload).class
    }

    /// Whether a Workload is a slice that replaces another one. Others of its equivalence class say nothing about it.
    pub fn is_replacement(&self, workload: WorkloadId) -> bool {
        self.state.workloads.class(workload).replaced_slice.is_some()
    }

    /// Workloads with a reservation in a ClusterQueue, by name.
    pub fn reserving_workloads(&self, queue: QueueId) -> Vec<WorkloadId> {
        let names = &self.state.names.workloads;
        let mut ids = self.state.queues.at(queue).reserving.clone();
        ids.sort_by(|&left, &right| names.name(left).cmp(names.name(right)));
        ids
    }

    /// Admitted pod sets of a Workload; `None` without a reservation.
    pub fn admission(&self, workload: WorkloadId) -> Option<&[PodSetAdmission]> {
        let admission = self.state.workloads.admission(workload)?;
        Some(&admission.pod_sets)
    }

    /// Whether a node with this hostname and these labels is in a domain that the reservation of a Workload assigns.
    pub fn assigns_node(
        &self,
        workload: WorkloadId,
        hostname: &str,
        labels: &BTreeMap<String, String>,
    ) -> bool {
        let State { quota, topology, .. } = &self.state;
        let levels = |flavor| topology.topologies().levels(quota.flavor(flavor)?.topology?);
        let is_at = |level: &str, value: &str| labels.get(level).is_some_and(|one| *one == *value);
        let pod_sets = self.admission(workload).unwrap_or_default();
        pod_sets.iter().any(|pod_set| {
            let levels = pod_set.flavors().find_map(levels).unwrap_or_default();
            let is_in = |values: &[Box<str>]| match levels.last() {
                Some(last) if **last != *HOSTNAME_LABEL => {
                    levels.iter().zip(values).all(|(level, value)| is_at(level, value))
                }
                // A node is identified by its hostname alone.
                _ => values.last().is_some_and(|last| **last == *hostname),
            };
            pod_set.domains.iter().any(|domain| is_in(&domain.values))
        })
    }

    /// The reservation of a Workload as a spec for another engine.
    pub fn admission_spec(&self, workload: WorkloadId) -> Option<AdmissionSpec> {
        let admission = self.state.workloads.admission(workload)?;
        Some(AdmissionSpec {
            queue: admission.queue,
            reserved_at: admission.reserved_at,
            evicted: admission.evicted,
            pod_sets: admission.pod_sets.clone(),
        })
    }

    /// A pod set's topology assignment in the API object's terms: only the hostname if that is the lowest level.
    pub fn topology_assignment(
        &self,
        pod_set: &PodSetFlavorAssignment,
    ) -> Option<AssignedTopology> {
        let flavors = pod_set.flavor_assignments.iter().map(|choice| choice.flavor);
        self.assigned_topology(flavors, &pod_set.domains)
    }

    /// The topology assignment of a pod set of a Workload that holds quota.
    pub fn held_topology_assignment(&self, pod_set: &PodSetAdmission) -> Option<AssignedTopology> {
        self.assigned_topology(pod_set.flavors(), &pod_set.domains)
    }

    fn assigned_topology(
        &self,
        mut flavors: impl Iterator<Item = FlavorId>,
        domains: &[DomainAssignment],
    ) -> Option<AssignedTopology> {
        let topologies = self.state.topology.topologies();
        let tree = flavors.find_map(|flavor| topologies.tree(flavor))?;
        // The API stores only the hostname where that is the lowest level (docs/reference/kueue.md
        // §1.2).
        let skip = if tree.leaves_are_nodes() { tree.levels.len() - 1 } else { 0 };
        let text = |all: &[Box<str>]| all[skip..].iter().map(ToString::to_string).collect();
        // Of an admission that was read, a domain may have the hostname alone.
        let values = |domain: &DomainAssignment| {
            if domain.values.len() == tree.levels.len() {
                text(&domain.values)
            } else {
                domain.values.iter().map(ToString::to_string).collect()
            }
        };
        let domains = domains.iter().map(|one| (values(one), one.count)).collect();
        Some(AssignedTopology { levels: text(&tree.levels), domains })
    }

    /// Whether the pods of a Workload would get a topology assignment in a flavor now. Cost: one search.
    pub fn finds_topology_assignment(&mut self, workload: WorkloadId, flavor: FlavorId) -> bool {
        let known = self.state.workloads.get(workload).is_some();
        known && crate::topology::finds_topology_assignment(&mut self.state, workload, flavor)
    }

    /// Whether a Workload is being evicted.
    pub fn is_evicted(&self, workload: WorkloadId) -> bool {
        let workload = self.state.workloads.get(workload);
        workload.and_then(|one| one.admission.as_deref()).is_some_and(|one| one.evicted)
    }

    /// Usage of a ClusterQueue; zeros are left out.
    pub fn queue_usage(&self, queue: QueueId) -> Vec<(FlavorId, ResourceId, Amount)> {
        self.state.quota.tree().amounts(self.state.queues.at(queue).node, |cell| cell.usage)
    }

    /// The place of a ClusterQueue in its tree, from the root down: `/root/cohort/queue`.
    pub fn cohort_path(&self, queue: QueueId) -> String {
        let (quota, names) = (&self.state.quota, &self.state.names);
        let mut nodes = vec![self.state.queues.at(queue).node];
        let mut next = nodes.first().and_then(|&node| quota.tree().parent(node));
        // A cohort may be its own ancestor.
        while let Some(node) = next.filter(|node| !nodes.contains(node)) {
            nodes.push(node);
            next = quota.tree().parent(node);
        }
        let parts = nodes.iter().rev().map(|&node| format!("/{}", quota.node_name(names, node)));
        parts.collect()
    }

    /// The weighted share of a ClusterQueue, in thousandths; infinite if it borrows with weight 0.
    pub fn queue_weighted_share(&self, queue: QueueId) -> f64 {
        share(self.state.quota.tree(), self.state.queues.at(queue).node).weighted()
    }

    /// The weighted share of a cohort, like that of a ClusterQueue; 0 for an unknown one.
    pub fn cohort_weighted_share(&self, cohort: CohortId) -> f64 {
        let node = self.state.quota.cohort(cohort);
        node.map_or(0.0, |node| share(self.state.quota.tree(), node).weighted())
    }

    /// Checks that a Workload needs for its flavors, by name; none without a reservation.
    pub fn required_checks(&self, workload: WorkloadId) -> Vec<CheckId> {
        let workload = self.state.workloads.get(workload);
        let Some(admission) = workload.and_then(|one| one.admission.as_deref()) else {
            return Vec::new();
        };
        self.checks_where(admission.queue, |rule| binds(rule, admission))
    }

    /// Whether a Workload is admitted: it has a reservation, all its checks are ready, and no topology assignment is
    /// delayed.
    pub fn is_admitted(&self, id: WorkloadId) -> bool {
        self.state.workloads.get(id).is_some()
            && is_admitted(&self.state.queues, &self.state.workloads, id)
    }

    fn checks_where(
        &self,
        queue: QueueId,
        needs: impl Fn(&AdmissionCheckRule) -> bool,
    ) -> Vec<CheckId> {
        let rules = rules(self.state.queues.at(queue)).iter().filter(|rule| needs(rule));
        let mut checks: Vec<CheckId> = rules.map(|rule| rule.check).collect();
        let names = &self.state.names.checks;
        checks.sort_by(|&left, &right| names.name(left).cmp(names.name(right)));
        checks.dedup();
        checks
    }

    /// The slice with a reservation that replaces `old`. When its reservation is written, the old slice is to be finished.
    pub fn replacement_slice(&self, old: WorkloadId) -> Option<WorkloadId> {
        self.slice_claims()?.replacement_slice(old)
    }

    /// The slice with a reservation that `new` replaces.
    pub fn replaced_slice(&self, new: WorkloadId) -> Option<WorkloadId> {
        self.slice_claims()?.replaced_reservation(new)
    }

    fn slice_claims(&self) -> Option<SliceClaims<'_>> {
        let State { names, workloads, .. } = &self.state;
        workloads.has_claims().then(|| SliceClaims::new(names, workloads))
    }

    /// Whether an event repeats what is known, and changes nothing: a Cohort with a new status alone.
    pub fn is_repetition(&self, event: &Event) -> bool {
        match event {
            Event::Cohort(id, object) => self.state.quota.is_known_cohort(*id, object.as_ref()),
            _ => false,
        }
    }

    /// Consumption of a LocalQueue, rounded down, and the time of the last update.
    pub fn consumed_resources(
        &self,
        id: LocalQueueId,
    ) -> (Vec<(ResourceId, NanoAmount)>, Option<Time>) {
        self.state.queues.ledger().consumed(id)
    }

    /// Weighted consumption of a LocalQueue, including entry penalties.
    pub fn fair_sharing_usage(&self, id: LocalQueueId) -> FairSharingUsage {
        let spec = self.state.queues.local_queue(id);
        self.state
            .queues
            .ledger()
            .usage(id, spec.map_or(FairSharingWeight::default(), |spec| spec.weight))
    }
}
