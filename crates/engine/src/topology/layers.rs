//! How many slices of each layer fit, for the explanation of a placement with several layers that failed.

use crate::ids::DomainId;
use crate::topology::count::Rooms;
use crate::topology::find::Wanted;
use crate::topology::tree::Tree;

/// Per layer: its level, how many slices fit below the best domain of `level`, and how many should.
pub(super) fn fits(
    tree: &Tree,
    rooms: &Rooms,
    workers: &Wanted<'_>,
    level: usize,
) -> Vec<(Box<str>, i64, i64)> {
    // The first of those with the most slices.
    let best = tree.level(level).rev().max_by_key(|&one| rooms[one].slices);
    let layers = workers.spec.topology.iter().flat_map(|wish| &wish.slices);
    let layers = layers.filter_map(|(label, size)| {
        let fit = below(tree, rooms, best?, level, tree.level_named(label)?, (*size).max(1));
        Some((label.clone(), fit, workers.pods / (*size).max(1)))
    });
    layers.collect()
}

fn below(
    tree: &Tree,
    rooms: &Rooms,
    domain: DomainId,
    level: usize,
    target: usize,
    size: i64,
) -> i64 {
    if level >= target {
        return rooms[domain].pods / size;
    }
    tree.children(domain).map(|child| below(tree, rooms, child, level + 1, target, size)).sum()
}
