//! The quota layer: the cohort tree with usage, the cohorts, the ResourceFlavors, and changes that the next cycle applies.
//!
//! It is the lowest layer and knows no Workload and no ClusterQueue beyond its id. Reads go through
//! [`QuotaLayer::tree`]; usage and configuration change only through methods of the layer. A search changes usage
//! within a simulation and rewinds it. Source: docs/reference/kueue.md §4.3.

use std::sync::Arc;

use crate::amount::Amount;
use crate::dense_table::DenseTable;
use crate::ids::{CohortId, FlavorId, NodeId, QueueId, ResourceId, Slot};
use crate::names::Names;
use crate::quota::changes::{ConfigurationChanges, PendingChanges};
use crate::quota::journal::SimulationMark;
use crate::quota::tree::{QuotaTree, SlotQuota};
use crate::spec::{ClusterQueueInfo, CohortInfo, FairSharingWeight, FlavorSpec, ResourceGroupSpec};

/// Quotas, usage and flavors.
#[derive(Debug, Default)]
pub(crate) struct QuotaLayer {
    tree: QuotaTree,
    /// Tree node of each cohort.
    cohorts: DenseTable<CohortId, Option<NodeId>>,
    /// Each cohort that is an object, as it was observed last.
    objects: DenseTable<CohortId, Option<Arc<CohortInfo>>>,
    flavors: DenseTable<FlavorId, Option<FlavorSpec>>,
    changes: ConfigurationChanges,
    before: Option<QuotaCheckpoint>,
}

/// The small tables before a what-if, and the mark of the usage journal.
#[derive(Debug)]
struct QuotaCheckpoint {
    mark: SimulationMark,
    cohorts: DenseTable<CohortId, Option<NodeId>>,
    objects: DenseTable<CohortId, Option<Arc<CohortInfo>>>,
    flavors: DenseTable<FlavorId, Option<FlavorSpec>>,
    changes: ConfigurationChanges,
}

impl QuotaLayer {
    /// The cohort tree with quotas and usage.
    #[inline]
    pub(crate) fn tree(&self) -> &QuotaTree {
        &self.tree
    }

    /// A ResourceFlavor, if it exists.
    pub(crate) fn flavor(&self, id: FlavorId) -> Option<&FlavorSpec> {
        self.flavors.find(id)
    }

    /// All ResourceFlavors by id.
    pub(crate) fn flavors(&self) -> &DenseTable<FlavorId, Option<FlavorSpec>> {
        &self.flavors
    }

    /// The tree node of a cohort that any object referred to.
    pub(crate) fn cohort(&self, id: CohortId) -> Option<NodeId> {
        self.cohorts.get(id).copied().flatten()
    }

    /// Whether a cohort was observed like this last; `None` without an object.
    pub(crate) fn is_known_cohort(&self, id: CohortId, object: Option<&CohortInfo>) -> bool {
        self.objects.find(id).map(Arc::as_ref) == object
    }

    /// The name of a node's ClusterQueue or cohort.
    pub(crate) fn node_name<'a>(&self, names: &'a Names, node: NodeId) -> &'a str {
        if let Some(queue) = self.tree.node(node).queue {
            return names.queues.name(queue);
        }
        let cohort = self.cohorts.ids().find(|&id| self.cohorts[id] == Some(node));
        cohort.map_or("", |id| names.cohorts.name(id))
    }
}

/// Configuration. Sums and heights follow in the next cycle.
impl QuotaLayer {
    /// Replaces or removes a ResourceFlavor.
    pub(crate) fn set_flavor(&mut self, id: FlavorId, spec: Option<FlavorSpec>) {
        *self.flavors.entry(id) = spec;
    }

    /// A node for a ClusterQueue without quota.
    pub(crate) fn add_cluster_queue(&mut self, id: QueueId) -> NodeId {
        self.tree.add_node(Some(id))
    }

