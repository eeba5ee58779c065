//! The tree of topology domains of one flavor.
//!
//! A tree covers the ready, schedulable nodes that carry the flavor's node labels and a label for every level.
//! Leaves are single nodes if the lowest level is the host name; otherwise a leaf aggregates nodes. Domains are
//! numbered level by level from the top, each level in the order of its label values.
//! Invariants: the children of a domain have consecutive numbers; within a level, number order is name order.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::amount::Amount;
use crate::dense_table::DenseTable;
use crate::ids::{DomainId, ResourceId, TopologyId, TopologyNodeId};
use crate::spec::FlavorSpec;
use crate::topology::aggregated_nodes::{AggregatedNode, AggregatedNodes};
use crate::topology::resource_table::ResourceTable;
use crate::topology::{HOSTNAME_LABEL, TopologyLevels, TopologyNodeSpec};

/// Label values of a domain, from the top level down.
pub(super) type LevelValues = Arc<[Box<str>]>;

/// A domain: label values from the top level down, and its position in the tree.
#[derive(Debug, Clone)]
struct Domain {
    path: LevelValues,
    parent: Option<DomainId>,
    children: Range<u32>,
}

/// The domain tree of one flavor.
#[derive(Debug, Clone)]
pub(crate) struct DomainTree {
    pub(crate) topology: TopologyId,
    pub(crate) levels: Vec<Box<str>>,
    domains: DenseTable<DomainId, Domain>,
    /// First domain number of each level, and the end of the last level.
    starts: Vec<u32>,
    /// The node of each leaf, if leaves are nodes.
    leaf_nodes: Vec<TopologyNodeId>,
    /// Free capacity of each leaf without TAS usage.
    pub(super) capacity: ResourceTable,
    /// TAS usage of leaves that aggregate nodes.
    pub(super) used: ResourceTable,
    aggregated: AggregatedNodes,
    by_path: HashMap<LevelValues, DomainId>,
    by_node: HashMap<TopologyNodeId, DomainId>,
    /// Leaves that are nodes, by node name.
    by_name: HashMap<Box<str>, DomainId>,
}

/// The objects that define a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeSource<'a> {
    pub(super) topology: TopologyId,
    pub(super) spec: &'a TopologyLevels,
    pub(super) flavor: &'a FlavorSpec,
}

impl DomainTree {
    /// The tree without usage, for `width` resources. The nodes of leaves that are none matter only where pods are counted `by_node`.
    pub(super) fn build(
        source: TreeSource<'_>,
        nodes: &DenseTable<TopologyNodeId, Option<TopologyNodeSpec>>,
        width: usize,
        by_node: bool,
    ) -> Self {
        let TreeSource { topology, spec, flavor } = source;
        let mut tree = Self {
            topology,
            levels: spec.levels.clone(),
            domains: DenseTable::default(),
            starts: vec![0],
            leaf_nodes: Vec::new(),
            capacity: ResourceTable::default(),
            used: ResourceTable::default(),
            aggregated: AggregatedNodes::default(),
            by_path: HashMap::new(),
            by_node: HashMap::new(),
            by_name: HashMap::new(),
        };
        let leaves = leaves(spec, flavor, nodes);
        tree.number(&leaves);
        tree.capacity.reset(leaves.len(), width);
        tree.used.reset(leaves.len(), width);
        if by_node && !tree.leaves_are_nodes() {
            tree.aggregated = AggregatedNodes::new(leaves.values().map(Vec::as_slice), width);
        }
        for (path, members) in &leaves {
            tree.fill_leaf(path, members, nodes);
        }
        tree
    }

    /// Numbers the domains of all levels.
    fn number(&mut self, leaves: &BTreeMap<LevelValues, Vec<TopologyNodeId>>) {
        // Level by level in path order, so that the children of a domain have consecutive numbers.
        for depth in 1..=self.levels.len() {
            for path in leaves.keys() {
                if !self.by_path.contains_key(&path[..depth]) {
                    self.add_domain(&path[..depth]);
                }
            }
            self.starts.push(DomainId::from(self.domains.len()).0);
        }
    }

