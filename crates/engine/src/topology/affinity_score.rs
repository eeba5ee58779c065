//! Scores domains by preferred node affinity. A higher score precedes every capacity criterion when domains are
//! sorted.
//!
//! The score of a node is the sum of the weights of all preferred terms that it matches. The score of a domain is
//! the sum over its nodes, whether they have free capacity or not. Nodes excluded by taints, selector or required
//! affinity score zero, and so does every leaf that is not a node, unless pods are counted node by node
//! (gate TASNodeFeasibilityForAllLevels). Only the worker pod set is scored; the leader's
//! preferences are ignored, as upstream ignores them.
//! Source: docs/reference/kueue.md §4.11, gate TASRespectNodeAffinityPreferred. Cost: leaves times terms, once per
//! search with preferred terms.

use crate::dense_table::DenseTable;
use crate::ids::{DomainId, TopologyNodeId};
use crate::node_selection::NodeSelectorTerm;
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::CountsByDomain;
use crate::topology::leaf_counts::{CountRequest, node_exclusion};
use crate::topology::topologies::Topologies;

/// A preferred node affinity term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PreferredTerm {
    /// Weight added to the score of a matching node.
    pub weight: i32,
    /// The condition on the node.
    pub preference: NodeSelectorTerm,
}

/// Score per domain; empty if the request has no preferred terms.
#[derive(Debug, Default)]
pub(super) struct AffinityScores(DenseTable<DomainId, i64>);

impl AffinityScores {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// Whether the request has preferred terms.
    pub(super) fn any(&self) -> bool {
        self.0.len() > 0
    }

    pub(super) fn of(&self, domain: DomainId) -> i64 {
        self.0.get(domain).copied().unwrap_or_default()
    }
}

/// Scores the domains that `counts` was just filled for. Not inlined, so that searches without preferred terms stay
/// small.
#[inline(never)]
pub(super) fn score(
    topologies: &Topologies,
    tree: &DomainTree,
    count_request: &CountRequest<'_>,
    counts: &mut CountsByDomain,
) {
    // Preferred terms match labels of nodes; a leaf that aggregates nodes has none of its own.
    let has_nodes = tree.leaves_are_nodes() || count_request.by_node;
    if count_request.workers.preferred.is_empty() || !has_nodes {
        return;
    }
    let scores = &mut counts.scores.0;
    scores.reach(tree.size());
    for leaf in tree.leaves() {
        let nodes = tree.node(leaf).into_iter().chain(tree.aggregated(leaf).map(|one| one.id));
        scores[leaf] = nodes.map(|id| score_of_node(topologies, count_request, id)).sum();
    }
    for level in (0..tree.lowest()).rev() {
        for domain in tree.level(level) {
            scores[domain] = tree.children(domain).map(|one| scores[one]).sum();
        }
    }
}

fn score_of_node(
    topologies: &Topologies,
    count_request: &CountRequest<'_>,
    id: TopologyNodeId,
) -> i64 {
    let Some(node) = topologies.node(id) else {
        return 0;
    };
    // Pods cannot run there, so the node must not raise the score of its domain.
    if node_exclusion(count_request.pods(), node).is_some() {
        return 0;
    }
    let terms = count_request.workers.preferred.iter();
    let met = terms.filter(|term| term.preference.matches(&node.name, &node.labels));
    met.map(|term| i64::from(term.weight)).sum()
}
