//! Machines that pods would rather stand on: a score per domain, which comes before how full the domain is.
//!
//! A machine scores the weights of all preferred terms that it matches, a domain the sum of its machines, whether they have
//! room or not; those whose taints or labels keep the pods away score nothing, and so does every leaf that is not a machine.
//! The pods are those of the workers: what a leader would prefer does not count. Source: docs/reference/kueue.md §4.11, gate
//! TASRespectNodeAffinityPreferred. Cost: leaves times terms, once per search of pods that prefer something.

use crate::ids::DomainId;
use crate::node_selection::NodeSelectorTerm;
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::{CountRequest, CountsByDomain, node_exclusion};
use crate::topology::topologies::Topologies;

/// What pods prefer of a node, and how much.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PreferredTerm {
    /// Counts for a node that meets the preference.
    pub weight: i32,
    /// What the node must be.
    pub preference: NodeSelectorTerm,
}

/// AffinityScores of all domains of a tree; none if they are all the same to the pods.
#[derive(Debug, Default)]
pub(super) struct AffinityScores(Vec<i64>);

impl AffinityScores {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// Whether domains differ at all.
    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn of(&self, domain: DomainId) -> i64 {
        self.0.get(domain.index()).copied().unwrap_or_default()
    }
}

/// AffinityScores what was just counted. Kept out of the searches of those who prefer nothing.
#[inline(never)]
pub(super) fn score(
    topologies: &Topologies,
    tree: &DomainTree,
    count_request: &CountRequest<'_>,
    counts: &mut CountsByDomain,
) {
    if count_request.workers.preferred.is_empty() || !tree.leaves_are_nodes() {
        return;
    }
    let scores = &mut counts.scores.0;
    scores.resize(tree.size(), 0);
    for leaf in tree.leaves() {
        scores[leaf.index()] = of_machine(topologies, tree, count_request, leaf);
    }
    for level in (0..tree.lowest()).rev() {
        for domain in tree.level(level) {
            scores[domain.index()] = tree.children(domain).map(|one| scores[one.index()]).sum();
        }
    }
}

fn of_machine(
    topologies: &Topologies,
    tree: &DomainTree,
    count_request: &CountRequest<'_>,
    leaf: DomainId,
) -> i64 {
    let Some(node) = tree.node(leaf).and_then(|id| topologies.node(id)) else {
        return 0;
    };
    if node_exclusion(count_request, node).is_some() {
        return 0;
    }
    let terms = count_request.workers.preferred.iter();
    let met = terms.filter(|term| term.preference.matches(&node.name, &node.labels));
    met.map(|term| i64::from(term.weight)).sum()
}