    fn add_domain(&mut self, values: &[Box<str>]) {
        let path: LevelValues = values.into();
        let parent = self.by_path.get(&values[..values.len() - 1]).copied();
        let id = self.domains.push(Domain { path: Arc::clone(&path), parent, children: 0..0 });
        if let Some(parent) = parent {
            let children = &mut self.domains[parent].children;
            let start = if children.end == 0 { id.0 } else { children.start };
            *children = start..id.0 + 1;
        }
        self.by_path.insert(path, id);
    }

    fn fill_leaf(
        &mut self,
        path: &LevelValues,
        members: &[TopologyNodeId],
        nodes: &DenseTable<TopologyNodeId, Option<TopologyNodeSpec>>,
    ) {
        let (Some(&leaf), Some(&first)) = (self.by_path.get(path), members.first()) else {
            return;
        };
        if self.leaves_are_nodes() {
            self.leaf_nodes.push(first);
            self.by_name.extend(path.last().map(|name| (name.clone(), leaf)));
        }
        for &node in members {
            self.by_node.insert(node, leaf);
            if let Some(spec) = nodes.find(node) {
                self.add_capacity(node, leaf, spec, 1);
            }
        }
    }

    fn add_capacity(
        &mut self,
        node: TopologyNodeId,
        leaf: DomainId,
        spec: &TopologyNodeSpec,
        sign: i64,
    ) {
        self.add_amounts(node, leaf, &spec.allocatable, sign);
        // Free capacity excludes pods that TAS does not manage (docs/reference/kueue.md §4.11).
        self.add_amounts(node, leaf, &spec.foreign, -sign);
    }

    fn add_amounts(
        &mut self,
        node: TopologyNodeId,
        leaf: DomainId,
        amounts: &[(ResourceId, Amount)],
        sign: i64,
    ) {
        let row = self.row(leaf);
        for &(resource, amount) in amounts {
            self.capacity.add(row, resource, amount.times(sign));
        }
        self.aggregated.add(node, amounts, sign);
    }

    /// The resources of a node in this tree have changed.
    pub(super) fn replace_capacity(
        &mut self,
        node: TopologyNodeId,
        old: &TopologyNodeSpec,
        new: &TopologyNodeSpec,
    ) {
        // A node outside of the tree changes nothing in it.
        if let Some(&leaf) = self.by_node.get(&node) {
            self.add_capacity(node, leaf, old, -1);
            self.add_capacity(node, leaf, new, 1);
        }
    }

    /// Adds what leaving pods of a node take to the capacity of its leaf; subtracts it again if `sign` is negative.
    pub(super) fn change_leaving(
        &mut self,
        node: TopologyNodeId,
        spec: &TopologyNodeSpec,
        sign: i64,
    ) {
        if let Some(&leaf) = self.by_node.get(&node) {
            self.add_amounts(node, leaf, &spec.leaving, sign);
        }
    }

    /// Whether leaves are single nodes.
    pub(crate) fn leaves_are_nodes(&self) -> bool {
        self.levels.last().is_some_and(|level| **level == *HOSTNAME_LABEL)
    }

    /// The leaf of an assigned domain. A node is identified by its name alone: topology assignments of API objects
    /// carry only the lowest level, and pods stay assigned to a node whose other labels change.
    pub(crate) fn leaf(&self, values: &[Box<str>]) -> Option<DomainId> {
        if self.leaves_are_nodes() {
            return self.by_name.get(values.last()?).copied();
        }
        self.by_path.get(values).filter(|_| values.len() == self.levels.len()).copied()
    }

    /// The leaf of a node, if leaves are single nodes.
    pub(super) fn node_leaf(&self, node: TopologyNodeId) -> Option<DomainId> {
        self.leaf_of_node(node).filter(|_| self.leaves_are_nodes())
    }

    /// The leaf of a node, or the leaf that aggregates it.
    pub(super) fn leaf_of_node(&self, node: TopologyNodeId) -> Option<DomainId> {
        self.by_node.get(&node).copied()
    }

    /// The index of a level, by node label.
    pub(super) fn level_named(&self, label: &str) -> Option<usize> {
        self.levels.iter().position(|level| **level == *label)
    }

