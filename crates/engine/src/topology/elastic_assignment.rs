//! Topology assignments of elastic jobs: a workload slice that replaces another keeps the leaves of the replaced
//! slice.
//!
//! Only the additional pods are searched for; if the new slice is smaller, the last leaves lose pods. A leader
//! keeps its leaf too. If a leaf of the replaced slice no longer exists, or pods do not fill whole topology slices,
//! all pods of the group are assigned again, and may use what the replaced slice has. Required and preferred topologies are
//! refused, because pods added later could not satisfy them. Until the new slice is assigned, the replaced slice is charged and
//! the new one only counts for its additional pods; from then on the new slice is charged as a whole ([`crate::slices`]). Gate
//! ElasticJobsViaWorkloadSlicesWithTAS. Source: docs/reference/kueue.md §4.11, §4.13.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cycle::entry::CycleEntry;
use crate::flavors::assignment::Assignment;
use crate::ids::{DomainId, WorkloadId};
use crate::reason::NoFitReason;
use crate::settings::EngineSettings;
use crate::slices;
use crate::spec::{PodSetAdmission, PodSetSpec};
use crate::state::State;
use crate::topology::domain_tree::DomainTree;
use crate::topology::{DomainAssignment, TopologyMode};
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::equivalence_class::{EquivalenceClass, members, worker_pod_set};
use crate::workloads::layer::WorkloadLayer;

/// What an assignment takes over of the slice that it replaces.
#[derive(Debug, Default)]
pub(super) struct RetainedAssignments {
    /// Retained leaves and pods by pod set.
    leaves: Vec<RetainedLeaves>,
    /// Pod sets of which all pods are assigned again.
    reassigned: SmallVec<[usize; 2]>,
    /// What the replaced slice has for these, and its class.
    freed: Option<Box<(AdmissionRecord, Arc<EquivalenceClass>)>>,
}

/// Leaves and pods that one pod set retains.
pub(super) type RetainedLeaves = SmallVec<[(DomainId, i64); 4]>;

impl RetainedAssignments {
    /// What an assignment retains of the slice that it replaces; nothing if it replaces none.
    pub(super) fn of(
        state: &State,
        class: &EquivalenceClass,
        replaced_slice: Option<WorkloadId>,
        assignment: &Assignment,
    ) -> Self {
        let gate = state.settings.elastic_jobs_via_workload_slices_with_tas;
        let Some(old) = replaced_slice.filter(|_| gate) else {
            return Self::default();
        };
        let count = assignment.pod_sets.len();
        let mut all = Self { leaves: vec![RetainedLeaves::new(); count], ..Self::default() };
        for first in 0..count {
            let group = members(class, first);
            if group[0] != first {
                continue;
            }
            match predict_group(state, class, assignment, old, &group) {
                Some(found) => {
                    found.into_iter().for_each(|(at, retained)| all.leaves[at] = retained);
                }
                None => all.reassigned.extend(group),
            }
        }
        all.freed = freed(state, class, old, &all.reassigned);
        all
    }

    /// Whether all pods of a pod set are assigned again.
    pub(super) fn is_reassigned(&self, pod_set: usize) -> bool {
        self.reassigned.contains(&pod_set)
    }

    /// Calls `evaluate` while the replaced slice is not charged for pods that are assigned again: they move, so that their own
    /// places are free for them.
    pub(super) fn without_reassigned<T>(
        &self,
        state: &mut State,
        evaluate: impl FnOnce(&mut State) -> T,
    ) -> T {
        let Some((admission, class)) = self.freed.as_deref() else {
            return evaluate(state);
        };
        state.topology.release_admission(admission, class);
        let result = evaluate(state);
        state.topology.charge_admission(admission, class);
        result
    }

    pub(super) fn get(&self, pod_set: usize) -> &[(DomainId, i64)] {
        self.leaves.get(pod_set).map(RetainedLeaves::as_slice).unwrap_or_default()
    }

    pub(super) fn pods(&self, pod_set: usize) -> i64 {
        self.get(pod_set).iter().map(|one| one.1).sum()
    }
}

/// The admission of the replaced slice with the domains of these pod sets alone; `None` if there are none.
fn freed(
    state: &State,
    class: &EquivalenceClass,
    old: WorkloadId,
    pod_sets: &[usize],
) -> Option<Box<(AdmissionRecord, Arc<EquivalenceClass>)>> {
    // A slice that a simulation removes is not charged.
    if pod_sets.is_empty() || state.workloads.at(old).removed {
        return None;
    }
    let mut admission = state.workloads.admission(old)?.clone();
    let old_class = state.class_of(old);
    let is_freed = |name: &str| pod_sets.iter().any(|&at| *class.pod_sets[at].name == *name);
    for (one, spec) in admission.pod_sets.iter_mut().zip(&old_class.pod_sets) {
        if !is_freed(&spec.name) {
            one.domains.clear();
        }
    }
    Some(Box::new((admission, old_class)))
}

