//! The quota tree: ClusterQueues are leaves, cohorts are inner nodes.
//!
//! Every node has one [`QuotaCell`] per [`Slot`]. Usage within the local quota stays at a node; usage above it is charged
//! to the parent. Cells are one array with a row per node, so that a walk to the root touches one cache line per
//! level. Source: docs/reference/kueue.md §4.3. Cost of a quota change: the nodes of one tree; of a usage change: the
//! path to the root.
//!
//! Invariant: a cohort's usage is the sum over its children of their usage above local quota, as long as all sums can
//! be counted. Beyond that it depends on the order of charges and releases, as upstream.

use crate::amount::Amount;
use crate::dense_table::DenseTable;
use crate::ids::{FlavorId, NodeId, QueueId, ResourceId, Slot};
use crate::quota::available::potential;
use crate::quota::cell::QuotaCell;
use crate::quota::declared::DeclaredQuotas;
use crate::quota::journal::{Journal, SimulationMark};
use crate::quota::node::QuotaNode;
use crate::spec::FairSharingWeight;

/// Cells that one head changes in a cycle, roughly: a few resources at a few levels.
const CHANGES_PER_HEAD: usize = 8;

/// The quota trees of all cohorts; a forest.
#[derive(Debug, Default)]
pub(crate) struct QuotaTree {
    nodes: DenseTable<NodeId, QuotaNode>,
    /// One row per node, `stride` cells each.
    cells: Vec<QuotaCell>,
    declared: DeclaredQuotas,
    stride: usize,
    slots: DenseTable<Slot, (FlavorId, ResourceId)>,
    lendable: Vec<Amount>,
    n_resources: usize,
    /// The highest usage of any cell so far. If it cannot be counted, a release does not always undo a charge.
    peak: Amount,
    /// Former usage, for rewinding.
    journal: Journal,
    /// The structure that a what-if restores.
    structure_undo: StructureUndo,
}

/// Whether a what-if has to restore the structure.
#[derive(Debug, Default)]
enum StructureUndo {
    #[default]
    Off,
    /// The structure is unchanged so far.
    On,
    /// The tree before the first change, and the length of the journal at that time.
    Saved(Box<(QuotaTree, usize)>),
}

/// The quota of one slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotQuota {
    /// Which slot.
    pub(crate) slot: Slot,
    /// Own quota.
    pub(crate) nominal: Amount,
    /// Bound on borrowing.
    pub(crate) borrowing_limit: Option<Amount>,
    /// Bound on lending of the subtree quota.
    pub(crate) lending_limit: Option<Amount>,
}

impl QuotaTree {
    /// Begins a what-if. Returns the mark for [`QuotaTree::undo_what_if`].
    pub(super) fn begin_what_if(&mut self) -> SimulationMark {
        self.structure_undo = StructureUndo::On;
        self.journal.mark()
    }

    /// Ends the what-if: restores structure and usage.
    pub(super) fn undo_what_if(&mut self, mark: SimulationMark) {
        if let StructureUndo::Saved(saved) = std::mem::take(&mut self.structure_undo) {
            let (tree, noted) = *saved;
            let journal = std::mem::take(&mut self.journal);
            *self = Self { journal, ..tree };
            // Later notes refer to the changed structure.
            self.journal.cut(noted);
        }
        self.rewind(mark);
        self.journal.close();
    }

    /// Saves the structure before its first change in a what-if.
    fn save_structure(&mut self) {
        // Copied at the first change of structure; most what-ifs change usage only.
        if matches!(self.structure_undo, StructureUndo::On) {
            let tree = Self {
                nodes: self.nodes.clone(),
                cells: self.cells.clone(),
                declared: self.declared.clone(),
                stride: self.stride,
                slots: self.slots.clone(),
                lendable: self.lendable.clone(),
                n_resources: self.n_resources,
                peak: self.peak,
                journal: Journal::default(),
                structure_undo: StructureUndo::Off,
            };
            self.structure_undo = StructureUndo::Saved(Box::new((tree, self.journal.len())));
        }
    }

