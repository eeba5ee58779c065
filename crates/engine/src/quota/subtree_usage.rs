//! Usage of all ClusterQueues below cohorts, in one pass over their trees.
//!
//! Cost: one visit per node below the cohorts, although most of these are below one another.

use std::collections::{BTreeMap, BTreeSet};

use crate::amount::Amount;
use crate::ids::NodeId;
use crate::quota::tree::QuotaTree;

/// The usage of the ClusterQueues below each cohort.
#[derive(Debug)]
pub(crate) struct SubtreeUsage<'a> {
    tree: &'a QuotaTree,
    nodes: &'a BTreeSet<NodeId>,
    /// Sums by slot.
    found: BTreeMap<NodeId, Vec<Amount>>,
    visits: usize,
}

impl<'a> SubtreeUsage<'a> {
    /// Sums by slot for every one of `nodes`, and the number of visited nodes. None of them may be in a cohort cycle.
    pub(crate) fn below(
        tree: &'a QuotaTree,
        nodes: &'a BTreeSet<NodeId>,
    ) -> (BTreeMap<NodeId, Vec<Amount>>, usize) {
        let zeros = |&node: &NodeId| (node, vec![Amount::ZERO; tree.row(node).len()]);
        let found = nodes.iter().map(zeros).collect();
        let mut pass = Self { tree, nodes, found, visits: 0 };
        let is_below_another =
            |node: NodeId| tree.ancestors(node).any(|above| nodes.contains(&above));
        for &node in nodes.iter().filter(|&&node| !is_below_another(node)) {
            pass.sum(node);
        }
        (pass.found, pass.visits)
    }

    /// Sums the usage below `top`, a cohort that is asked for, and below all such cohorts there.
    fn sum(&mut self, top: NodeId) {
        let tree = self.tree;
        let order = self.nodes_below(top);
        // Children come first, so that the sums of a cohort are complete when it is added to the one above it.
        for &(node, above) in order.iter().rev().filter(|(node, _)| *node != top) {
            // The usage of a cohort is a part of that of its ClusterQueues.
            if tree.node(node).queue.is_some() {
                self.add(above, tree.row(node).iter().map(|cell| cell.usage));
            } else if let Some(own) = self.found.get(&node).cloned() {
                self.add(above, own.into_iter());
            }
        }
        self.visits += order.len();
    }

    /// `top` and all nodes below it, parents first, each with the nearest cohort above it that is asked for.
    fn nodes_below(&self, top: NodeId) -> Vec<(NodeId, NodeId)> {
        let mut order = vec![(top, top)];
        let mut next = 0;
        while let Some(&(node, above)) = order.get(next) {
            let nearest = if self.nodes.contains(&node) { node } else { above };
            let children = &self.tree.node(node).children;
            order.extend(children.iter().map(|&child| (child, nearest)));
            next += 1;
        }
        order
    }

    fn add(&mut self, to: NodeId, amounts: impl Iterator<Item = Amount>) {
        let sums = self.found.entry(to).or_default();
        sums.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{FlavorId, QueueId, ResourceId};

    /// A chain of cohorts, the root first, with two ClusterQueues below each, which use 1, 2, 3 and so on.
    fn chain(length: i64) -> (QuotaTree, Vec<NodeId>) {
        let mut tree = QuotaTree::default();
        let slot = tree.slot(FlavorId::from(0), ResourceId::from(0));
        let mut cohorts = Vec::new();
        for at in 0..length {
            let cohort = tree.add_node(None);
            tree.set_parent(cohort, cohorts.last().copied());
            cohorts.push(cohort);
            for used in [2 * at + 1, 2 * at + 2] {
                let queue = tree.add_node(Some(QueueId::from(0)));
                tree.set_parent(queue, Some(cohort));
                tree.charge(queue, &[(slot, Amount(used))]);
            }
        }
        (tree, cohorts)
    }

    #[test]
    fn every_node_is_visited_once_however_many_cohorts_are_above_it() {
        let (tree, cohorts) = chain(4);
        let all = cohorts.iter().copied().collect();
        let (sums, visits) = SubtreeUsage::below(&tree, &all);
        let sums: Vec<i64> = cohorts.iter().map(|cohort| sums[cohort][0].0).collect();
        assert_eq!((sums, visits), (vec![36, 33, 26, 15], tree.ids().len()));
    }

    #[test]
    fn only_what_is_below_the_cohorts_is_visited() {
        let (tree, cohorts) = chain(4);
        let third = BTreeSet::from([cohorts[2]]);
        let (sums, visits) = SubtreeUsage::below(&tree, &third);
        assert_eq!((sums.len(), sums[&cohorts[2]][0].0, visits), (1, 26, 2 * 3));
    }
}
