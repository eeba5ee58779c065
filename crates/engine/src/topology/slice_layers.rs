//! Counts the slices of each layer that fit, for the message of a failed request with several slice layers.

use crate::ids::DomainId;
use crate::topology::assignment_search::TasPodSetRequest;
use crate::topology::domain_tree::DomainTree;
use crate::topology::fill_in_counts::CountsByDomain;

/// Per layer: its level, the slices that fit below the best domain of `level`, and the slices requested.
pub(super) fn fitting_by_layer(
    tree: &DomainTree,
    counts: &CountsByDomain,
    workers: &TasPodSetRequest<'_>,
    level: usize,
) -> Vec<(Box<str>, i64, i64)> {
    // The first of the domains with the most slices.
    let best = tree.level(level).rev().max_by_key(|&one| counts[one].slices);
    let layers = workers.spec.topology.iter().flat_map(|topology_request| &topology_request.slices);
    let layers = layers.filter_map(|(label, size)| {
        let fit =
            slices_below(tree, counts, best?, level, tree.level_named(label)?, (*size).max(1));
        Some((label.clone(), fit, workers.pods / (*size).max(1)))
    });
    layers.collect()
}

fn slices_below(
    tree: &DomainTree,
    counts: &CountsByDomain,
    domain: DomainId,
    level: usize,
    slice_level: usize,
    size: i64,
) -> i64 {
    if level >= slice_level {
        return counts[domain].pods / size;
    }
    tree.children(domain)
        .map(|child| slices_below(tree, counts, child, level + 1, slice_level, size))
        .sum()
}
