//! Which operated object is looked at next, pure.
//!
//! An object has at most one pass at a time. A change during a pass brings another one after it. A pass that was interrupted, because
//! an answer is unknown, is repeated with a growing delay. After a pass the object rests for a time that grows with what the pass has
//! read: the pods of a large RayCluster change one by one, and a pass for each of them would read all others.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::parent::ParentId;

/// The first delay after an interrupted pass, doubled after each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// How long an object rests for each object that its pass has read.
const REST_PER_CHILD: Duration = Duration::from_micros(500);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// The rest after a pass that read so many objects.
pub(super) fn rest_after(n_children: usize) -> Duration {
    let n_children = u32::try_from(n_children).unwrap_or(u32::MAX);
    REST_PER_CHILD.saturating_mul(n_children).min(LONGEST_REST)
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassOutcome {
    /// With a time of the next pass, if it has one.
    Complete(Option<Duration>),
    /// The answer to a write is unknown.
    Interrupted,
}

#[derive(Default)]
struct Entry {
    running: bool,
    changed: bool,
    due: Option<Instant>,
    /// No pass begins before.
    rests_until: Option<Instant>,
    interrupted: u32,
}

impl Entry {
    fn next_due(&self) -> Option<Instant> {
        // Without a rest a change waits for the end of another pass, or for the delay after an interrupted one.
        let changed = self.rests_until.filter(|_| self.changed && self.interrupted == 0);
        let due = self.due.map(|due| self.rests_until.map_or(due, |until| due.max(until)));
        changed.into_iter().chain(due).min()
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct PassQueue {
    entries: BTreeMap<ParentId, Entry>,
    n_running: usize,
}

impl PassQueue {
    /// Asks for a pass after a change.
    pub(super) fn note_change(&mut self, id: ParentId) {
        self.entries.entry(id).or_default().changed = true;
    }

    /// The objects whose pass may begin, so many at most.
    pub(super) fn take_due(&mut self, now: Instant, most: usize) -> Vec<ParentId> {
        let room = most.saturating_sub(self.n_running);
        let is_due = |entry: &Entry| {
            // The delay after an interrupted pass holds against changes as well: they may come from that pass.
            let delayed = entry.interrupted > 0 && entry.due.is_some_and(|due| due > now);
            let wanted = entry.changed || entry.due.is_some_and(|due| due <= now);
            let rests = entry.rests_until.is_some_and(|until| until > now);
            !entry.running && wanted && !delayed && !rests
        };
        let mut taken = Vec::new();
        for (id, entry) in self.entries.iter_mut().filter(|(_, entry)| is_due(entry)).take(room) {
            entry.running = true;
            entry.changed = false;
            entry.due = None;
            taken.push(id.clone());
        }
        self.n_running += taken.len();
        taken
    }

    /// Ends a pass, after which its object rests.
    pub(super) fn finish(
        &mut self,
        id: &ParentId,
        outcome: PassOutcome,
        rest: Duration,
        now: Instant,
    ) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        if std::mem::take(&mut entry.running) {
            self.n_running -= 1;
        }
        let after = match outcome {
            PassOutcome::Complete(after) => {
                entry.interrupted = 0;
                after
            }
            PassOutcome::Interrupted => {
                let delay = FIRST_DELAY.saturating_mul(1 << entry.interrupted.min(5));
                entry.interrupted += 1;
                Some(delay.min(LONGEST_DELAY))
            }
        };
        entry.due = after.map(|after| now + after);
        entry.rests_until = (!rest.is_zero()).then(|| now + rest);
        if entry.due.is_none() && !entry.changed && rest.is_zero() {
            self.entries.remove(id);
        }
    }

    /// When the next pass is due without a further change. None while so many passes run: the end of one of them comes first, and a time
    /// that is over would wake the loop without end.
    pub(super) fn next_due(&self, most: usize) -> Option<Instant> {
        if self.n_running >= most {
            return None;
        }
        let waiting = self.entries.values().filter(|entry| !entry.running);
        waiting.filter_map(Entry::next_due).min()
    }
}

#[cfg(test)]
mod tests {
    use runtime::watch::Key;

    use super::*;
    use crate::operators::parent::ParentKind;

    fn id(name: &str) -> ParentId {
        let key = Key { namespace: Some("ns".into()), name: name.into() };
        ParentId { kind: ParentKind::RayCluster, key }
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_change_during_a_pass_brings_another_one_after_it() {
        let (mut queue, now) = (PassQueue::default(), Instant::now());
        queue.note_change(id("a"));
        assert_eq!(queue.take_due(now, 8), [id("a")]);
        queue.note_change(id("a"));
        assert_eq!(queue.take_due(now, 8), []);
        queue.finish(&id("a"), PassOutcome::Complete(None), Duration::ZERO, now);
        assert_eq!(queue.take_due(now, 8), [id("a")]);
        queue.finish(&id("a"), PassOutcome::Complete(None), Duration::ZERO, now);
        assert_eq!(queue.take_due(now, 8), []);
    }

    #[test]
    fn passes_in_progress_are_bounded() {
        let (mut queue, now) = (PassQueue::default(), Instant::now());
        for name in ["a", "b", "c"] {
            queue.note_change(id(name));
        }
        assert_eq!(queue.take_due(now, 2), [id("a"), id("b")]);
        assert_eq!(queue.take_due(now, 2), []);
        queue.finish(&id("a"), PassOutcome::Complete(Some(secs(300))), Duration::ZERO, now);
        assert_eq!(queue.take_due(now, 2), [id("c")]);
        assert_eq!(queue.next_due(8), Some(now + secs(300)));
        queue.finish(&id("b"), PassOutcome::Complete(None), Duration::ZERO, now);
        assert_eq!(queue.take_due(now + secs(300), 2), [id("a")]);
    }

    #[test]
    fn an_interrupted_pass_is_repeated_later_and_later() {
        let (mut queue, mut now) = (PassQueue::default(), Instant::now());
        queue.note_change(id("a"));
        let mut delays = Vec::new();
        for _ in 0..7 {
            assert_eq!(queue.take_due(now, 8), [id("a")]);
            queue.finish(&id("a"), PassOutcome::Interrupted, Duration::ZERO, now);
            // What the pass wrote comes back as a change, and does not shorten the delay.
            queue.note_change(id("a"));
            assert_eq!(queue.take_due(now, 8), []);
            let due = queue.next_due(8).expect("a delay");
            delays.push(due.duration_since(now).as_secs());
            now = due;
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn nothing_is_due_while_no_pass_can_begin() {
        let (mut queue, now) = (PassQueue::default(), Instant::now());
        for name in ["a", "b"] {
            queue.note_change(id(name));
        }
        assert_eq!(queue.take_due(now, 8), [id("a"), id("b")]);
        queue.finish(&id("b"), PassOutcome::Complete(Some(secs(2))), Duration::ZERO, now);
        assert_eq!(queue.next_due(1), None, "the pass about a is the last that may run");
        queue.finish(&id("a"), PassOutcome::Complete(None), Duration::ZERO, now);
        assert_eq!(queue.next_due(1), Some(now + secs(2)));
    }

    #[test]
    fn an_object_with_many_children_rests_after_a_pass() {
        let (mut queue, now) = (PassQueue::default(), Instant::now());
        let rest = rest_after(1000);
        assert_eq!(rest, Duration::from_millis(500));
        assert_eq!((rest_after(0), rest_after(1_000_000)), (Duration::ZERO, LONGEST_REST));
        queue.note_change(id("a"));
        assert_eq!(queue.take_due(now, 8), [id("a")]);
        queue.finish(&id("a"), PassOutcome::Complete(None), rest, now);
        assert_eq!(queue.next_due(8), None, "nothing is wanted");
        queue.note_change(id("a"));
        queue.note_change(id("b"));
        assert_eq!(queue.take_due(now, 8), [id("b")], "others do not wait");
        assert_eq!(queue.next_due(8), Some(now + rest));
        assert_eq!(queue.take_due(now + rest, 8), [id("a")]);
        queue.finish(&id("a"), PassOutcome::Complete(None), Duration::ZERO, now + rest);
        assert!(!queue.entries.contains_key(&id("a")), "it is forgotten");
    }
}
