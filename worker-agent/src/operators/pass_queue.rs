//! Which operated object is looked at next, pure.
//!
//! An object has at most one pass at a time. A change during a pass brings another one after it. A pass that was interrupted, because
//! an answer is unknown, is repeated with a growing delay. After a pass the object rests for a time that grows with what the pass has
//! read: the pods of a large RayCluster change one by one, and a pass for each of them would read all others.
//!
//! The object that has waited longest is next. Objects with a slow last pass, such as RayJobs with a head that hangs, may take half of the
//! passes at most, and together with objects that may ask a head and have had no pass yet three quarters: hundreds of hung heads delay no
//! object with a head that answers, nor one without a head, from the start of the agent on.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::parent::{ParentId, ParentKind};

/// The first delay after an interrupted pass, doubled after each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// A pass that took this long waits for something, such as the answer of a head.
const SLOW_PASS: Duration = Duration::from_secs(1);

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

/// How long a pass about an object takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PassPace {
    #[default]
    Quick,
    /// The first pass may wait for a head.
    Unknown,
    Slow,
}

impl PassPace {
    fn of_new(kind: ParentKind) -> Self {
        match kind {
            ParentKind::RayJob | ParentKind::RayService => Self::Unknown,
            ParentKind::RayCluster | ParentKind::RayCronJob | ParentKind::AppWrapper => Self::Quick,
        }
    }

    fn after(pass: Duration) -> Self {
        if pass >= SLOW_PASS { Self::Slow } else { Self::Quick }
    }
}

#[derive(Default)]
struct Entry {
    /// When its pass began.
    running: Option<Instant>,
    /// The first change that no pass has seen.
    changed: Option<Instant>,
    pace: PassPace,
    due: Option<Instant>,
    /// No pass begins before.
    rests_until: Option<Instant>,
    interrupted: u32,
}

impl Entry {
    /// Since when the object waits for a pass that may begin now.
    fn since(&self, now: Instant) -> Option<Instant> {
        // The delay after an interrupted pass holds against changes as well: they may come from that pass.
        let delayed = self.interrupted > 0 && self.due.is_some_and(|due| due > now);
        let rests = self.rests_until.is_some_and(|until| until > now);
        if self.running.is_some() || delayed || rests {
            return None;
        }
        self.changed.into_iter().chain(self.due.filter(|due| *due <= now)).min()
    }

    fn next_due(&self) -> Option<Instant> {
        // Without a rest a change waits for the end of another pass, or for the delay after an interrupted one.
        let changed = self.rests_until.filter(|_| self.changed.is_some() && self.interrupted == 0);
        let due = self.due.map(|due| self.rests_until.map_or(due, |until| due.max(until)));
        changed.into_iter().chain(due).min()
    }
}

/// The queue of operated objects.
#[derive(Default)]
pub(super) struct PassQueue {
    entries: BTreeMap<ParentId, Entry>,
    running: RunningPasses,
}

/// Numbers of passes.
#[derive(Clone, Copy, Default)]
struct RunningPasses {
    all: usize,
    unknown: usize,
    slow: usize,
}

impl RunningPasses {
    /// Whether one more may begin, if so many may run.
    fn has_room(self, pace: PassPace, most: usize) -> bool {
        let may_wait = || self.unknown + self.slow < (3 * most).div_ceil(4);
        let has_room_of_pace = match pace {
            PassPace::Quick => true,
            PassPace::Unknown => may_wait(),
            PassPace::Slow => may_wait() && self.slow < most.div_ceil(2),
        };
        self.all < most && has_room_of_pace
    }

    fn begin(&mut self, pace: PassPace) {
        self.all += 1;
        self.unknown += usize::from(pace == PassPace::Unknown);
        self.slow += usize::from(pace == PassPace::Slow);
    }

    fn end(&mut self, pace: PassPace) {
        self.all -= 1;
        self.unknown -= usize::from(pace == PassPace::Unknown);
        self.slow -= usize::from(pace == PassPace::Slow);
    }
}

impl PassQueue {
    /// Asks for a pass after a change.
    pub(super) fn note_change(&mut self, id: ParentId, now: Instant) {
        let pace = PassPace::of_new(id.kind);
        let entry = self.entries.entry(id).or_insert_with(|| Entry { pace, ..Entry::default() });
        entry.changed.get_or_insert(now);
    }

    /// The objects of the passes that may begin, so many at most.
    pub(super) fn take_due(&mut self, now: Instant, most: usize) -> Vec<ParentId> {
        // Each change of a watched object comes here, and most of them while all passes run.
        if !self.running.has_room(PassPace::Quick, most) {
            return Vec::new();
        }
        let waiting = self.entries.iter_mut();
        let waiting = waiting.filter_map(|(id, entry)| Some((entry.since(now)?, id, entry)));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_by_key(|(since, ..)| *since);
        let mut taken = Vec::new();
        for (_, id, entry) in waiting {
            if self.running.has_room(entry.pace, most) {
                self.running.begin(entry.pace);
                (entry.running, entry.changed, entry.due) = (Some(now), None, None);
                taken.push(id.clone());
            }
        }
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
        if let Some(began) = entry.running.take() {
            self.running.end(entry.pace);
            entry.pace = PassPace::after(now.duration_since(began));
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
        if entry.due.is_none() && entry.changed.is_none() && rest.is_zero() {
            self.entries.remove(id);
        }
    }

    /// When the next pass is due without a further change. None while so many passes run: the end of one of them comes first, and a time
    /// that is over would wake the loop without end.
    pub(super) fn next_due(&self, most: usize) -> Option<Instant> {
        let waiting = self.entries.values().filter(|entry| entry.running.is_none());
        let waiting = waiting.filter(|entry| self.running.has_room(entry.pace, most));
        waiting.filter_map(Entry::next_due).min()
    }
}

#[cfg(test)]
mod tests {
    use runtime::watch::Key;

