//! All topologies, nodes and domain trees, and their usage.
//!
//! The usage of a node is shared by all trees that contain it; the usage of any other leaf belongs to its tree. A
//! change of a node's resources updates the trees in place; a change of the set of nodes, or of their labels, marks
//! the trees stale, and they are rebuilt before the next cycle.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::dense_table::DenseTable;
use crate::ids::{DomainId, FlavorId, PODS, ResourceId, TopologyId, TopologyNodeId};
use crate::spec::{FlavorSpec, PodSetAdmission, PodSetSpec};
use crate::topology::domain_tree::{DomainTree, TreeSource};
use crate::topology::resource_table::ResourceTable;
use crate::topology::{TopologyLevels, TopologyMode, TopologyNodeSpec};
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::equivalence_class::EquivalenceClass;

/// Whether a flavor can serve a topology request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopologySupport {
    Supported,
    NoTopology,
    NoLevel,
    TopologyOnly,
}

/// The row that pods of a domain are charged to.
#[derive(Debug, Clone, Copy)]
pub(super) enum UsageLocation {
    /// A node: the same in every tree that contains it.
    Node(TopologyNodeId),
    /// A leaf that aggregates nodes of its tree.
    Leaf(DomainId),
}

/// Topologies, nodes and domain trees of all flavors.
#[derive(Debug, Default, Clone)]
pub(crate) struct Topologies {
    specs: DenseTable<TopologyId, Option<TopologyLevels>>,
    nodes: DenseTable<TopologyNodeId, Option<TopologyNodeSpec>>,
    /// Whether a node has taints.
    tainted: DenseTable<TopologyNodeId, bool>,
    /// Nodes that pods are to leave.
    left: BTreeSet<TopologyNodeId>,
    trees: DenseTable<FlavorId, Option<DomainTree>>,
    /// TAS usage of nodes.
    used: ResourceTable,
    /// The trees must be rebuilt.
    stale: bool,
}

impl Topologies {
    /// Whether any topology or node was ever set.
    pub(super) fn matter(&self) -> bool {
        self.specs.len() > 0 || self.nodes.len() > 0 || self.stale
    }

    /// Notes that the trees must be rebuilt.
    pub(super) fn mark_stale(&mut self) {
        self.stale = true;
    }

