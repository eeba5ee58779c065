//! All topologies, machines and trees, and what is used of them.
//!
//! Usage of a machine is shared by all trees that see it; usage of other leaves belongs to their tree. A change of what
//! a machine offers is entered in place; a change of which machines there are, or of their labels, builds the trees anew
//! before the next cycle.

use std::sync::Arc;

use crate::amount::Amount;
use crate::equivalence_class::EquivalenceClasses;
use crate::ids::{DomainId, EquivalenceClassId, FlavorId, ResourceId, TopologyId, TopologyNodeId};
use crate::spec::{FlavorSpec, PodSetAdmission, PodSetSpec};
use crate::state::PODS;
use crate::topology::assignment_search::SearchBuffers;
use crate::topology::domain_tree::DomainTree;
use crate::topology::resource_table::ResourceTable;
use crate::topology::{TopologyMode, TopologyNodeSpec, TopologySpec};
use crate::workload::Admission;

/// Whether a flavor can serve a topology request at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopologySupport {
    Supported,
    NoTopology,
    NoLevel,
    TopologyOnly,
}

/// Where pods stand.
#[derive(Debug, Clone, Copy)]
pub(super) enum UsageLocation {
    /// On a machine, which is the same in every tree that sees it.
    Node(TopologyNodeId),
    /// At a leaf of their tree that sums up machines.
    Leaf(DomainId),
}

/// See the module.
#[derive(Debug, Default, Clone)]
pub(crate) struct Topologies {
    specs: Vec<Option<TopologySpec>>,
    nodes: Vec<Option<TopologyNodeSpec>>,
    /// Machines with taints.
    tainted: Vec<bool>,
    trees: Vec<Option<DomainTree>>,
    /// What is used of machines.
    used: ResourceTable,
    /// Trees must be built anew.
    pub(crate) stale: bool,
    /// SelectionBuffers of searches.
    pub(super) scratch: SearchBuffers,
}

impl Topologies {
    /// Whether anything was ever said of topologies or machines.
    pub(crate) fn matter(&self) -> bool {
        !self.specs.is_empty() || !self.nodes.is_empty() || self.stale
    }

    pub(crate) fn set_topology(&mut self, id: TopologyId, spec: Option<TopologySpec>) {
        if self.specs.len() <= id.index() {
            self.specs.resize_with(id.index() + 1, || None);
        }
        self.specs[id.index()] = spec;
        self.stale = true;
    }