    /// Replaces quotas, weight and cohort of a ClusterQueue. With `same_groups` its quotas are unchanged, and flavor
    /// scans go on unless the cohort changes.
    pub(crate) fn set_cluster_queue(
        &mut self,
        node: NodeId,
        spec: &ClusterQueueInfo,
        same_groups: bool,
    ) {
        let parent = spec.cohort.map(|cohort| self.cohort_node(cohort));
        let quotas = self.slot_quotas(&spec.groups);
        self.note_child_left(node);
        let moves = self.tree.parent(node) != parent;
        // Quotas of the former tree and of the new one change, too, if the ClusterQueue moves.
        if moves || !same_groups {
            self.note_quota_change(node);
        }
        self.tree.set_quotas(node, spec.weight, &quotas);
        if moves {
            self.tree.set_parent(node, parent);
        }
        self.changes.node_changed(node);
    }

    /// Removes quotas and cohort of a deleted ClusterQueue. Its usage stays until the reservations are released.
    pub(crate) fn remove_cluster_queue(&mut self, node: NodeId) {
        self.note_child_left(node);
        self.note_quota_change(node);
        self.tree.set_quotas(node, FairSharingWeight::default(), &[]);
        self.tree.set_parent(node, None);
        self.changes.node_changed(node);
    }

    /// Replaces quotas, weight and parent of a cohort, which has none of them without an object. Returns its node and its former
    /// parent; `None` if nothing changed.
    pub(crate) fn set_cohort(
        &mut self,
        id: CohortId,
        object: Option<CohortInfo>,
    ) -> Option<(NodeId, Option<NodeId>)> {
        if self.is_known_cohort(id, object.as_ref()) {
            return None;
        }
        let node = self.cohort_node(id);
        let former = self.tree.parent(node);
        let object = object.map(Arc::new);
        let spec = object.clone().unwrap_or_default();
        *self.objects.entry(id) = object;
        let parent = spec.parent.map(|parent| self.cohort_node(parent));
        let quotas = self.slot_quotas(&spec.groups);
        self.note_child_left(node);
        self.note_quota_change(node);
        self.tree.set_quotas(node, spec.weight, &quotas);
        self.tree.set_parent(node, parent);
        self.changes.node_changed(node);
        Some((node, former))
    }

    /// The node of a cohort, created on first reference: a cohort needs no object of its own.
    fn cohort_node(&mut self, id: CohortId) -> NodeId {
        if let Some(node) = self.cohort(id) {
            return node;
        }
        let node = self.tree.add_node(None);
        *self.cohorts.entry(id) = Some(node);
        node
    }

    fn slot_quotas(&mut self, groups: &[ResourceGroupSpec]) -> Vec<SlotQuota> {
        let mut quotas = Vec::new();
        for one in groups.iter().flat_map(|group| &group.flavors) {
            for quota in &one.resources {
                quotas.push(SlotQuota {
                    slot: self.tree.slot(one.flavor, quota.resource),
                    nominal: quota.nominal,
                    borrowing_limit: quota.borrowing_limit,
                    lending_limit: quota.lending_limit,
                });
            }
        }
        quotas
    }

    /// Notes that quotas or parent of a node change: flavor scans start again, also in the tree that it leaves.
    fn note_quota_change(&mut self, node: NodeId) {
        self.changes.quotas_changed(node, self.tree.parent(node));
    }

    fn note_child_left(&mut self, node: NodeId) {
        if let Some(parent) = self.tree.parent(node) {
            self.changes.child_left(parent);
        }
    }

    /// The slot of a (flavor, resource), created if it is new.
    pub(crate) fn slot(&mut self, flavor: FlavorId, resource: ResourceId) -> Slot {
        self.tree.slot(flavor, resource)
    }

    /// Notes that flavors or topologies changed, so that every ClusterQueue is concerned.
    pub(crate) fn note_flavor_change(&mut self) {
        self.changes.flavors_changed();
    }

    /// Requests a rebuild although no node changed, e.g. after a change of an AdmissionCheck.
    pub(crate) fn request_rebuild(&mut self) {
        self.changes.request_rebuild();
    }

    /// Whether the next cycle has to apply configuration changes.
    pub(crate) fn needs_rebuild(&self) -> bool {
        self.changes.need_rebuild()
    }

