//! The fair-sharing tournament if usage may exceed what can be counted.
//!
//! An unlimited sum absorbs: charging and releasing an entry may leave different usage, which later entries see.
//! Upstream has the same effect, so each pop charges, measures and releases every entry of the tree again. Upstream
//! visits ClusterQueues in no particular order; here it is the order of names. Source: docs/reference/kueue.md §4.6.
//! Cost: entries · depth per pop.

use crate::cycle::contender::{TournamentContender, measure, wins};
use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::ids::NodeId;
use crate::state::State;

/// The next entry of the tree below `root` among those that are not processed.
pub(super) fn winner(state: &mut State, entries: &[CycleEntry], root: NodeId) -> Option<usize> {
    let leaf = |state: &State, entry: usize| state.queues.at(entries[entry].queue).node;
    let is_open = |entry: &usize| entries[*entry].outcome == CycleOutcome::Nominated;
    let mut own: Vec<usize> = (0..entries.len()).filter(is_open).collect();
    own.retain(|&entry| state.quota.tree().root(leaf(state, entry)) == root);
    own.sort_by_key(|&entry| state.quota.tree().node(leaf(state, entry)).rank);
    // A ClusterQueue without a cohort has no competitors (§4.6).
    if state.quota.tree().node(root).queue.is_some() {
        return own.first().copied();
    }
    let mut weighed = Vec::new();
    for entry in own {
        let leaf = leaf(state, entry);
        state.quota.charge(leaf, &entries[entry].assignment.usage);
        let levels = std::iter::once(leaf).chain(state.quota.tree().ancestors(leaf));
        weighed.extend(levels.map(|node| (node, measure(&state.quota, entries, node, entry))));
        // Released one by one and not rewound: where sums cannot be counted, the difference is
        // upstream's, too.
        state.quota.uncharge(leaf, &entries[entry].assignment.usage);
    }
    play(state, entries, &weighed, root).map(|contender| contender.entry)
}

/// The winner of a subtree, as measured at its top.
fn play(
    state: &State,
    entries: &[CycleEntry],
    weighed: &[(NodeId, TournamentContender)],
    node: NodeId,
) -> Option<TournamentContender> {
    let at = |node: NodeId, entry: usize| {
        let mut here = weighed.iter().filter(|(level, one)| *level == node && one.entry == entry);
        here.next().map(|(_, contender)| *contender)
    };
    if state.quota.tree().node(node).queue.is_some() {
        return weighed.iter().find(|(level, _)| *level == node).map(|(_, contender)| *contender);
    }
    let children = state.quota.tree().node(node).children.iter();
    let best = children
        .filter_map(|&child| play(state, entries, weighed, child))
        .reduce(|best, next| if wins(state, entries, next, best) { next } else { best })?;
    at(node, best.entry)
}