    /// Whether the trees must be rebuilt.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    pub(super) fn set_topology(&mut self, id: TopologyId, spec: Option<TopologyLevels>) {
        *self.specs.entry(id) = spec;
        self.stale = true;
    }

    pub(super) fn set_node(
        &mut self,
        id: TopologyNodeId,
        spec: Option<TopologyNodeSpec>,
    ) -> NodeChange {
        *self.tainted.entry(id) = spec.as_ref().is_some_and(|one| !one.taints.is_empty());
        if spec.as_ref().is_some_and(|one| !one.leaving.is_empty()) {
            self.left.insert(id)
        } else {
            self.left.remove(&id)
        };
        let old = std::mem::replace(self.nodes.entry(id), spec);
        match (&old, &self.nodes[id]) {
            // In the trees, a node that stays at its leaves can change only their capacity; no
            // rebuild is needed.
            (Some(old), Some(new)) if stays_at_its_leaves(old, new) => {
                for tree in self.trees.rows_mut().flatten() {
                    tree.replace_capacity(id, old, new);
                }
                change(old, new)
            }
            _ => {
                self.stale = true;
                NodeChange::Changed
            }
        }
    }

    /// Whether pods are to leave some node.
    pub(super) fn has_leaving(&self) -> bool {
        !self.left.is_empty()
    }

    /// Whether pods are to leave some node of the tree of a flavor.
    pub(super) fn has_leaving_in(&self, flavor: FlavorId) -> bool {
        self.left.iter().any(|&node| self.has_node(flavor, node))
    }

    /// Adds what leaving pods take to the capacity of their leaves; subtracts it again if `sign` is negative.
    pub(super) fn change_leaving(&mut self, sign: i64) {
        let Self { left, nodes, trees, .. } = self;
        for &id in left.iter() {
            let Some(node) = nodes.find(id) else { continue };
            for tree in trees.rows_mut().flatten() {
                tree.change_leaving(id, node, sign);
            }
        }
    }

    /// Whether the tree of a flavor contains a node, or a leaf that aggregates it.
    pub(crate) fn has_node(&self, flavor: FlavorId, node: TopologyNodeId) -> bool {
        self.tree(flavor).is_some_and(|tree| tree.leaf_of_node(node).is_some())
    }

    /// The node labels of the levels of a topology, from the top down.
    pub(crate) fn levels(&self, id: TopologyId) -> Option<&[Box<str>]> {
        Some(&self.specs.find(id)?.levels)
    }

    pub(crate) fn exists(&self, id: TopologyId) -> bool {
        self.specs.find(id).is_some()
    }

    pub(super) fn is_tainted(&self, id: TopologyNodeId) -> bool {
        self.tainted.get(id).copied().unwrap_or_default()
    }

    pub(crate) fn node(&self, id: TopologyNodeId) -> Option<&TopologyNodeSpec> {
        self.nodes.find(id)
    }

    /// All known nodes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (TopologyNodeId, &TopologyNodeSpec)> {
        self.nodes.ids().filter_map(|id| Some((id, self.nodes.find(id)?)))
    }

    pub(crate) fn tree(&self, flavor: FlavorId) -> Option<&DomainTree> {
        self.trees.find(flavor)
    }

    /// Whether any flavor has a tree.
    pub(crate) fn any(&self) -> bool {
        self.trees.rows().any(Option::is_some)
    }

    /// Builds all trees without usage, for `width` known resources.
    pub(super) fn build(
        &mut self,
        flavors: &DenseTable<FlavorId, Option<FlavorSpec>>,
        width: usize,
        by_node: bool,
    ) {
        self.stale = false;
        self.used.reset(self.nodes.len(), width);
        let Self { specs, nodes, .. } = self;
        let trees = flavors.rows().map(|flavor| {
            let flavor = flavor.as_ref()?;
            let topology = flavor.topology?;
            let spec = specs.find(topology)?;
            let source = TreeSource { topology, spec, flavor };
            Some(DomainTree::build(source, nodes, width, by_node))
        });
        self.trees = trees.collect();
    }

    /// Whether a flavor's topology can serve a pod set, where `covered` resources get that flavor. A flavor without
    /// a topology can still serve resources that are only quota, i.e. that pods do not consume on nodes.
    pub(crate) fn topology_support(
        &self,
        pod_set: &PodSetSpec,
        topology: Option<TopologyId>,
        implied: bool,
        covered: &[ResourceId],
    ) -> TopologySupport {
        let levels = topology.and_then(|id| self.specs.find(id));
        let request = pod_set.topology.as_ref().filter(|_| pod_set.asks_for_topology());
        let (request, spec) = match (request, levels) {
            // A flavor with a topology rejects pod sets without a request, unless the ClusterQueue
            // implies one (docs/reference/kueue.md §4.4 step 2).
            (None, Some(_)) if !implied => return TopologySupport::TopologyOnly,
            (None, _) => return TopologySupport::Supported,
            (Some(_), None) if pod_set.takes().iter().any(|one| covered.contains(&one.0)) => {
                return TopologySupport::NoTopology;
            }
            (Some(_), None) => return TopologySupport::Supported,
            (Some(request), Some(spec)) => (request, spec),
        };
        let known = |level: &str| spec.levels.iter().any(|one| **one == *level);
        let whole = match &request.mode {
            Some(TopologyMode::Required(level) | TopologyMode::Preferred(level)) => known(level),
            Some(TopologyMode::Unconstrained) | None => true,
        };
        let slices = request.slices.iter().all(|(level, _)| known(level));
        if whole && slices { TopologySupport::Supported } else { TopologySupport::NoLevel }
    }

    /// Usage of a leaf, indexed by resource.
    pub(super) fn used_row<'a>(&'a self, tree: &'a DomainTree, leaf: DomainId) -> &'a [Amount] {
        match tree.node(leaf) {
            Some(node) => self.used.row(node.index()),
            None => tree.used.row(tree.row(leaf)),
        }
    }

    /// Usage of one resource of a leaf.
    pub(crate) fn used(&self, tree: &DomainTree, leaf: DomainId, resource: ResourceId) -> Amount {
        self.used_row(tree, leaf).get(resource.index()).copied().unwrap_or_default()
    }

    /// Charges the topology assignment of an admission, unless another workload slice has taken it over.
    pub(super) fn charge_admission(
        &mut self,
        admission: &AdmissionRecord,
        class: &EquivalenceClass,
    ) {
        if !admission.taken_over {
            self.charge_all(&admission.pod_sets, class, 1);
        }
    }

    /// Reverts [`Topologies::charge_admission`].
    pub(super) fn release_admission(
        &mut self,
        admission: &AdmissionRecord,
        class: &EquivalenceClass,
    ) {
        if !admission.taken_over {
            self.charge_all(&admission.pod_sets, class, -1);
        }
    }

    fn charge_all(&mut self, all: &[PodSetAdmission], class: &EquivalenceClass, sign: i64) {
        // Most admissions have no domains.
        if self.trees.len() == 0 || all.iter().all(|one| one.used_domains().is_empty()) {
            return;
        }
        for (one, spec) in all.iter().zip(&class.pod_sets) {
            let mut flavors = one.flavors();
            let Some(flavor) = flavors.find(|&flavor| self.tree(flavor).is_some()) else {
                continue;
            };
            for domain in one.used_domains() {
                self.charge(flavor, &domain.values, spec, domain.count * sign);
            }
        }
    }

    /// The row of a domain assigned in a flavor's tree. A node that left this tree may be in another one, and its
    /// pods stay charged there. `None` for a leaf that no longer exists.
    pub(super) fn usage_location(
        &self,
        flavor: FlavorId,
        values: &[Box<str>],
    ) -> Option<UsageLocation> {
        let tree = self.tree(flavor)?;
        let location = |tree: &DomainTree| {
            let leaf = tree.leaf(values)?;
            Some(tree.node(leaf).map_or(UsageLocation::Leaf(leaf), UsageLocation::Node))
        };
        let found = location(tree);
        // A leaf that aggregates nodes exists in its own tree only.
        if found.is_some() || !tree.leaves_are_nodes() {
            return found;
        }
        self.trees.rows().flatten().filter(|tree| tree.leaves_are_nodes()).find_map(location)
    }

    /// Flavors that have less room in their domains because of an admission: its own, and those with the same nodes.
    pub(crate) fn flavors_over(&self, all: &[PodSetAdmission]) -> SmallVec<[FlavorId; 4]> {
        let mut flavors = SmallVec::new();
        for one in all.iter().filter(|one| !one.used_domains().is_empty()) {
            let mut own = one.flavors();
            let Some(own) = own.find(|&flavor| self.tree(flavor).is_some()) else {
                continue;
            };
            let nodes = self.nodes_of(own, one);
            for flavor in self.trees.ids() {
                let shares = || {
                    let tree = self.tree(flavor);
                    tree.is_some_and(|tree| nodes.iter().any(|&one| tree.node_leaf(one).is_some()))
                };
                if !flavors.contains(&flavor) && (flavor == own || shares()) {
                    flavors.push(flavor);
                }
            }
        }
        flavors
    }

    /// Nodes that the pods of a pod set are charged to; none where leaves aggregate nodes.
    fn nodes_of(&self, flavor: FlavorId, one: &PodSetAdmission) -> Vec<TopologyNodeId> {
        let locations = one.used_domains().iter();
        let locations = locations.filter_map(|domain| self.usage_location(flavor, &domain.values));
        let nodes = locations.filter_map(|location| match location {
            UsageLocation::Node(node) => Some(node),
            UsageLocation::Leaf(_) => None,
        });
        nodes.collect()
    }

    /// Charges `count` pods of a pod set to their domain; a negative count releases.
    pub(super) fn charge(
        &mut self,
        flavor: FlavorId,
        values: &[Box<str>],
        spec: &PodSetSpec,
        count: i64,
    ) {
        let location = self.usage_location(flavor, values);
        let tree = self.trees.get_mut(flavor).and_then(Option::as_mut);
        let (table, row) = match (location, tree) {
            (Some(UsageLocation::Node(node)), _) => (&mut self.used, node.index()),
            (Some(UsageLocation::Leaf(leaf)), Some(tree)) => {
                let row = tree.row(leaf);
                (&mut tree.used, row)
            }
            _ => return,
        };
        for &(resource, amount) in spec.takes() {
            table.add(row, resource, amount.times(count));
        }
        table.add(row, PODS, Amount(count));
    }
}

