//! Read-only questions about the present state, answered in a stable order.

use crate::admission_fair_sharing::FairSharingUsage;
use crate::amount::Amount;
use crate::checks::{applies, binds, is_admitted, rules};
use crate::engine::Engine;
use crate::flavors::assignment::PodSetAssignment;
use crate::ids::{
    CheckId, CohortId, FlavorId, LocalQueueId, NodeId, QueueId, ResourceId, WorkloadId,
};
use crate::pending::is_in_backoff;
use crate::slices::{replacement_slice, whom};
use crate::spec::{AdmissionCheckRule, AdmissionSpec, FairSharingWeight, PodSetAdmission};
use crate::time::Time;

/// Where the pods of a pod set go, in the terms of an API object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedTopology {
    /// Node labels of the levels.
    pub levels: Vec<String>,
    /// Values of these labels, and how many pods.
    pub domains: Vec<(Vec<String>, i64)>,
}

impl Engine {
    /// Workloads of a queue that are evaluated in coming cycles, in queue order.
    pub fn active_workloads(&self, queue: QueueId) -> Vec<WorkloadId> {
        self.state.queue(queue).pending.active(&self.state.workloads)
    }

    /// Workloads of a queue that wait for something to change, in queue order.
    pub fn inadmissible_workloads(&self, queue: QueueId) -> Vec<WorkloadId> {
        self.state.queue(queue).pending.inadmissible(&self.state.workloads)
    }

    /// Workloads that hold quota in a queue, by name.
    pub fn reserving_workloads(&self, queue: QueueId) -> Vec<WorkloadId> {
        let names = &self.state.names.workloads;
        let mut ids = self.state.queue(queue).reserving.clone();
        ids.sort_by(|&left, &right| names.name(left).cmp(names.name(right)));
        ids
    }

    /// What a Workload holds.
    pub fn admission(&self, workload: WorkloadId) -> Option<&[PodSetAdmission]> {
        let admission = self.state.workloads.get(workload)?.admission.as_deref()?;
        Some(&admission.pod_sets)
    }

    /// What a Workload holds, in the form in which it can be told to another engine.
    pub fn admission_spec(&self, workload: WorkloadId) -> Option<AdmissionSpec> {
        let admission = self.state.workloads.get(workload)?.admission.as_deref()?;
        Some(AdmissionSpec {
            queue: admission.queue,
            reserved_at: admission.reserved_at,
            evicted: admission.evicted,
            pod_sets: admission.pod_sets.clone(),
        })
    }

    /// A placement as an API object names it: only the host name if the lowest level has it.
    pub fn topology_assignment(&self, pod_set: &PodSetAssignment) -> Option<AssignedTopology> {
        let topologies = &self.state.topologies;
        let tree =
            pod_set.flavor_assignments.iter().find_map(|choice| topologies.tree(choice.flavor))?;
        let skip = if tree.leaves_are_nodes() { tree.levels.len() - 1 } else { 0 };
        let text = |all: &[Box<str>]| all[skip..].iter().map(ToString::to_string).collect();
        let domains = pod_set.domains.iter().map(|one| (text(&one.values), one.count)).collect();
        Some(AssignedTopology { levels: text(&tree.levels), domains })
    }

    /// Whether the pods of a Workload would find places among the machines of a flavor now. Cost: one search.
    pub fn finds_topology_assignment(&mut self, workload: WorkloadId, flavor: FlavorId) -> bool {
        let known = self.state.workloads.get(workload).is_some();
        known && crate::topology::finds_topology_assignment(&mut self.state, workload, flavor)
    }

    /// Whether a Workload is being evicted.
    pub fn is_evicted(&self, workload: WorkloadId) -> bool {
        let workload = self.state.workloads.get(workload);
        workload.and_then(|one| one.admission.as_deref()).is_some_and(|one| one.evicted)
    }

    /// What is charged to a queue.
    pub fn queue_usage(&self, queue: QueueId) -> Vec<(FlavorId, ResourceId, Amount)> {
        self.usage(self.state.queue(queue).node)
    }