    pub(super) fn lowest(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    pub(super) fn size(&self) -> usize {
        self.domains.len()
    }

    /// Domains of a level in name order.
    pub(super) fn level(&self, level: usize) -> impl DoubleEndedIterator<Item = DomainId> + use<> {
        let at = |level: usize| self.starts.get(level).or(self.starts.last()).copied();
        let (start, end) = (at(level).unwrap_or_default(), at(level + 1).unwrap_or_default());
        (start..end).map(DomainId)
    }

    pub(crate) fn leaves(&self) -> impl DoubleEndedIterator<Item = DomainId> + use<> {
        self.level(self.lowest())
    }

    pub(super) fn children(&self, of: DomainId) -> impl Iterator<Item = DomainId> + Clone + use<> {
        self.domains[of].children.clone().map(DomainId)
    }

    /// The domain of `level` above `of`, or `of` itself.
    pub(super) fn ancestor(&self, of: DomainId, level: usize) -> DomainId {
        let mut at = of;
        while let Some(parent) = self.domains[at].parent
            && self.depth(at) > level
        {
            at = parent;
        }
        at
    }

    fn depth(&self, of: DomainId) -> usize {
        self.domains[of].path.len() - 1
    }

    pub(super) fn is_below(&self, leaf: DomainId, domain: DomainId) -> bool {
        self.ancestor(leaf, self.depth(domain)) == domain
    }

    pub(crate) fn path(&self, of: DomainId) -> &LevelValues {
        &self.domains[of].path
    }

    pub(super) fn node(&self, leaf: DomainId) -> Option<TopologyNodeId> {
        self.leaf_nodes.get(self.row(leaf)).copied()
    }

    /// Row of a leaf in [`DomainTree::capacity`] and [`DomainTree::used`].
    pub(super) fn row(&self, leaf: DomainId) -> usize {
        let first = self.starts.get(self.lowest()).copied().unwrap_or_default();
        leaf.0.saturating_sub(first) as usize
    }

    /// The nodes that a leaf aggregates; none if leaves are nodes, or pods are not counted by node.
    pub(super) fn aggregated(&self, leaf: DomainId) -> impl Iterator<Item = AggregatedNode<'_>> {
        self.aggregated.of(self.row(leaf))
    }

    /// Number of nodes that leaves aggregate, if pods are counted by node.
    pub(super) fn n_aggregated(&self) -> usize {
        self.aggregated.len()
    }

    pub(super) fn capacity_of(&self, leaf: DomainId, resource: ResourceId) -> Amount {
        self.capacity.get(self.row(leaf), resource)
    }
}

/// The nodes of each leaf.
fn leaves(
    spec: &TopologyLevels,
    flavor: &FlavorSpec,
    nodes: &DenseTable<TopologyNodeId, Option<TopologyNodeSpec>>,
) -> BTreeMap<LevelValues, Vec<TopologyNodeId>> {
    let mut leaves: BTreeMap<LevelValues, Vec<TopologyNodeId>> = BTreeMap::new();
    for id in nodes.ids() {
        if let Some(node) = nodes.find(id)
            && node.usable
            // Only ready, schedulable nodes with the labels of the flavor and of all levels take
            // pods (§4.11).
            && flavor.labels.iter().all(|label| node.labels.contains(label))
            && let Some(path) = path(spec, node)
        {
            leaves.entry(path).or_default().push(id);
        }
    }
    leaves
}

fn path(spec: &TopologyLevels, node: &TopologyNodeSpec) -> Option<LevelValues> {
    let value = |level: &str| node.labels.iter().find(|(key, _)| **key == *level);
    spec.levels.iter().map(|level| value(level).map(|(_, value)| value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many nodes the leaves of a tree of racks keep.
    fn n_kept(by_node: bool) -> usize {
        let node = |name: &str| TopologyNodeSpec {
            name: name.into(),
            labels: vec![("rack".into(), "r1".into())],
            taints: Vec::new(),
            usable: true,
            allocatable: Vec::new(),
            foreign: Vec::new(),
            leaving: Vec::new(),
        };
        let mut nodes = DenseTable::default();
        nodes.push(Some(node("h1")));
        nodes.push(Some(node("h2")));
        let levels = TopologyLevels { levels: vec!["rack".into()] };
        let flavor = FlavorSpec::default();
        let source = TreeSource { topology: TopologyId(0), spec: &levels, flavor: &flavor };
        DomainTree::build(source, &nodes, 1, by_node).n_aggregated()
    }

    #[test]
    fn nodes_of_larger_leaves_cost_nothing_where_pods_are_not_counted_by_node() {
        assert_eq!((n_kept(true), n_kept(false)), (2, 0));
    }
}
