//! Takes the heads of a cycle.
//!
//! Every active ClusterQueue hands out its head. A requeue makes all inadmissible classes of a cohort tree active
//! again, and each gets its place in the order, as upstream. But a class that was refused under the present
//! configuration and would be refused again ([`reevaluation`]) is made inadmissible without evaluation. So the order
//! of decisions is upstream's, and only heads are evaluated that may fit, preempt, or reserve quota against others.
//! Source: docs/reference/kueue.md §3.3, §3.4.
//!
//! Cost: one re-evaluation check per head that was refused before.

use crate::cycle::contention::Contention;
use crate::dense_table::DenseTable;
use crate::flavors::reevaluation::{ReevaluationForecast, certain_fit, reevaluate};
use crate::ids::{NodeId, QueueId, WorkloadId};
use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::state::State;
use crate::workloads::layer::WorkloadLayer;

/// The heads of one cycle. Its buffers are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// With the rank of the ClusterQueue's name.
    heads: Vec<(u32, QueueId, WorkloadId)>,
    /// Heads that can at most reserve quota against others, or come before others in a tournament.
    reserving: Vec<(QueueId, WorkloadId)>,
    contention: Contention,
    /// Trees with a head to evaluate.
    evaluated_trees: TreeSet,
    /// Trees with a head that can reserve quota.
    reserved: TreeSet,
    /// Progress through the head list: how many entries were visited, and how many of those stay listed.
    seen: usize,
    kept: usize,
    had_head: bool,
}

impl Heads {
    /// Number of heads to evaluate.
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// A head to evaluate; heads are sorted by the names of their ClusterQueues. It is still in its pending queue.
    pub(super) fn at(&self, index: usize) -> (QueueId, WorkloadId) {
        let (_, queue, workload) = self.heads[index];
        (queue, workload)
    }

    /// Whether any ClusterQueue had a head.
    pub(super) fn had_heads(&self) -> bool {
        self.had_head
    }

    pub(super) fn begin(&mut self) {
        self.heads.clear();
        self.reserving.clear();
        self.contention.clear();
        self.evaluated_trees.clear();
        self.reserved.clear();
        (self.seen, self.kept, self.had_head) = (0, 0, false);
    }

    /// Takes the heads of the next `queues` ClusterQueues. Returns true if all were visited.
    pub(super) fn take(&mut self, state: &mut State, queues: usize) -> bool {
        let end = self.seen.saturating_add(queues).min(state.queues.n_listed());
        while self.seen < end {
            let id = state.queues.listed_at(self.seen);
            self.seen += 1;
            if !state.queues.at(id).pending.has_head() {
                // Only here a ClusterQueue leaves the list, so that a dequeue needs no search in
                // it.
                state.queues.unlist(id);
                continue;
            }
            state.queues.move_listed(self.kept, id);
            self.kept += 1;
            // An inactive ClusterQueue hands out no head (§4.1 step 2) and stays listed for the
            // time when it is active.
            self.had_head |= state.queues.at(id).active && self.take_head(state, id);
        }
        if self.seen < state.queues.n_listed() {
            return false;
        }
        self.close(&mut state.queues);
        self.decide(state);
        true
    }

    /// Removes ClusterQueues without a head from the head list.
    pub(super) fn close(&mut self, queues: &mut QueueLayer) {
        queues.remove_listed(self.kept..self.seen);
        (self.seen, self.kept) = (0, 0);
    }

    /// Takes the head of a ClusterQueue. Returns false if there is none.
    fn take_head(&mut self, state: &mut State, id: QueueId) -> bool {
        let Some(workload) = state.queues.at(id).pending.head(&state.workloads) else {
            return false;
        };
        match forecast(state, id, workload) {
            HeadForecast::Unknown => self.evaluate(state, id, workload),
            HeadForecast::Known(ReevaluationForecast::Open) => {
                match certain_fit(state, id, workload) {
                    // The usage is known, so contention decides whether an evaluation can lead to a
                    // reservation.
                    Some((borrow, usage)) => {
                        self.contention.enter(state, id, workload, borrow, usage);
                    }
                    None => self.evaluate(state, id, workload),
                }
            }
            HeadForecast::Known(ReevaluationForecast::Reserves) => {
                self.reserved.mark(root(&state.quota, &state.queues, id));
                self.reserving.push((id, workload));
            }
            HeadForecast::Known(ReevaluationForecast::None) if competes_below_root(state, id) => {
                self.reserving.push((id, workload));
            }
            HeadForecast::Known(ReevaluationForecast::None) => {
                make_inadmissible_again(&mut state.workloads, &mut state.queues, id, workload);
            }
        }
        true
    }