    /// What is charged to a cohort (an id of [`crate::Names::cohorts`]); nothing for an unknown one.
    pub fn cohort_usage(&self, cohort: CohortId) -> Vec<(FlavorId, ResourceId, Amount)> {
        let node = self.state.cohorts.get(cohort.index()).copied().flatten();
        node.map(|node| self.usage(node)).unwrap_or_default()
    }

    fn usage(&self, node: NodeId) -> Vec<(FlavorId, ResourceId, Amount)> {
        let tree = &self.state.tree;
        let row = tree.row(node).iter().enumerate();
        let used = row.filter(|(_, cell)| cell.usage != Amount::ZERO);
        used.map(|(slot, cell)| {
            let (flavor, resource) = tree.pair(slot.into());
            (flavor, resource, cell.usage)
        })
        .collect()
    }
}

impl Engine {
    /// When a cycle or a second pass may decide something although nothing happened: the end of a backoff, or another
    /// attempt to find places.
    pub fn next_deadline(&self) -> Option<Time> {
        let mut backoffs = self.state.backoffs.iter();
        let backoff =
            backoffs.find(|(end, id)| is_in_backoff(&self.state, *id, *end)).map(|(end, _)| end);
        backoff.into_iter().chain(self.state.second_passes.next()).min()
    }
}

impl Engine {
    /// Checks that a Workload of a queue needs whatever flavors it gets, by name: those that bind every flavor.
    pub fn checks_for_every_flavor(&self, queue: QueueId) -> Vec<CheckId> {
        let groups = self.state.queue(queue).groups.iter();
        let flavors: Vec<FlavorId> = groups.flat_map(|group| group.flavors.clone()).collect();
        self.checks_where(queue, |rule| flavors.iter().all(|&flavor| applies(rule, flavor)))
    }

    /// Checks that a Workload needs for the flavors it holds, by name; none if it holds nothing.
    pub fn required_checks(&self, workload: WorkloadId) -> Vec<CheckId> {
        let workload = self.state.workloads.get(workload);
        let Some(admission) = workload.and_then(|one| one.admission.as_deref()) else {
            return Vec::new();
        };
        self.checks_where(admission.queue, |rule| binds(rule, admission))
    }

    /// Whether a Workload is admitted with the quota it holds: it passed every check it needs, and no second pass has
    /// to find places for it.
    pub fn is_admitted(&self, id: WorkloadId) -> bool {
        self.state.workloads.get(id).is_some() && is_admitted(&self.state, id)
    }

    fn checks_where(
        &self,
        queue: QueueId,
        needs: impl Fn(&AdmissionCheckRule) -> bool,
    ) -> Vec<CheckId> {
        let rules = rules(self.state.queue(queue)).iter().filter(|rule| needs(rule));
        let mut checks: Vec<CheckId> = rules.map(|rule| rule.check).collect();
        let names = &self.state.names.checks;
        checks.sort_by(|&left, &right| names.name(left).cmp(names.name(right)));
        checks.dedup();
        checks
    }
}

impl Engine {
    /// The slice that took over what a holder has: whoever knows that the new one's quota is written finishes the old one.
    pub fn replacement_slice(&self, old: WorkloadId) -> Option<WorkloadId> {
        if self.state.slices.is_empty() { None } else { replacement_slice(&self.state, old) }
    }

    /// The slice whose quota a holder took over.
    pub fn replaced_slice(&self, new: WorkloadId) -> Option<WorkloadId> {
        if self.state.slices.is_empty() { None } else { whom(&self.state, new) }
    }
}

impl Engine {
    /// What a LocalQueue has consumed, rounded down, and up to when that is known.
    pub fn consumed_resources(
        &self,
        id: LocalQueueId,
    ) -> (Vec<(ResourceId, Amount)>, Option<Time>) {
        self.state.ledger.consumed(id)
    }

    /// How much a LocalQueue has consumed for its weight, penalties included.
    pub fn fair_sharing_usage(&self, id: LocalQueueId) -> FairSharingUsage {
        let spec = self.state.local_queues.get(id.index()).and_then(Option::as_ref);
        self.state.ledger.usage(id, spec.map_or(FairSharingWeight::default(), |spec| spec.weight))
    }
}
