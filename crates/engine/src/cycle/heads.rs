//! Whose turn it is.
//!
//! Every active queue hands out its head. A wake-up brings back all parked shapes of a tree, and each takes its turn, as
//! in upstream; but a shape that was evaluated here before and must be refused again is not evaluated: it takes its
//! turn and is parked. So the order of decisions is upstream's, and only those are evaluated who may now fit, preempt, or
//! keep quota from somebody who may. Source: spec/kueue-core.md §3.3, §3.4. Cost: one judgement of [`hope`] per turn.

use crate::flavors::hope::{Hope, hope};
use crate::ids::{NodeId, QueueId, WorkloadId};
use crate::state::State;

/// The heads of one cycle. Its buffers are kept between cycles.
#[derive(Debug, Default)]
pub(super) struct Heads {
    heads: Vec<(QueueId, WorkloadId)>,
    /// Those who can at most reserve quota.
    reserving: Vec<(QueueId, WorkloadId)>,
    /// By node: the number of the last call in which a head of this tree was to be evaluated.
    stirred: Vec<u64>,
    calls: u64,
}

impl Heads {
    /// The heads to evaluate, in the order of the names of their queues.
    pub(super) fn all(&self) -> &[(QueueId, WorkloadId)] {
        &self.heads
    }

    /// Takes the head of every active queue out of its line. Returns whether anybody had a turn.
    pub(super) fn take(&mut self, state: &mut State) -> bool {
        self.heads.clear();
        self.reserving.clear();
        self.calls += 1;
        let mut turns = false;
        let mut kept = 0;
        for at in 0..state.with_heads.len() {
            let id = state.with_heads[at];
            let queue = state.queue_mut(id);
            if !queue.line.has_head() {
                queue.listed = false;
                continue;
            }
            state.with_heads[kept] = id;
            kept += 1;
            turns |= state.queue(id).active && self.turn(state, id);
        }
        state.with_heads.truncate(kept);
        self.add_reserving(state);
        let rank = |id: QueueId| state.tree.node(state.queue(id).node).rank;
        self.heads.sort_unstable_by_key(|&(id, _)| rank(id));
        turns
    }

    /// Gives a queue its turn.
    fn turn(&mut self, state: &mut State, id: QueueId) -> bool {
        let Some(workload) = state.queue(id).line.head(&state.workloads) else {
            return false;
        };
        match outlook(state, id, workload) {
            Hope::Open => self.evaluate(state, id, workload),
            Hope::Reserves => self.reserving.push((id, workload)),
            Hope::None => park_again(state, id, workload),
        }
        true
    }

    fn evaluate(&mut self, state: &mut State, id: QueueId, workload: WorkloadId) {
        let root = root(state, id).index();
        if self.stirred.len() <= root {
            self.stirred.resize(root + 1, 0);
        }
        self.stirred[root] = self.calls;
        let State { queues, workloads, .. } = state;
        let queue = queues[id.index()].as_mut().expect("invariant: listed queues exist");
        queue.line.remove(workload, workloads);
        self.heads.push((id, workload));
    }

    /// A reservation matters if anybody else of the tree is evaluated.
    fn add_reserving(&mut self, state: &mut State) {
        let mut reserving = std::mem::take(&mut self.reserving);
        for (id, workload) in reserving.drain(..) {
            if self.stirred.get(root(state, id).index()) == Some(&self.calls) {
                self.evaluate(state, id, workload);
            } else {
                park_again(state, id, workload);
            }
        }
        self.reserving = reserving;
    }
}

fn root(state: &State, id: QueueId) -> NodeId {
    state.tree.root(state.queue(id).node)
}

/// What can become of a head. Only of those who were refused before anything is known.
fn outlook(state: &State, id: QueueId, workload: WorkloadId) -> Hope {
    let line = &state.queue(id).line;
    let one = state.workloads.at(workload);
    let known = line.is_refused(one) && !line.is_preemptor(workload) && !state.settings.look_again;
    if known && one.scan.is_none() && super::nominate::is_valid(state, id, one) {
        hope(state, id, workload)
    } else {
        Hope::Open
    }
}

fn park_again(state: &mut State, id: QueueId, workload: WorkloadId) {
    let State { queues, workloads, shapes, .. } = state;
    let queue = queues[id.index()].as_mut().expect("invariant: listed queues exist");
    let one = workloads.at(workload);
    let (shape, priority) = (one.shape, one.priority);
    if queue.line.park_shape(shape, priority, workloads) {
        shapes.retain(shape);
    }
}
