//! The topology layer: topologies, nodes, domain trees with their usage, and failed nodes.
//!
//! It reads the quota layer (flavors) and the workload layer (admissions to charge) and knows no queue. Reads go
//! through [`TopologyLayer::topologies`]; usage and nodes change only through methods of the layer. Source:
//! docs/reference/kueue.md §4.11.

use std::borrow::Cow;

use crate::ids::{FlavorId, TopologyId, TopologyNodeId};
use crate::names::Names;
use crate::quota::layer::QuotaLayer;
use crate::settings::EngineSettings;
use crate::spec::PodSetSpec;
use crate::topology::assignment_search::{
    AssignedLeaf, SearchBuffers, SearchTables, TasPodSetRequest, find_assignments,
};
use crate::topology::domain_tree::DomainTree;
use crate::topology::node_failures::NodeFailures;
use crate::topology::topologies::{NodeChange, Topologies};
use crate::topology::{PlacementFailure, TopologyLevels, TopologyNodeSpec};
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::equivalence_class::EquivalenceClass;
use crate::workloads::layer::WorkloadLayer;

/// Topologies, nodes and what is assigned to them.
#[derive(Debug, Default)]
pub(crate) struct TopologyLayer {
    topologies: Topologies,
    node_failures: NodeFailures,
    /// Result and buffers of the last search.
    search: SearchBuffers,
    before: Option<TopologyCheckpoint>,
}

/// The tables before a what-if.
#[derive(Debug)]
struct TopologyCheckpoint {
    /// `None` if there is neither a topology nor a node.
    topologies: Option<Topologies>,
    node_failures: NodeFailures,
}

impl TopologyLayer {
    /// Topologies, nodes and trees, as the last rebuild left them.
    pub(crate) fn topologies(&self) -> &Topologies {
        &self.topologies
    }

    /// The domain tree of a flavor, if it has a topology.
    pub(crate) fn tree(&self, flavor: FlavorId) -> Option<&DomainTree> {
        self.topologies.tree(flavor)
    }

    /// Whether any flavor has a tree.
    pub(crate) fn any(&self) -> bool {
        self.topologies.any()
    }

    /// Node failures of all Workloads.
    pub(crate) fn node_failures(&self) -> &NodeFailures {
        &self.node_failures
    }

    /// Node failures of all Workloads, for a change. The table keeps its own rules, and nothing else of the layer follows from it.
    pub(crate) fn node_failures_mut(&mut self) -> &mut NodeFailures {
        &mut self.node_failures
    }

    /// Replaces or removes a Topology.
    pub(crate) fn set_topology(&mut self, id: TopologyId, spec: Option<TopologyLevels>) {
        self.topologies.set_topology(id, spec);
    }

    /// Replaces or removes a node.
    pub(crate) fn set_node(
        &mut self,
        id: TopologyNodeId,
        spec: Option<TopologyNodeSpec>,
    ) -> NodeChange {
        self.topologies.set_node(id, spec)
    }

    /// Notes that flavors changed, so that the trees are rebuilt before they are used.
    pub(crate) fn mark_stale(&mut self) {
        self.topologies.mark_stale();
    }

    /// Rebuilds stale trees and charges all existing topology assignments.
    pub(crate) fn rebuild(
        &mut self,
        names: &Names,
        settings: &EngineSettings,
        quota: &QuotaLayer,
        workloads: &WorkloadLayer,
    ) {
        if self.topologies.is_stale() {
            build(&mut self.topologies, names, settings, quota, workloads);
        }
    }

    /// The topologies as the next search will see them.
    pub(super) fn up_to_date(
        &self,
        names: &Names,
        settings: &EngineSettings,
        quota: &QuotaLayer,
        workloads: &WorkloadLayer,
    ) -> Cow<'_, Topologies> {
        if !self.topologies.is_stale() {
            return Cow::Borrowed(&self.topologies);
        }
        let mut topologies = self.topologies.clone();
        build(&mut topologies, names, settings, quota, workloads);
        Cow::Owned(topologies)
    }

    /// Charges the topology assignment of an admission, unless another workload slice has taken it over.
    pub(crate) fn charge_admission(
        &mut self,
        admission: &AdmissionRecord,
        class: &EquivalenceClass,
    ) {
        self.topologies.charge_admission(admission, class);
    }

    /// Reverts [`TopologyLayer::charge_admission`].
    pub(crate) fn release_admission(
        &mut self,
        admission: &AdmissionRecord,
        class: &EquivalenceClass,
    ) {
        self.topologies.release_admission(admission, class);
    }

    /// Charges `count` pods of a pod set to their domain; a negative count releases.
    pub(crate) fn charge(
        &mut self,
        flavor: FlavorId,
        values: &[Box<str>],
        spec: &PodSetSpec,
        count: i64,
    ) {
        self.topologies.charge(flavor, values, spec, count);
    }

    /// Whether pods are to leave some node.
    pub(crate) fn has_leaving(&self) -> bool {
        self.topologies.has_leaving()
    }

    /// Whether pods are to leave some node of the tree of a flavor.
    pub(crate) fn has_leaving_in(&self, flavor: FlavorId) -> bool {
        self.topologies.has_leaving_in(flavor)
    }

    /// Begins a simulation: pods that are to leave their nodes have left them.
    pub(crate) fn release_leaving(&mut self) {
        self.topologies.change_leaving(1);
    }

    /// Ends the simulation.
    pub(crate) fn retain_leaving(&mut self) {
        self.topologies.change_leaving(-1);
    }

    /// Finds assignments for all requests: against current usage, or as if the topology were empty (`empty`).
    /// [`TopologyLayer::assigned`] has the result.
    ///
    /// # Errors
    /// The index of the pod set without an assignment, and the reason.
    pub(super) fn search(
        &mut self,
        names: &Names,
        settings: &EngineSettings,
        quota: &QuotaLayer,
        all: &[TasPodSetRequest<'_>],
        empty: bool,
    ) -> Result<(), (usize, PlacementFailure)> {
        let Self { topologies, search, .. } = self;
        find_assignments(SearchTables { names, settings, quota, topologies }, search, all, empty)
    }

    /// The leaves that the last search assigned.
    pub(super) fn assigned(&self) -> &[AssignedLeaf] {
        &self.search.assigned
    }

    /// Begins a what-if.
    pub(crate) fn begin_what_if(&mut self) {
        // The pattern names every table, so that a new one cannot be left out.
        let Self { topologies, node_failures, search: _, before } = self;
        *before = Some(TopologyCheckpoint {
            topologies: topologies.matter().then(|| topologies.clone()),
            node_failures: node_failures.clone(),
        });
    }

    /// Ends the what-if.
    pub(crate) fn undo_what_if(&mut self) {
        if let Some(TopologyCheckpoint { topologies, node_failures }) = self.before.take() {
            self.topologies = topologies.unwrap_or_default();
            self.node_failures = node_failures;
        }
    }
}

fn build(
    topologies: &mut Topologies,
    names: &Names,
    settings: &EngineSettings,
    quota: &QuotaLayer,
    workloads: &WorkloadLayer,
) {
    let by_node = settings.tas_node_feasibility_for_all_levels;
    topologies.build(quota.flavors(), names.resources.len(), by_node);
    if !topologies.any() {
        return;
    }
    // New trees have no usage, so every reservation is charged again.
    for (_, workload) in workloads.iter() {
        if let Some(admission) = workload.admission.as_deref() {
            topologies.charge_admission(admission, workloads.class_at(workload.class));
        }
    }
}
