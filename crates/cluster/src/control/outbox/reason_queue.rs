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

/// Reasons in flight, and the Workloads of those that wait for their turn.
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
    /// Takes the turn of a Workload to send its reason. Without a turn it waits behind those that wait already.
    pub(super) fn take_turn_or_wait(&mut self, workload: &Key) -> bool {
        let is_called = self.called.remove(workload);
        // Workloads of a call may be evaluated after others: their slots are kept for them.
        let n_kept = if is_called { 0 } else { self.called.len() };
        if self.n_free() > n_kept && (is_called || self.waiting.is_empty()) {
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
    pub(super) fn has_sendable(&self) -> bool {
        !self.waiting.is_empty() && self.n_free() > 0
    }

    /// Takes the Workloads that may send their reason now. One that needs none any more leaves its turn to those of the next call.
    pub(super) fn take_sendable(&mut self) -> Vec<Key> {
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
    use std::collections::BTreeMap;

    use proptest::{
        collection::{btree_set, vec},
        prelude::*,
    };

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
            assert!(queue.take_turn_or_wait(&key(at)));
            queue.begin(ticket(at));
        }
        queue
    }

    #[test]
    fn a_workload_waits_behind_those_that_wait() {
        let mut queue = full();
        assert!(!queue.take_turn_or_wait(&key(91)) && !queue.take_turn_or_wait(&key(90)));
        assert!(!queue.take_turn_or_wait(&key(91)), "it is evaluated again, and keeps its place");
        assert!(!queue.has_sendable());
        queue.settle(ticket(3));
        assert!(queue.has_sendable());
        assert!(!queue.take_turn_or_wait(&key(50)), "the slot is not its own");
        assert_eq!(queue.take_sendable(), [key(91)]);
        assert!(queue.take_turn_or_wait(&key(91)));
        queue.begin(ticket(91));
        queue.settle(ticket(4));
        queue.settle(ticket(5));
        assert_eq!(queue.take_sendable(), [key(90), key(50)]);
    }

    #[test]
    fn a_workload_without_need_leaves_its_turn_to_the_next() {
        let mut queue = full();
        assert!(!queue.take_turn_or_wait(&key(90)) && !queue.take_turn_or_wait(&key(91)));
        queue.settle(ticket(0));
        assert_eq!(queue.take_sendable(), [key(90)]);
        assert!(queue.has_sendable(), "90 has got quota meanwhile");
        assert_eq!(queue.take_sendable(), [key(91)]);
        assert!(queue.take_turn_or_wait(&key(91)));
    }

    #[test]
    fn an_answer_to_another_write_frees_no_slot() {
        let mut queue = full();
        assert!(!queue.take_turn_or_wait(&key(90)));
        queue.settle(ticket(1000));
        assert!(!queue.has_sendable() && queue.take_sendable().is_empty());
    }

    /// Evaluated before the one that is called, because its name is smaller.
    #[test]
    fn a_workload_that_comes_later_takes_no_slot_of_one_that_is_called() {
        let mut queue = full();
        assert!(!queue.take_turn_or_wait(&key(91)));
        queue.settle(ticket(3));
        assert_eq!(queue.take_sendable(), [key(91)]);
        assert!(!queue.take_turn_or_wait(&key(50)), "the slot is that of 91");
        assert!(queue.take_turn_or_wait(&key(91)));
        queue.begin(ticket(91));
        queue.settle(ticket(4));
        assert_eq!(queue.take_sendable(), [key(50)]);
    }

    const N_WORKLOADS: usize = 60;

    /// Workloads that need a reason, as decisions evaluate them.
    #[derive(Default)]
    struct Pending {
        queue: ReasonQueue,
        /// The round in which each asked for its turn first; it waits since.
        since: BTreeMap<usize, usize>,
        in_flight: VecDeque<usize>,
        round: usize,
    }

    impl Pending {
        /// Evaluates these Workloads, and those that are called, by name. The satisfied ones need no reason at this time.
        fn decide(&mut self, due: &BTreeSet<usize>, satisfied: &BTreeSet<usize>) {
            self.round += 1;
            let called = self.queue.take_sendable();
            let is_called = |at: usize| called.contains(&key(at));
            let mut latest = 0;
            for at in (0..N_WORKLOADS).filter(|&at| due.contains(&at) || is_called(at)) {
                let needs = !self.in_flight.contains(&at) && !satisfied.contains(&at);
                if needs && self.queue.take_turn_or_wait(&key(at)) {
                    self.queue.begin(ticket(at));
                    self.in_flight.push_back(at);
                    latest = latest.max(self.since.remove(&at).unwrap_or(self.round));
                } else if needs {
                    self.since.entry(at).or_insert(self.round);
                } else if is_called(at) {
                    self.since.remove(&at);
                }
            }
            let overtaken = self.since.iter().find(|&(_, &since)| since < latest);
            assert_eq!(overtaken, None, "in round {}", self.round);
            assert!(self.in_flight.len() <= MAX_REASONS_IN_FLIGHT);
        }

        fn answer(&mut self, n_answers: usize) {
            let n_answers = n_answers.min(self.in_flight.len());
            self.in_flight.drain(..n_answers).for_each(|at| self.queue.settle(ticket(at)));
        }
    }

    proptest! {
        /// In any order of needs and answers. Those of one round may go in any order.
        #[test]
        fn reasons_are_sent_first_come_first_served(
            rounds in vec(
                (btree_set(0..N_WORKLOADS, 0..30), 0..6_usize, btree_set(0..N_WORKLOADS, 0..3)),
                1..40,
            ),
        ) {
            let mut pending = Pending::default();
            for (due, n_answers, satisfied) in rounds {
                pending.decide(&due, &satisfied);
                pending.answer(n_answers);
            }
            for _ in 0..=N_WORKLOADS {
                pending.answer(1);
                pending.decide(&BTreeSet::new(), &BTreeSet::new());
            }
            prop_assert!(pending.since.is_empty(), "{:?} wait for ever", pending.since);
        }
    }
}
