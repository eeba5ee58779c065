//! The order in which the reasons of pending Workloads are written.
//!
//! A reason explains and changes nothing. A new leader, or a changed quota, may have ten thousand of them to write; sent together, each
//! reservation that is decided meanwhile would wait behind them. So a few are in flight at a time, and the others are not decided yet:
//! when its turn comes, a Workload is evaluated again, and one that has got quota by then needs no reason any more.

use std::collections::{BTreeSet, VecDeque};

use runtime::watch::Key;

use super::TicketId;

/// Reasons in flight: a quarter of what a leader sends at a time.
pub(crate) const MAX_REASONS_IN_FLIGHT: usize = 16;

/// Reasons in flight, and Workloads whose reason waits for its turn.
#[derive(Debug, Default)]
pub(super) struct ReasonQueue {
    in_flight: BTreeSet<TicketId>,
    waiting: VecDeque<Key>,
    /// The members of `waiting`.
    is_waiting: BTreeSet<Key>,
    /// Workloads that are evaluated because it is their turn.
    called: BTreeSet<Key>,
}

impl ReasonQueue {
    /// Whether the reason of a Workload may be sent now. Otherwise the Workload waits behind those that wait already.
    pub(super) fn is_its_turn(&mut self, workload: &Key) -> bool {
        let called = self.called.remove(workload);
        // The slots of those that are called are theirs in this round.
        let is_next = self.waiting.is_empty() && self.n_free() > self.called.len();
        if self.n_free() > 0 && (called || is_next) {
            return true;
        }
        if self.is_waiting.insert(workload.clone()) {
            self.waiting.push_back(workload.clone());
        }
        false
    }

    /// A reason is sent.
    pub(super) fn begin(&mut self, ticket: TicketId) {
        self.in_flight.insert(ticket);
    }

    /// A write has its answer.
    pub(super) fn settle(&mut self, ticket: TicketId) {
        self.in_flight.remove(&ticket);
    }

    /// Whether a Workload waits although its reason may be sent.
    pub(super) fn has_turns(&self) -> bool {
        !self.waiting.is_empty() && self.n_free() > 0
    }

    /// The Workloads whose turn it is. One that needs no reason any more leaves its turn to those of the next call.
    pub(super) fn call(&mut self) -> Vec<Key> {
        let n_called = self.n_free().min(self.waiting.len());
        let called: Vec<Key> = self.waiting.drain(..n_called).collect();
        called.iter().for_each(|workload| {
            self.is_waiting.remove(workload);
        });
        self.called = called.iter().cloned().collect();
        called
    }

    fn n_free(&self) -> usize {
        MAX_REASONS_IN_FLIGHT.saturating_sub(self.in_flight.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(at: usize) -> Key {
        Key { namespace: Some("ns".into()), name: format!("w{at:02}").into() }
    }

    fn ticket(at: usize) -> TicketId {
        TicketId::new(u64::try_from(at).expect("a number"))
    }

    /// With a reason in flight for each slot.
    fn full() -> ReasonQueue {
        let mut queue = ReasonQueue::default();
        for at in 0..MAX_REASONS_IN_FLIGHT {
            assert!(queue.is_its_turn(&key(at)));
            queue.begin(ticket(at));
        }
        queue
    }

    #[test]
    fn a_workload_waits_behind_those_that_wait() {
        let mut queue = full();
        assert!(!queue.is_its_turn(&key(91)) && !queue.is_its_turn(&key(90)));
        assert!(!queue.is_its_turn(&key(91)), "it is evaluated again, and keeps its place");
        assert!(!queue.has_turns());
        queue.settle(ticket(3));
        assert!(queue.has_turns());
        assert!(!queue.is_its_turn(&key(50)), "the slot is not its own");
        assert_eq!(queue.call(), [key(91)]);
        assert!(queue.is_its_turn(&key(91)));
        queue.begin(ticket(91));
        queue.settle(ticket(4));
        queue.settle(ticket(5));
        assert_eq!(queue.call(), [key(90), key(50)]);
    }

    #[test]
    fn a_workload_without_need_leaves_its_turn_to_the_next() {
        let mut queue = full();
        assert!(!queue.is_its_turn(&key(90)) && !queue.is_its_turn(&key(91)));
        queue.settle(ticket(0));
        assert_eq!(queue.call(), [key(90)]);
        assert!(queue.has_turns(), "90 has got quota meanwhile");
        assert_eq!(queue.call(), [key(91)]);
        assert!(queue.is_its_turn(&key(91)));
    }

    #[test]
    fn no_workload_takes_the_slot_of_one_that_is_called() {
        let mut queue = full();
        assert!(!queue.is_its_turn(&key(90)));
        queue.settle(ticket(0));
        assert_eq!(queue.call(), [key(90)]);
        assert!(!queue.is_its_turn(&key(20)), "the only slot is that of 90");
        assert!(queue.is_its_turn(&key(90)));
    }

    #[test]
    fn an_answer_to_another_write_frees_no_slot() {
        let mut queue = full();
        assert!(!queue.is_its_turn(&key(90)));
        queue.settle(ticket(1000));
        assert!(!queue.has_turns() && queue.call().is_empty());
    }
}