    /// Recomputes subtree quotas, local quotas and the usage of cohorts.
    pub(crate) fn rebuild(&mut self) {
        self.tree.rebuild();
    }

    /// Ranks nodes by name after nodes were added, so that names need not be compared later.
    pub(crate) fn rank(&mut self, names: &Names) {
        let nodes = self.tree.ids().len();
        if !self.changes.take_unranked(nodes) {
            return;
        }
        let queue = |node| Some((names.queues.name(self.tree.node(node).queue?), node));
        let cohort = |id: CohortId| Some((names.cohorts.name(id), self.cohort(id)?));
        let mut named: Vec<(&str, NodeId)> = Vec::with_capacity(nodes);
        named.extend(self.tree.ids().filter_map(queue));
        named.extend(self.cohorts.ids().filter_map(cohort));
        named.sort_unstable();
        let order: Vec<NodeId> = named.into_iter().map(|(_, node)| node).collect();
        self.tree.rank(&order);
    }

    /// Recomputes heights, in which only ClusterQueues count for which `counts` holds.
    pub(crate) fn rebuild_heights(&mut self, counts: &impl Fn(QueueId) -> bool) {
        self.tree.rebuild_heights(counts);
    }

    /// Ends the rebuild and returns what ClusterQueues have to apply.
    pub(crate) fn take_changes(&mut self) -> PendingChanges {
        self.changes.take()
    }
}

/// Usage.
impl QuotaLayer {
    /// Charges `usage` to a ClusterQueue.
    #[inline]
    pub(crate) fn charge(&mut self, leaf: NodeId, usage: &[(Slot, Amount)]) {
        self.tree.charge(leaf, usage);
    }

    /// Releases what [`QuotaLayer::charge`] charged.
    #[inline]
    pub(crate) fn uncharge(&mut self, leaf: NodeId, usage: &[(Slot, Amount)]) {
        self.tree.uncharge(leaf, usage);
    }

    /// Releases and charges the same amounts, see [`QuotaTree::recharge`].
    pub(crate) fn recharge(&mut self, leaf: NodeId, usage: &[(Slot, Amount)]) {
        self.tree.recharge(leaf, usage);
    }

    /// Begins a simulation and returns the mark to rewind usage to. Simulations nest.
    #[inline]
    pub(crate) fn begin_simulation(&mut self) -> SimulationMark {
        self.tree.begin_simulation()
    }

    /// Rewinds usage to `mark` and ends the simulation.
    #[inline]
    pub(crate) fn end_simulation(&mut self, mark: SimulationMark) {
        self.tree.rewind(mark);
        self.tree.close_simulation();
    }

    /// Ends a simulation after its changes were undone one by one, see [`QuotaTree::settle`].
    pub(crate) fn settle_simulation(&mut self, mark: SimulationMark) {
        self.tree.settle(mark);
    }

    /// Rewinds usage towards `mark` by about the changes of `heads` heads. Returns true when `mark` is reached; the
    /// simulation stays open.
    pub(crate) fn rewind_some(&mut self, mark: SimulationMark, heads: usize) -> bool {
        self.tree.rewind_some(mark, heads)
    }

    /// Begins a what-if.
    pub(crate) fn begin_what_if(&mut self) {
        // The pattern names every table, so that a new one cannot be left out.
        let Self { tree, cohorts, objects, flavors, changes, before } = self;
        *before = Some(QuotaCheckpoint {
            mark: tree.begin_what_if(),
            cohorts: cohorts.clone(),
            objects: objects.clone(),
            flavors: flavors.clone(),
            changes: changes.clone(),
        });
    }

    /// Ends the what-if: restores configuration and usage.
    pub(crate) fn undo_what_if(&mut self) {
        if let Some(QuotaCheckpoint { mark, cohorts, objects, flavors, changes }) =
            self.before.take()
        {
            self.tree.undo_what_if(mark);
            (self.cohorts, self.objects) = (cohorts, objects);
            (self.flavors, self.changes) = (flavors, changes);
        }
    }
}
