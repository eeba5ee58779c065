//! The fair-sharing tournament. In every cohort the child with the smaller share wins, measured as if its entry were
//! admitted.
//!
//! Source: docs/reference/kueue.md §4.6, where all shares are measured again after every pop. Here every cohort keeps
//! the entries of its children in a heap, and a pop repairs the heaps above the winner. That suffices because a
//! child's share depends on usage within the child and on what the cohort can lend, which is constant within a cycle.
//! The child of the last winner is the top of the heap at every level, so only tops are replaced. Cost of a pop: one
//! share and one heap path per level.
//!
//! Invariant: processing a head leaves changes of usage only on the path from its queue to the root.
//!
//! If usage may exceed what can be counted, measuring an entry may change usage, as upstream. Then every pop repeats
//! the whole tournament, see [`crate::cycle::exact_tournament`].

use std::cmp::Reverse;

use crate::cycle::contender::{TournamentContender, weigh, wins};
use crate::cycle::entry::CycleEntry;
use crate::cycle::exact_tournament;
use crate::dense_table::DenseTable;
use crate::ids::NodeId;
use crate::queues::heap::Heap;
use crate::quota::layer::QuotaLayer;
use crate::state::State;

/// The tournaments of all cohort trees, in the order of the names of the roots. Its tables are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct Tournament {
    /// Roots of the trees that have entries, last one first.
    roots: Vec<NodeId>,
    rounds: DenseTable<NodeId, TournamentRound>,
    /// Cohorts whose winner has not been sent up yet, with their depth.
    cohorts: Vec<(usize, NodeId)>,
    /// The ClusterQueue whose head was popped last.
    played: Option<NodeId>,
}

/// The contenders at one node.
#[derive(Debug, Default)]
struct TournamentRound {
    /// One per child; a ClusterQueue without a cohort has its own head.
    contenders: Heap<TournamentContender>,
    /// Is in [`Tournament::cohorts`].
    listed: bool,
}

impl Tournament {
    /// Begins a cycle.
    pub(super) fn begin(&mut self, quota: &QuotaLayer) {
        self.played = None;
        self.roots.clear();
        self.rounds.rows_mut().for_each(|round| round.contenders.clear());
        self.rounds.reach(quota.tree().ids().len());
    }

    /// Adds an entry as contender of its ClusterQueue.
    pub(super) fn enter(&mut self, state: &mut State, entries: &[CycleEntry], entry: usize) {
        let leaf = state.queues.at(entries[entry].queue).node;
        self.list_above(&state.quota, leaf);
        self.send(state, entries, leaf, entry);
    }

    /// Sends winners up, lowest cohorts first.
    pub(super) fn close(&mut self, state: &mut State, entries: &[CycleEntry]) {
        // The deepest cohort is taken first, so that a cohort has all its contenders before its
        // winner goes up.
        self.cohorts.sort_unstable();
        while let Some((_, cohort)) = self.cohorts.pop() {
            self.rounds[cohort].listed = false;
            self.advance(state, entries, cohort);
        }
        self.roots.sort_by_key(|&root| Reverse(state.quota.tree().node(root).rank));
    }

    /// The next entry. The usage of the last one must be charged already.
    pub(super) fn pop(&mut self, state: &mut State, entries: &[CycleEntry]) -> Option<usize> {
        if let Some(leaf) = self.played.take() {
            self.replay(state, entries, leaf);
        }
        // If one more charge may saturate, shares that were measured earlier do not hold any more.
        if !state.quota.tree().is_countable_twice() {
            return self.pop_exact(state, entries);
        }
        let root = *self.roots.last()?;
        let winner = self.winner(root)?;
        self.played = Some(state.queues.at(entries[winner].queue).node);
        Some(winner)
    }

    fn pop_exact(&mut self, state: &mut State, entries: &[CycleEntry]) -> Option<usize> {
        loop {
            let winner = exact_tournament::winner(state, entries, *self.roots.last()?);
            if winner.is_some() {
                return winner;
            }
            self.roots.pop();
        }
    }

    fn winner(&self, node: NodeId) -> Option<usize> {
        self.rounds[node].contenders.peek().map(|contender| contender.entry)
    }

    /// Lists the cohorts above `leaf`, and the root of its tree, unless they are listed.
    fn list_above(&mut self, quota: &QuotaLayer, leaf: NodeId) {
        if quota.tree().parent(leaf).is_none() {
            self.roots.push(leaf);
        }
        for cohort in quota.tree().ancestors(leaf) {
            if std::mem::replace(&mut self.rounds[cohort].listed, true) {
                return;
            }
            // With the depth as key the list sorts into levels.
            self.cohorts.push((quota.tree().ancestors(cohort).count(), cohort));
            if quota.tree().parent(cohort).is_none() {
                self.roots.push(cohort);
            }
        }
    }

    /// Makes the winner of `node` a contender one level up.
    fn advance(&mut self, state: &mut State, entries: &[CycleEntry], node: NodeId) {
        if state.quota.tree().parent(node).is_some()
            && let Some(winner) = self.winner(node)
        {
            self.send(state, entries, node, winner);
        }
    }

    /// Adds an entry as contender at the parent of `child`, or at `child` itself if it is a root.
    fn send(&mut self, state: &mut State, entries: &[CycleEntry], child: NodeId, entry: usize) {
        let contender = weigh(state, entries, child, entry);
        let at = state.quota.tree().parent(child).unwrap_or(child);
        let contenders = &mut self.rounds[at].contenders;
        contenders.push(contender, |left, right| wins(state, entries, left, right));
    }

    /// Removes the last winner from the heaps above its ClusterQueue.
    fn replay(&mut self, state: &mut State, entries: &[CycleEntry], leaf: NodeId) {
        let mut child = leaf;
        while let Some(cohort) = state.quota.tree().parent(child) {
            self.drop_top(state, entries, cohort);
            // A ClusterQueue has one head per cycle, so only cohorts send up another contender.
            if child != leaf {
                self.advance(state, entries, child);
            }
            child = cohort;
        }
        // A ClusterQueue without a cohort is its own root and holds its own contender.
        if child == leaf {
            self.drop_top(state, entries, leaf);
        }
        if self.winner(child).is_none() {
            self.roots.pop();
        }
    }

    fn drop_top(&mut self, state: &State, entries: &[CycleEntry], node: NodeId) {
        let contenders = &mut self.rounds[node].contenders;
        contenders.pop(|left, right| wins(state, entries, left, right));
    }
}
