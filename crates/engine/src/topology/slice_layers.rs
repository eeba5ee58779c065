//! How many slices of each layer fit, for the explanation of a placement with several layers that failed.

use crate::ids::DomainId;
use crate::topology::assignment_search::TasPodSetRequest;
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::CountsByDomain;

/// Per layer: its level, how many slices fit below the best domain of `level`, and how many should.
pub(super) fn fitting_by_layer(
    tree: &DomainTree,
    counts: &CountsByDomain,
    workers: &TasPodSetRequest<'_>,
    level: usize,
) -> Vec<(Box<str>, i64, i64)> {
    // The first of those with the most slices.
    let best = tree.level(level).rev().max_by_key(|&one| counts[one].slices);
    let layers = workers.spec.topology.iter().flat_map(|topology_request| &topology_request.slices);
    let layers = layers.filter_map(|(label, size)| {
        let fit = below(tree, counts, best?, level, tree.level_named(label)?, (*size).max(1));
        Some((label.clone(), fit, workers.pods / (*size).max(1)))
    });
    layers.collect()
}

fn below(
    tree: &DomainTree,
    counts: &CountsByDomain,
    domain: DomainId,
    level: usize,
    target: usize,
    size: i64,
) -> i64 {
    if level >= target {
        return counts[domain].pods / size;
    }
    tree.children(domain).map(|child| below(tree, counts, child, level + 1, target, size)).sum()
}