/// Kind of change of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeChange {
    /// The node was added, removed, or its capacity, taints or labels changed.
    Changed,
    /// Usage by pods that TAS does not manage decreased.
    UsageDecreased,
    /// Other pods than before are to leave. No pending Workload fits before they have left, but a Workload with a failed node may
    /// have waited for them.
    LeavingChanged,
    /// No change that could make a pending Workload fit.
    Unchanged,
}

/// The change of a node that keeps its leaves.
fn change(old: &TopologyNodeSpec, new: &TopologyNodeSpec) -> NodeChange {
    if old.name != new.name || old.taints != new.taints || old.allocatable != new.allocatable {
        return NodeChange::Changed;
    }
    let now = |resource| new.foreign.iter().find(|one| one.0 == resource).map(|one| one.1);
    let decreased = |&(resource, amount): &_| now(resource).unwrap_or_default() < amount;
    // More usage on a node makes no pending Workload fit, so it requeues nothing.
    if old.foreign.iter().any(decreased) {
        NodeChange::UsageDecreased
    } else if old.leaving != new.leaving {
        NodeChange::LeavingChanged
    } else {
        NodeChange::Unchanged
    }
}

/// Whether a changed node keeps its leaf in every tree.
fn stays_at_its_leaves(old: &TopologyNodeSpec, new: &TopologyNodeSpec) -> bool {
    old.usable == new.usable && old.labels == new.labels
}