    /// A new node without quota or parent.
    pub(super) fn add_node(&mut self, queue: Option<QueueId>) -> NodeId {
        self.save_structure();
        let id = self.nodes.push(QuotaNode { queue, ..QuotaNode::default() });
        self.nodes[id].root = Some(id);
        self.cells.resize(self.nodes.len() * self.stride, QuotaCell::EMPTY);
        self.declared.resize(self.nodes.len(), self.stride);
        id
    }

    /// The slot of a (flavor, resource), created if it is new.
    pub(super) fn slot(&mut self, flavor: FlavorId, resource: ResourceId) -> Slot {
        if let Some(slot) = self.find_slot(flavor, resource) {
            return slot;
        }
        self.save_structure();
        let slot = self.slots.push((flavor, resource));
        if self.slots.len() > self.stride {
            self.widen();
        }
        slot
    }

    /// The slot of a (flavor, resource), if there was ever quota or usage for it.
    fn find_slot(&self, flavor: FlavorId, resource: ResourceId) -> Option<Slot> {
        self.slots.rows().position(|&pair| pair == (flavor, resource)).map(Slot::from)
    }

    /// Flavor and resource of a slot.
    pub(crate) fn flavor_and_resource(&self, slot: Slot) -> (FlavorId, ResourceId) {
        self.slots[slot]
    }

    /// Amount of `resource`, over all flavors, that the children of `node` could borrow if there were no usage.
    pub(crate) fn lendable(&self, node: NodeId, resource: ResourceId) -> Amount {
        // A resource that was interned after the last rebuild has no quota yet.
        if resource.index() >= self.n_resources {
            return Amount::ZERO;
        }
        let index = node.index() * self.n_resources + resource.index();
        self.lendable.get(index).copied().unwrap_or_default()
    }

    /// A node.
    pub(crate) fn node(&self, node: NodeId) -> &QuotaNode {
        &self.nodes[node]
    }

    /// Ranks the nodes in the given order.
    pub(super) fn rank(&mut self, order: &[NodeId]) {
        self.save_structure();
        for (rank, &node) in (0..).zip(order) {
            self.nodes[node].rank = rank;
        }
    }