    use super::*;

    fn id(name: &str) -> ParentId {
        id_of(ParentKind::RayCluster, name)
    }

    fn id_of(kind: ParentKind, name: &str) -> ParentId {
        ParentId { kind, key: Key { namespace: Some("ns".into()), name: name.into() } }
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_change_during_a_pass_brings_another_one_after_it() {
        let (mut queue, now) = (PassQueue::default(), Instant::now());
        queue.note_change(id("a"), now);
        assert_eq!(queue.take_due(now, 8), [id("a")]);
        queue.note_change(id("a"), now);
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
            queue.note_change(id(name), now);
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
        queue.note_change(id("a"), now);
        let mut delays = Vec::new();
        for _ in 0..7 {
            assert_eq!(queue.take_due(now, 8), [id("a")]);
            queue.finish(&id("a"), PassOutcome::Interrupted, Duration::ZERO, now);
            // What the pass wrote comes back as a change, and does not shorten the delay.
            queue.note_change(id("a"), now);
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
            queue.note_change(id(name), now);
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
        queue.note_change(id("a"), now);
        assert_eq!(queue.take_due(now, 8), [id("a")]);
        queue.finish(&id("a"), PassOutcome::Complete(None), rest, now);
        assert_eq!(queue.next_due(8), None, "nothing is wanted");
        queue.note_change(id("a"), now);
        queue.note_change(id("b"), now);
        assert_eq!(queue.take_due(now, 8), [id("b")], "others do not wait");
        assert_eq!(queue.next_due(8), Some(now + rest));
        assert_eq!(queue.take_due(now + rest, 8), [id("a")]);
        queue.finish(&id("a"), PassOutcome::Complete(None), Duration::ZERO, now + rest);
        assert!(!queue.entries.contains_key(&id("a")), "it is forgotten");
    }

    /// RayJobs with passes of two seconds, like those with a head that hangs, and an object with passes of none, which changes once: how
    /// long it waits.
    fn longest_wait(n_hung: usize, kind: ParentKind, changes_after: Duration) -> Duration {
        let (mut queue, mut now, begin) = (PassQueue::default(), Instant::now(), Instant::now());
        let hung = (0..n_hung).map(|index| id_of(ParentKind::RayJob, &format!("hung-{index}")));
        let hung: Vec<ParentId> = hung.collect();
        // Its name is behind all others.
        let well = id_of(kind, "well");
        hung.iter().for_each(|id| queue.note_change(id.clone(), now));
        let mut running: Vec<(Instant, ParentId)> = Vec::new();
        let (mut asked, mut has_changed, mut longest) = (None, false, Duration::ZERO);
        while now < begin + secs(60) {
            let (ended, others) = running.into_iter().partition(|(end, _)| *end <= now);
            running = others;
            for (_, id) in ended {
                queue.finish(&id, PassOutcome::Complete(Some(secs(2))), Duration::ZERO, now);
            }
            if !has_changed && now >= begin + changes_after {
                queue.note_change(well.clone(), now);
                (asked, has_changed) = (Some(now), true);
            }
            for taken in queue.take_due(now, 32) {
                if taken == well {
                    longest =
                        longest.max(now.duration_since(asked.take().expect("it was asked for")));
                    queue.finish(&taken, PassOutcome::Complete(None), Duration::ZERO, now);
                } else {
                    running.push((now + secs(2), taken));
                }
            }
            now += Duration::from_millis(100);
        }
        longest.max(asked.map_or(Duration::ZERO, |asked| now.duration_since(asked)))
    }

    #[test]
    fn heads_that_hang_delay_no_other_object() {
        for n_hung in [1, 40, 200] {
            for kind in [ParentKind::RayCluster, ParentKind::RayJob] {
                assert_eq!(longest_wait(n_hung, kind, secs(30)), Duration::ZERO, "{n_hung}");
            }
        }
    }

    #[test]
    fn heads_that_hang_from_the_start_delay_only_objects_that_ask_a_head_for_the_first_time() {
        for changes_after in [0, 1, 3, 7] {
            let wait = |kind| longest_wait(200, kind, secs(changes_after));
            for kind in [ParentKind::RayCluster, ParentKind::AppWrapper, ParentKind::RayCronJob] {
                assert_eq!(wait(kind), Duration::ZERO, "{kind:?} after {changes_after} s");
            }
            assert!(wait(ParentKind::RayJob) < secs(20), "after {changes_after} s");
        }
    }

    #[test]
    fn the_object_that_has_waited_longest_is_next() {
        let (mut queue, now) = (PassQueue::default(), Instant::now());
        queue.note_change(id("z"), now);
        queue.note_change(id("a"), now + secs(1));
        assert_eq!(queue.take_due(now + secs(1), 1), [id("z")]);
        queue.finish(&id("z"), PassOutcome::Complete(None), Duration::ZERO, now + secs(1));
        assert_eq!(queue.take_due(now + secs(1), 1), [id("a")]);
    }
}
