//! The fair-sharing tournament: in every cohort the child with the smaller share wins, shares taken as if its candidate
//! were admitted already.
//!
//! Source: docs/reference/kueue.md §4.6, which takes all shares anew after every pop. Here every cohort keeps the candidates
//! of its children in a heap, and a pop repairs the heaps above the winner. That is enough because the share of a child
//! depends on the usage within that child and on what its cohort could lend, and the latter does not change within a
//! cycle. The child that held the winner is the top of its cohort's heap, at every level, so only tops are replaced.
//! Cost of a pop: per level one share and a path through a heap.
//!
//! Invariant: processing a head leaves changes of usage only on the path from its queue to the root.
//!
//! Where sums may be beyond counting, already weighing somebody leaves traces, as upstream. There the tournament is played
//! anew after every pop, see [`crate::cycle::exact_tournament`].

use std::cmp::Reverse;

use crate::cycle::contender::{Candidate, weigh, wins};
use crate::cycle::entry::CycleEntry;
use crate::cycle::exact_tournament;
use crate::ids::NodeId;
use crate::queues::heap::Heap;
use crate::state::State;

/// See the module. Trees are processed in the order of the names of their roots. Its tables are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct Tournament {
    /// The roots of the trees that have candidates, last one first.
    roots: Vec<NodeId>,
    /// By node.
    rounds: Vec<TournamentRound>,
    /// Cohorts whose winner has not gone up yet, with their depth.
    cohorts: Vec<(usize, NodeId)>,
    /// The queue whose head was handed out last.
    played: Option<NodeId>,
}

/// What is played at one node.
#[derive(Debug, Default)]
struct TournamentRound {
    /// The candidates of the node's children; a queue without a cohort has its own.
    candidates: Heap<Candidate>,
    /// Is in [`Tournament::cohorts`].
    listed: bool,
}

impl Tournament {
    /// Nobody has entered yet.
    pub(super) fn begin(&mut self, state: &State) {
        self.played = None;
        self.roots.clear();
        self.rounds.iter_mut().for_each(|round| round.candidates.clear());
        self.rounds.resize_with(state.tree.ids().len(), TournamentRound::default);
    }

    /// Lets an entry into the round of its queue.
    pub(super) fn enter(&mut self, state: &mut State, entries: &[CycleEntry], entry: usize) {
        let leaf = state.queue(entries[entry].queue).node;
        self.list_above(state, leaf);
        self.send(state, entries, leaf, entry);
    }

    /// Plays the rounds of the cohorts, lowest first.
    pub(super) fn close(&mut self, state: &mut State, entries: &[CycleEntry]) {
        self.cohorts.sort_unstable();
        while let Some((_, cohort)) = self.cohorts.pop() {
            self.rounds[cohort.index()].listed = false;
            self.advance(state, entries, cohort);
        }
        self.roots.sort_by_key(|&root| Reverse(state.tree.node(root).rank));
    }

    /// The next entry. What came of the one before must be in the books.
    pub(super) fn pop(&mut self, state: &mut State, entries: &[CycleEntry]) -> Option<usize> {
        if let Some(leaf) = self.played.take() {
            self.replay(state, entries, leaf);
        }
        if !state.tree.is_countable_twice() {
            return self.pop_anew(state, entries);
        }
        let root = *self.roots.last()?;
        let winner = self.winner(root)?;
        self.played = Some(state.queue(entries[winner].queue).node);
        Some(winner)
    }

    fn pop_anew(&mut self, state: &mut State, entries: &[CycleEntry]) -> Option<usize> {
        loop {
            let winner = exact_tournament::winner(state, entries, *self.roots.last()?);
            if winner.is_some() {
                return winner;
            }
            self.roots.pop();
        }
    }

    fn winner(&self, node: NodeId) -> Option<usize> {
        self.rounds[node.index()].candidates.peek().map(|candidate| candidate.entry)
    }

    /// Lists the cohorts above `leaf`, and the root of its tree, unless they are listed.
    fn list_above(&mut self, state: &State, leaf: NodeId) {
        if state.tree.parent(leaf).is_none() {
            self.roots.push(leaf);
        }
        for cohort in state.tree.ancestors(leaf) {
            if std::mem::replace(&mut self.rounds[cohort.index()].listed, true) {
                return;
            }
            self.cohorts.push((state.tree.ancestors(cohort).count(), cohort));
            if state.tree.parent(cohort).is_none() {
                self.roots.push(cohort);
            }
        }
    }

    /// Sends the winner of `node` to the round above.
    fn advance(&mut self, state: &mut State, entries: &[CycleEntry], node: NodeId) {
        if state.tree.parent(node).is_some()
            && let Some(winner) = self.winner(node)
        {
            self.send(state, entries, node, winner);
        }
    }

    /// Puts an entry into the round above `child`, or of `child` itself if nothing is above.
    fn send(&mut self, state: &mut State, entries: &[CycleEntry], child: NodeId, entry: usize) {
        let candidate = weigh(state, entries, child, entry);
        let at = state.tree.parent(child).unwrap_or(child);
        let candidates = &mut self.rounds[at.index()].candidates;
        candidates.push(candidate, |left, right| wins(state, entries, left, right));
    }

    /// Takes the last winner out of all rounds it won.
    fn replay(&mut self, state: &mut State, entries: &[CycleEntry], leaf: NodeId) {
        let mut child = leaf;
        while let Some(cohort) = state.tree.parent(child) {
            self.drop_top(state, entries, cohort);
            if child != leaf {
                self.advance(state, entries, child);
            }
            child = cohort;
        }
        if child == leaf {
            self.drop_top(state, entries, leaf);
        }
        if self.winner(child).is_none() {
            self.roots.pop();
        }
    }

    fn drop_top(&mut self, state: &State, entries: &[CycleEntry], node: NodeId) {
        let candidates = &mut self.rounds[node.index()].candidates;
        candidates.pop(|left, right| wins(state, entries, left, right));
    }
}