    fn evaluate(&mut self, state: &State, id: QueueId, workload: WorkloadId) {
        self.evaluated_trees.mark(root(&state.quota, &state.queues, id));
        self.heads.push((state.quota.tree().node(state.queues.at(id).node).rank, id, workload));
    }

    /// Decides which contending and reserving heads are evaluated. A quota reservation without targets matters only
    /// if another head of the tree is evaluated.
    fn decide(&mut self, state: &mut State) {
        let mut contention = std::mem::take(&mut self.contention);
        contention.decide(state, |root| self.evaluated_trees.has(root) || self.reserved.has(root));
        for (id, workload) in contention.winners() {
            self.evaluate(state, id, workload);
        }
        self.contention = contention;
        let mut reserving = std::mem::take(&mut self.reserving);
        for (id, workload) in reserving.drain(..) {
            if self.evaluated_trees.has(root(&state.quota, &state.queues, id)) {
                self.evaluate(state, id, workload);
            } else {
                make_inadmissible_again(&mut state.workloads, &mut state.queues, id, workload);
            }
        }
        self.reserving = reserving;
        // The head list has no particular order; sorted by name, equal states nominate in equal
        // order.
        self.heads.sort_unstable();
    }
}

fn root(quota: &QuotaLayer, queues: &QueueLayer, id: QueueId) -> NodeId {
    quota.tree().root(queues.at(id).node)
}

/// Whether the head is compared with others of its cohort before their winner is compared with the rest of the tree. A head that is
/// refused then decides when the others have their turn (docs/reference/kueue.md §4.6).
fn competes_below_root(state: &State, id: QueueId) -> bool {
    let (tree, node) = (state.quota.tree(), state.queues.at(id).node);
    let parent = tree.parent(node);
    state.settings.fair_sharing.is_some() && parent.is_some_and(|parent| parent != tree.root(node))
}

/// A set of cohort trees by root, cleared in constant time.
#[derive(Debug, Default)]
struct TreeSet {
    stamps: DenseTable<NodeId, u64>,
    present: u64,
}

impl TreeSet {
    fn clear(&mut self) {
        self.present += 1;
    }

    fn mark(&mut self, root: NodeId) {
        *self.stamps.entry(root) = self.present;
    }

    fn has(&self, root: NodeId) -> bool {
        self.stamps.get(root) == Some(&self.present)
    }
}

/// What is known about a head before evaluation.
enum HeadForecast {
    /// It was not refused under the present configuration.
    Unknown,
    Known(ReevaluationForecast),
}

fn forecast(state: &State, id: QueueId, workload: WorkloadId) -> HeadForecast {
    let pending = &state.queues.at(id).pending;
    let one = state.workloads.at(workload);
    // A prediction needs a refusal under the present configuration.
    let known = pending.is_refused(one)
        && !pending.is_preemptor(workload)
        && !state.settings.reevaluate_refused;
    // With flavors left to try, the next scan starts behind those of the refusal and may succeed.
    if known && one.last_assignment.is_none() && super::nominate::is_valid(&state.queues, id, one) {
        HeadForecast::Known(reevaluate(state, id, workload))
    } else {
        HeadForecast::Unknown
    }
}

fn make_inadmissible_again(
    workloads: &mut WorkloadLayer,
    queues: &mut QueueLayer,
    id: QueueId,
    workload: WorkloadId,
) {
    queues.note_prediction();
    queues.change_pending(id, |pending| {
        pending.note_prediction();
        // The policy allows no target of any age (docs/reference/kueue.md §4.9).
        pending.mark_class_inadmissible(workload, None, workloads);
    });
}