    pub(crate) fn set_node(
        &mut self,
        id: TopologyNodeId,
        spec: Option<TopologyNodeSpec>,
    ) -> NodeChange {
        if self.nodes.len() <= id.index() {
            self.nodes.resize_with(id.index() + 1, || None);
            self.tainted.resize(id.index() + 1, false);
        }
        self.tainted[id.index()] = spec.as_ref().is_some_and(|one| !one.taints.is_empty());
        let old = std::mem::replace(&mut self.nodes[id.index()], spec);
        match (&old, &self.nodes[id.index()]) {
            (Some(old), Some(new)) if stays_at_its_leaves(old, new) => {
                for tree in self.trees.iter_mut().flatten() {
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

    /// Whether the tree of a flavor has a machine, or sums it up.
    pub(crate) fn has_node(&self, flavor: FlavorId, node: TopologyNodeId) -> bool {
        self.tree(flavor).is_some_and(|tree| tree.leaf_of_node(node).is_some())
    }

    pub(crate) fn exists(&self, id: TopologyId) -> bool {
        self.specs.get(id.index()).is_some_and(Option::is_some)
    }

    pub(super) fn is_tainted(&self, id: TopologyNodeId) -> bool {
        self.tainted.get(id.index()).copied().unwrap_or_default()
    }

    pub(crate) fn node(&self, id: TopologyNodeId) -> Option<&TopologyNodeSpec> {
        self.nodes.get(id.index()).and_then(Option::as_ref)
    }

    /// All machines that are known.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (TopologyNodeId, &TopologyNodeSpec)> {
        let all = self.nodes.iter().enumerate();
        all.filter_map(|(index, node)| Some((TopologyNodeId::from(index), node.as_ref()?)))
    }

    pub(crate) fn tree(&self, flavor: FlavorId) -> Option<&DomainTree> {
        self.trees.get(flavor.index()).and_then(Option::as_ref)
    }

    /// Whether any flavor has a tree.
    pub(crate) fn any(&self) -> bool {
        self.trees.iter().any(Option::is_some)
    }

    /// Builds all trees, empty, for `width` known resources.
    pub(super) fn build(&mut self, flavors: &[Option<FlavorSpec>], width: usize) {
        self.stale = false;
        self.used.reset(self.nodes.len(), width);
        let Self { specs, nodes, .. } = self;
        let trees = flavors.iter().map(|flavor| {
            let flavor = flavor.as_ref()?;
            let topology = flavor.topology?;
            let spec = specs.get(topology.index())?.as_ref()?;
            Some(DomainTree::build(topology, spec, flavor, nodes, width))
        });
        self.trees = trees.collect();
    }

    /// Whether a flavor suits a pod set as far as topologies go, where `covered` resources get that flavor. One without a
    /// topology may still give what is quota only, and nothing that pods take of a machine.
    pub(crate) fn topology_support(
        &self,
        pod_set: &PodSetSpec,
        topology: Option<TopologyId>,
        implied: bool,
        covered: &[ResourceId],
    ) -> TopologySupport {
        let levels = topology.and_then(|id| self.specs.get(id.index())).and_then(Option::as_ref);
        let request = pod_set.topology.as_ref().filter(|_| pod_set.asks_for_topology());
        let (request, spec) = match (request, levels) {
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

    /// All that is used of a leaf, by resource.
    pub(super) fn used_row<'a>(&'a self, tree: &'a DomainTree, leaf: DomainId) -> &'a [Amount] {
        match tree.node(leaf) {
            Some(node) => self.used.row(node.index()),
            None => tree.used.row(tree.row(leaf)),
        }
    }

    /// What is used of a leaf.
    pub(crate) fn used(&self, tree: &DomainTree, leaf: DomainId, resource: ResourceId) -> Amount {
        self.used_row(tree, leaf).get(resource.index()).copied().unwrap_or_default()
    }

    /// Charges the places of a Workload, unless another has taken them over.
    pub(crate) fn charge_admission(
        &mut self,
        admission: &Admission,
        class: &EquivalenceClassId,
        classes: &EquivalenceClasses,
    ) {
        if !admission.taken_over {
            self.charge_all(&admission.pod_sets, *class, classes, 1);
        }
    }

    /// Takes back what [`Topologies::charge_admission`] charged.
    pub(crate) fn release_admission(
        &mut self,
        admission: &Admission,
        class: &EquivalenceClassId,
        classes: &EquivalenceClasses,
    ) {
        if !admission.taken_over {
            self.charge_all(&admission.pod_sets, *class, classes, -1);
        }
    }

    fn charge_all(
        &mut self,
        all: &[PodSetAdmission],
        class: EquivalenceClassId,
        classes: &EquivalenceClasses,
        sign: i64,
    ) {
        if self.trees.is_empty() || all.iter().all(|one| one.domains.is_empty()) {
            return;
        }
        let class = Arc::clone(classes.at(class));
        for (one, spec) in all.iter().zip(&class.pod_sets) {
            let mut flavors = one.resources.iter().map(|(_, flavor, _)| *flavor);
            let Some(flavor) = flavors.find(|&flavor| self.tree(flavor).is_some()) else {
                continue;
            };
            for domain in &one.domains {
                self.charge(flavor, &domain.values, spec, domain.count * sign);
            }
        }
    }

    /// Where pods stand that were placed in a flavor's tree. A machine that this tree has lost may be in another one: who
    /// stands there stays. A leaf that is gone altogether is nobody's.
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
        if found.is_some() || !tree.leaves_are_nodes() {
            return found;
        }
        self.trees.iter().flatten().filter(|tree| tree.leaves_are_nodes()).find_map(location)
    }

    /// Charges `count` pods of a pod set to the place where they stand.
    pub(crate) fn charge(
        &mut self,
        flavor: FlavorId,
        values: &[Box<str>],
        spec: &PodSetSpec,
        count: i64,
    ) {
        let location = self.usage_location(flavor, values);
        let tree = self.trees.get_mut(flavor.index()).and_then(Option::as_mut);
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

/// What is new about a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeChange {
    /// The machine itself: it came or went, or is another.
    Changed,
    /// Pods that are none of the engine's business left it.
    UsageDecreased,
    /// Nothing for which anybody waits.
    Unchanged,
}

/// What is new about a machine that stands where it stood.
fn change(old: &TopologyNodeSpec, new: &TopologyNodeSpec) -> NodeChange {
    if old.name != new.name || old.taints != new.taints || old.allocatable != new.allocatable {
        return NodeChange::Changed;
    }
    let now = |resource| new.foreign.iter().find(|one| one.0 == resource).map(|one| one.1);
    let less = |&(resource, amount): &_| now(resource).unwrap_or_default() < amount;
    if old.foreign.iter().any(less) { NodeChange::UsageDecreased } else { NodeChange::Unchanged }
}

/// Whether a changed machine is in the same trees, at the same leaves.
fn stays_at_its_leaves(old: &TopologyNodeSpec, new: &TopologyNodeSpec) -> bool {
    old.usable == new.usable && old.labels == new.labels
}
