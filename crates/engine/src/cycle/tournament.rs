//! The fair-sharing tournament: in every cohort the child with the smaller share wins, shares taken as if its candidate
//! were admitted already.
//!
//! Source: spec/kueue-core.md §4.6. Shares are computed anew after every pop, since the winner changes them.

use std::cmp::Ordering;

use crate::cycle::nominate::Entry;
use crate::cycle::order::{by_age, preemptor_first};
use crate::ids::NodeId;
use crate::quota::share::{Share, share};
use crate::state::State;
use crate::workload::charged;

/// The heads of one tree.
#[derive(Debug)]
struct Tree {
    root: NodeId,
    entries: Vec<usize>,
}

/// See the module. Trees are processed in the order of the names of their roots.
#[derive(Debug)]
pub(super) struct Tournament {
    /// Last one first.
    trees: Vec<Tree>,
}

/// A candidate on its way up.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    entry: usize,
    share: Share,
    borrows: bool,
}

impl Tournament {
    pub(super) fn new(state: &State, entries: &[Entry], open: &[usize]) -> Self {
        let mut trees: Vec<(String, Tree)> = Vec::new();
        for &index in open {
            let root = state.tree.root(state.queue(entries[index].queue).node);
            match trees.iter_mut().find(|(_, tree)| tree.root == root) {
                Some((_, tree)) => tree.entries.push(index),
                None => {
                    let name = state.node_name(root).to_owned();
                    trees.push((name, Tree { root, entries: vec![index] }));
                }
            }
        }
        trees.sort_by(|left, right| right.0.cmp(&left.0));
        Self { trees: trees.into_iter().map(|(_, tree)| tree).collect() }
    }

    pub(super) fn pop(&mut self, state: &mut State, entries: &[Entry]) -> Option<usize> {
        let tree = self.trees.last_mut()?;
        let winner = play(state, entries, tree, tree.root)?.entry;
        tree.entries.retain(|&entry| entry != winner);
        if tree.entries.is_empty() {
            self.trees.pop();
        }
        Some(winner)
    }
}

/// The winner of the subtree at `node`.
fn play(state: &mut State, entries: &[Entry], tree: &Tree, node: NodeId) -> Option<Candidate> {
    if let Some(queue) = state.tree.node(node).queue {
        let mut own = tree.entries.iter().copied();
        let entry = own.find(|&entry| entries[entry].queue == queue)?;
        return Some(Candidate { entry, share: Share::NONE, borrows: false });
    }
    let mut best: Option<Candidate> = None;
    for at in 0..state.tree.node(node).children.len() {
        let child = state.tree.node(node).children[at];
        let Some(found) = play(state, entries, tree, child) else {
            continue;
        };
        let candidate = weigh(state, entries, child, found.entry);
        if best.is_none_or(|old| compare(state, entries, candidate, old) == Ordering::Less) {
            best = Some(candidate);
        }
    }
    best
}

/// The share of `node` with the entry's usage included.
fn weigh(state: &mut State, entries: &[Entry], node: NodeId, index: usize) -> Candidate {
    let entry = &entries[index];
    let leaf = state.queue(entry.queue).node;
    let usage = &entry.assignment.usage;
    let mark = state.tree.journal.mark();
    for &(slot, amount) in usage {
        state.tree.add_usage(leaf, slot, amount);
    }
    let with = share(&state.tree, node);
    let borrows = entry.assignment.usage.iter().any(|&(slot, _)| {
        let cell = state.tree.at(node, slot);
        charged(usage, slot) > crate::Amount::ZERO && cell.usage > cell.subtree
    });
    state.tree.rewind(mark);
    state.tree.journal.close();
    Candidate { entry: index, share: with, borrows }
}

fn compare(state: &State, entries: &[Entry], left: Candidate, right: Candidate) -> Ordering {
    let (a, b) = (&entries[left.entry], &entries[right.entry]);
    let borrowing = if state.settings.prioritize_non_borrowing {
        left.borrows.cmp(&right.borrows)
    } else {
        Ordering::Equal
    };
    preemptor_first(state, a, b)
        .then(borrowing)
        .then(left.share.cmp(&right.share))
        .then_with(|| by_age(state, a, b))
        .then_with(|| left.entry.cmp(&right.entry))
}