    /// All node ids.
    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        self.nodes.ids()
    }

    /// The parent of a node.
    pub(crate) fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node].parent
    }

    /// The topmost ancestor of a node, itself if it has no parent.
    pub(crate) fn root(&self, node: NodeId) -> NodeId {
        self.nodes[node].root.unwrap_or(node)
    }

    /// The nodes of the tree of a node.
    pub(crate) fn tree_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let root = self.root(node);
        self.ids().filter(move |&one| self.root(one) == root)
    }

    /// The cell of a node and slot.
    #[inline]
    pub(crate) fn at(&self, node: NodeId, slot: Slot) -> &QuotaCell {
        &self.cells[self.cell_index(node, slot)]
    }

    #[inline]
    fn at_mut(&mut self, node: NodeId, slot: Slot) -> &mut QuotaCell {
        let index = self.cell_index(node, slot);
        &mut self.cells[index]
    }

    #[inline]
    fn cell_index(&self, node: NodeId, slot: Slot) -> usize {
        node.index() * self.stride + slot.index()
    }

    /// All cells of a node, by slot.
    pub(crate) fn row(&self, node: NodeId) -> &[QuotaCell] {
        let start = node.index() * self.stride;
        &self.cells[start..start + self.slots.len()]
    }

    /// An amount of every flavor and resource of a node; zeros are left out.
    pub(crate) fn amounts(
        &self,
        node: NodeId,
        amount: fn(&QuotaCell) -> Amount,
    ) -> Vec<(FlavorId, ResourceId, Amount)> {
        let row = self.row(node).iter().map(amount).enumerate();
        row.filter(|&(_, amount)| amount != Amount::ZERO)
            .map(|(slot, amount)| {
                let (flavor, resource) = self.flavor_and_resource(slot.into());
                (flavor, resource, amount)
            })
            .collect()
    }

    /// Whether usage of a declared slot exceeds the node's subtree quota.
    #[inline]
    pub(crate) fn borrows(&self, node: NodeId, slot: Slot) -> bool {
        let cell = self.at(node, slot);
        cell.usage > cell.subtree && self.declared.contains(node, slot)
    }

    /// The ancestors of a node from its parent up. In or below a cohort cycle, as many as there are nodes: a cycle may have been made
    /// since the last [`QuotaTree::rebuild`], which marks it.
    pub(crate) fn ancestors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.parent(node), |&above| self.parent(above)).take(self.nodes.len())
    }

    /// Replaces quotas and weight of a node. Call [`QuotaTree::rebuild`] afterwards.
    pub(super) fn set_quotas(
        &mut self,
        node: NodeId,
        weight: FairSharingWeight,
        quotas: &[SlotQuota],
    ) {
        self.save_structure();
        self.nodes[node].weight = weight;
        let start = node.index() * self.stride;
        // Usage outlives a removed quota: it is released with the reservations.
        for cell in &mut self.cells[start..start + self.stride] {
            *cell = QuotaCell { usage: cell.usage, ..QuotaCell::EMPTY };
        }
        self.declared.set(node, quotas.iter().map(|quota| quota.slot));
        for quota in quotas {
            let cell = self.at_mut(node, quota.slot);
            cell.nominal = quota.nominal;
            cell.borrowing_limit = quota.borrowing_limit;
            cell.lending_limit = quota.lending_limit;
        }
    }

    /// Moves a node below another parent. Call [`QuotaTree::rebuild`] afterwards.
    pub(super) fn set_parent(&mut self, node: NodeId, parent: Option<NodeId>) {
        self.save_structure();
        if let Some(old) = self.nodes[node].parent {
            self.nodes[old].children.retain(|&child| child != node);
        }
        self.nodes[node].parent = parent;
        if let Some(new) = parent {
            self.nodes[new].children.push(node);
        }
    }

    /// Recomputes everything that follows from parents, quotas and the usage of the leaves.
    pub(super) fn rebuild(&mut self) {
        self.save_structure();
        for node in self.ids() {
            let cyclic = self.is_in_cohort_cycle(node);
            self.nodes[node].cyclic = cyclic;
            self.nodes[node].root = None;
        }
        for node in self.ids() {
            if self.parent(node).is_none() && !self.nodes[node].cyclic {
                self.rebuild_below(node, node);
            }
        }
        for node in self.ids() {
            if self.nodes[node].cyclic {
                self.clear_sums(node);
            }
        }
        self.rebuild_lendable();
    }

    fn rebuild_lendable(&mut self) {
        let widest = self.slots.rows().map(|(_, resource)| resource.index() + 1).max();
        self.n_resources = widest.unwrap_or(0);
        self.lendable.clear();
        self.lendable.resize(self.nodes.len() * self.n_resources, Amount::ZERO);
        for node in self.ids() {
            // A ClusterQueue has no children that could borrow; in a cohort cycle the walk to the
            // root would not end.
            if self.nodes[node].queue.is_some() || self.nodes[node].cyclic {
                continue;
            }
            for slot in self.slots.ids() {
                let amount = potential(self, node, slot);
                let index = node.index() * self.n_resources + self.slots[slot].1.index();
                self.lendable[index] += amount;
            }
        }
    }

    /// Whether a node is in a cohort cycle or below one, by the present parents.
    pub(crate) fn is_in_cohort_cycle(&self, node: NodeId) -> bool {
        // Above a node are fewer than all nodes, unless its path visits one twice.
        self.ancestors(node).nth(self.nodes.len() - 1).is_some()
    }

    /// Post-order: children first, then the sums of the node. Recursion depth is the height of the tree.
    fn rebuild_below(&mut self, node: NodeId, root: NodeId) {
        self.nodes[node].root = Some(root);
        let children = std::mem::take(&mut self.nodes[node].children);
        for &child in &children {
            self.rebuild_below(child, root);
        }
        self.clear_sums(node);
        for &child in &children {
            self.add_child_sums(node, child);
        }
        self.nodes[node].children = children;
        self.update_local_quota(node);
    }

    /// Recomputes heights. ClusterQueues for which `counts` is false are ignored: a cohort without other children is
    /// as low as a ClusterQueue.
    pub(super) fn rebuild_heights(&mut self, counts: &impl Fn(QueueId) -> bool) {
        self.save_structure();
        for node in self.ids() {
            if self.parent(node).is_none() {
                self.rebuild_height_below(node, counts);
            }
        }
    }

    fn rebuild_height_below(&mut self, node: NodeId, counts: &impl Fn(QueueId) -> bool) -> u32 {
        let mut height = 0;
        for at in 0..self.nodes[node].children.len() {
            let child = self.nodes[node].children[at];
            let above = match self.nodes[child].queue {
                // Kueue's snapshot has no inactive ClusterQueues (§4.1), so they add no height.
                Some(queue) => u32::from(counts(queue)),
                None => self.rebuild_height_below(child, counts) + 1,
            };
            height = height.max(above);
        }
        self.nodes[node].height = height;
        height
    }

    fn clear_sums(&mut self, node: NodeId) {
        let is_queue = self.nodes[node].queue.is_some();
        self.declared.reset_to_own(node);
        for slot in self.slots.ids() {
            let cell = self.at_mut(node, slot);
            cell.subtree = cell.nominal;
            // The usage of a ClusterQueue comes from reservations; a cohort's is the sum of its
            // children.
            if !is_queue {
                cell.usage = Amount::ZERO;
            }
        }
        if is_queue {
            self.update_local_quota(node);
        }
    }

    fn add_child_sums(&mut self, node: NodeId, child: NodeId) {
        self.declared.add_child(node, child);
        for slot in self.slots.ids() {
            let below = *self.at(child, slot);
            let cell = self.at_mut(node, slot);
            cell.subtree += below.subtree - below.local;
            cell.usage += below.used_in_parent();
            let usage = cell.usage;
            self.peak = self.peak.max(usage);
        }
    }

    fn update_local_quota(&mut self, node: NodeId) {
        for slot in self.slots.ids() {
            let cell = self.at_mut(node, slot);
            cell.local =
                cell.lending_limit.map_or(Amount::ZERO, |limit| (cell.subtree - limit).clip());
        }
    }

    /// Charges `usage` to a leaf.
    pub(super) fn charge(&mut self, leaf: NodeId, usage: &[(Slot, Amount)]) {
        for &(slot, amount) in usage {
            self.add_usage(leaf, slot, amount);
        }
    }

    /// Releases what [`QuotaTree::charge`] charged.
    pub(super) fn uncharge(&mut self, leaf: NodeId, usage: &[(Slot, Amount)]) {
        for &(slot, amount) in usage {
            self.remove_usage(leaf, slot, amount);
        }
    }

    /// Charges `amount` to a leaf, and what exceeds local quota to its ancestors.
    fn add_usage(&mut self, leaf: NodeId, slot: Slot, amount: Amount) {
        let mut at = leaf;
        let mut rest = amount;
        // Not without end: a cohort cycle may have been made since the last rebuild, which marks it and recomputes the usage.
        for _ in self.ids() {
            let free = self.at(at, slot).local_available();
            let usage = self.at(at, slot).usage;
            self.write_usage(at, slot, usage + rest);
            // In or below a cohort cycle the ancestors never end, and cohorts have no sums.
            if rest <= free || self.node(at).cyclic {
                return;
            }
            rest -= free;
            let Some(above) = self.parent(at) else { return };
            at = above;
        }
    }

    /// Releases what [`QuotaTree::add_usage`] charged.
    fn remove_usage(&mut self, leaf: NodeId, slot: Slot, amount: Amount) {
        let mut at = leaf;
        let mut rest = amount;
        for _ in self.ids() {
            let above = self.at(at, slot).used_in_parent();
            let usage = self.at(at, slot).usage;
            self.write_usage(at, slot, usage - rest);
            // Only usage above the local quota was charged to the parent (§4.3).
            rest = rest.min(above);
            if rest <= Amount::ZERO || self.node(at).cyclic {
                return;
            }
            let Some(above) = self.parent(at) else { return };
            at = above;
        }
    }

    fn write_usage(&mut self, node: NodeId, slot: Slot, usage: Amount) {
        let index = self.cell_index(node, slot);
        self.journal.note(index, self.cells[index].usage);
        self.cells[index].usage = usage;
        self.peak = self.peak.max(usage);
    }

    /// Whether all usage could always be counted, so that a release undoes a charge exactly.
    pub(crate) fn is_countable(&self) -> bool {
        !self.peak.is_unlimited()
    }

    /// Whether usage was always at most `i64::MAX / 2`, so that one more charge cannot saturate.
    pub(crate) fn is_countable_twice(&self) -> bool {
        self.peak.0 <= i64::MAX / 2
    }

    /// Releases and charges the same amounts. Usage is unchanged unless a sum on the path cannot be counted: such a
    /// sum does not shrink, and its parent may be charged again.
    pub(super) fn recharge(&mut self, leaf: NodeId, usage: &[(Slot, Amount)]) {
        if !self.is_countable() {
            self.uncharge(leaf, usage);
            self.charge(leaf, usage);
        }
    }

    /// Opens a simulation and returns the mark of the present usage.
    pub(super) fn begin_simulation(&mut self) -> SimulationMark {
        self.journal.mark()
    }

    /// Closes the innermost simulation after its changes were rewound.
    pub(super) fn close_simulation(&mut self) {
        self.journal.close();
    }

    /// Whether no simulation is open.
    pub(crate) fn is_settled(&self) -> bool {
        self.journal.is_empty()
    }

    /// Closes a simulation whose changes were undone one by one. If a sum cannot be counted, the undo is not exact,
    /// and the difference stays until the enclosing simulation is rewound: a search changes usage upstream, too.
    pub(super) fn settle(&mut self, mark: SimulationMark) {
        if self.is_countable() || self.journal.is_outermost() {
            self.rewind(mark);
        }
        self.journal.close();
    }

    /// Rewinds usage to the state at `mark`.
    #[inline]
    pub(super) fn rewind(&mut self, mark: SimulationMark) {
        while let Some((index, usage)) = self.journal.undo(mark) {
            self.cells[index].usage = usage;
        }
    }

    /// Rewinds usage towards `mark` by about the changes of `heads` heads. Returns true when `mark` is reached.
    pub(super) fn rewind_some(&mut self, mark: SimulationMark, heads: usize) -> bool {
        // In parts, so that the rewind of a large cycle does not pause the caller.
        let target = self.journal.mark_before(heads.saturating_mul(CHANGES_PER_HEAD), mark);
        self.rewind(target);
        target == mark
    }

    fn widen(&mut self) {
        // Doubled, so that flavors that are added one by one do not copy all cells each time.
        let stride = (self.stride * 2).max(4);
        let mut cells = vec![QuotaCell::EMPTY; self.nodes.len() * stride];
        for node in 0..self.nodes.len() {
            let old = &self.cells[node * self.stride..(node + 1) * self.stride];
            cells[node * stride..node * stride + self.stride].copy_from_slice(old);
        }
        self.cells = cells;
        self.stride = stride;
        self.declared.resize(self.nodes.len(), stride);
    }
}