/// What a pod set group retains; `None` if all its pods are assigned again.
fn predict_group(
    state: &State,
    class: &EquivalenceClass,
    assignment: &Assignment,
    old: WorkloadId,
    group: &[usize],
) -> Option<Vec<(usize, RetainedLeaves)>> {
    let count = |at: usize| assignment.pod_sets.get(at).map_or(0, |one| one.count);
    let workers = worker_pod_set(group, count)?;
    let mut found = Vec::new();
    for &at in group {
        let spec = &class.pod_sets[at];
        let retained = previous_leaves(state, assignment, old, at, spec)?;
        let before: i64 = retained.iter().map(|one| one.1).sum();
        let fills_slices = |pods: i64| slice_size(spec).is_none_or(|size| pods % size == 0);
        // The kept leaves hold whole slices, before and after; otherwise all pods are assigned
        // again.
        if at == workers && (before == 0 || !fills_slices(before) || !fills_slices(count(at))) {
            return None;
        }
        found.push((at, first_pods(retained, count(at))));
    }
    Some(found)
}

fn slice_size(spec: &PodSetSpec) -> Option<i64> {
    let slices = spec.topology.iter().flat_map(|topology_request| &topology_request.slices);
    slices.map(|one| one.1.max(1)).next()
}

/// Leaves of the replaced slice's pods in a pod set; `None` if one of them no longer exists.
fn previous_leaves(
    state: &State,
    assignment: &Assignment,
    old: WorkloadId,
    at: usize,
    spec: &PodSetSpec,
) -> Option<RetainedLeaves> {
    let mut flavors =
        assignment.pod_sets.get(at)?.flavor_assignments.iter().map(|choice| choice.flavor);
    let Some(tree) = flavors.find_map(|flavor| state.topology.tree(flavor)) else {
        return Some(RetainedLeaves::new());
    };
    let domains = slices::pod_set_admission(&state.workloads, old, &spec.name)
        .map(PodSetAdmission::used_domains);
    let leaf = |place: &DomainAssignment| Some((tree.leaf(&place.values)?, place.count));
    domains.unwrap_or_default().iter().map(leaf).collect()
}

/// The first `pods` pods, in leaf order.
fn first_pods(retained: RetainedLeaves, mut pods: i64) -> RetainedLeaves {
    let mut first = RetainedLeaves::new();
    for (leaf, count) in retained {
        let count = count.min(pods);
        pods -= count;
        first.extend((count > 0).then_some((leaf, count)));
    }
    first
}

/// The reason why a pod set of an elastic job cannot use TAS: required and preferred topologies cannot grow.
pub(super) fn unsupported_constraint(
    class: &EquivalenceClass,
    spec: &PodSetSpec,
) -> Option<NoFitReason> {
    match spec.topology.as_ref().filter(|_| class.elastic_topology)?.mode.as_ref()? {
        TopologyMode::Required(_) => Some(NoFitReason::ElasticConstraint { required: true }),
        TopologyMode::Preferred(_) => Some(NoFitReason::ElasticConstraint { required: false }),
        TopologyMode::Unconstrained => None,
    }
}

/// The admission of the replaced slice's pod set; its pods keep their domains. `None` without the gate.
pub(super) fn previous_pod_set<'a>(
    settings: &EngineSettings,
    workloads: &'a WorkloadLayer,
    entry: &CycleEntry,
    pod_set: usize,
) -> Option<&'a PodSetAdmission> {
    let old =
        entry.replaced_slice.filter(|_| settings.elastic_jobs_via_workload_slices_with_tas)?;
    slices::pod_set_admission(workloads, old, &entry.class.pod_sets[pod_set].name)
}

/// Pods in a domain beyond those that the replaced slice has there.
pub(super) fn pods_beyond_previous(
    tree: &DomainTree,
    previous: Option<&PodSetAdmission>,
    domain: &DomainAssignment,
) -> i64 {
    let Some(previous) = previous else { return domain.count };
    let leaf = tree.leaf(&domain.values);
    let in_leaf = previous.used_domains().iter().filter(|one| tree.leaf(&one.values) == leaf);
    (domain.count - in_leaf.map(|one| one.count).sum::<i64>()).max(0)
}
