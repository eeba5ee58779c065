//! What reads have shown of sets that are not observed while pods of theirs wait.
//!
//! A pod without a gate runs without quota. The watch of sets may be late or broken while that of pods goes on, so a set that is
//! not observed is read first: only a consistent answer without it releases the pods that had been there long enough by then.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::control::{job_key::JobKey, key_map::KeyMap, outbox::after, time::moved};

/// How old a pod is before its set counts as gone. The watches of pods and sets are not in step: a pod may be seen before its new set.
pub(super) const SHOWN_AFTER: Duration = Duration::from_mins(1);

/// The last answers about sets that are not observed while pods of theirs wait.
#[derive(Debug, Default)]
pub(super) struct AbsentSets {
    answers: KeyMap<JobKey, SetRead>,
    /// By set that is being read: when the read was sent.
    sent: KeyMap<JobKey, Timestamp>,
}

/// The last answer to the read of a set.
#[derive(Clone, Copy, Debug)]
struct SetRead {
    /// When it was sent: the answer may show the set as it was then.
    at: Timestamp,
    /// The set did not exist.
    absent: bool,
}

/// What to do about a pod of a set that is not observed.
pub(super) enum WaitingMember {
    /// It loses its gate.
    Release,
    /// The set is read.
    Read,
    /// The pod is looked at again at this time.
    Wait(Timestamp),
}

impl AbsentSets {
    /// Records that a read was sent.
    pub(super) fn sent(&mut self, set: &JobKey, now: Timestamp) {
        self.sent.insert(set.clone(), now);
    }

    /// Takes the answer to a read: whether the set did not exist.
    pub(super) fn answered(&mut self, set: &JobKey, absent: bool) {
        if let Some(at) = self.sent.remove(set) {
            self.answers.insert(set.clone(), SetRead { at, absent });
        }
    }

    /// The clock jumped: reads are as old as before.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { answers, sent } = self;
        sent.for_each_mut(|_, at| *at = moved(*at, by));
        answers.for_each_mut(|_, read| read.at = moved(read.at, by));
    }

    /// No pod waits for the set.
    pub(super) fn forget(&mut self, set: &JobKey) {
        self.answers.remove(set);
        self.sent.remove(set);
    }

    /// Decides about a pod of a set that has to be seen at `shown`.
    pub(super) fn decide(&self, set: &JobKey, shown: Timestamp, now: Timestamp) -> WaitingMember {
        match self.answers.get(set) {
            _ if now < shown => WaitingMember::Wait(shown),
            Some(read) if read.absent && shown <= read.at => WaitingMember::Release,
            // The watch is late, or the answer said nothing.
            Some(read) if !read.absent && now < after(read.at, SHOWN_AFTER) => {
                WaitingMember::Wait(after(read.at, SHOWN_AFTER))
            }
            _ => WaitingMember::Read,
        }
    }
}

#[cfg(test)]
mod tests {
    use ::jobs::leader_worker_set;
    use runtime::watch::Key;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn set() -> JobKey {
        let key = Key { namespace: Some("ns".into()), name: "serve".into() };
        JobKey::new(leader_worker_set::kind(), &key)
    }

    #[test]
    fn a_read_shows_a_set_as_it_was_when_it_was_sent() {
        for (sent, released) in [(59, false), (60, true)] {
            let mut sets = AbsentSets::default();
            sets.sent(&set(), at(sent));
            sets.answered(&set(), true);
            let decided = sets.decide(&set(), at(60), at(70));
            assert_eq!(matches!(decided, WaitingMember::Release), released, "{sent}");
        }
    }

    #[test]
    fn a_read_is_as_old_after_a_jump_of_the_clock_as_before() {
        for by in [SignedDuration::from_hours(3), SignedDuration::from_hours(-3)] {
            let mut sets = AbsentSets::default();
            sets.sent(&set(), at(60));
            sets.answered(&set(), false);
            sets.clock_jumped(by);
            let until = |pause: i64| sets.decide(&set(), at(60) + by, at(60 + pause) + by);
            assert!(matches!(until(59), WaitingMember::Wait(at) if at == self::at(120) + by));
            assert!(matches!(until(60), WaitingMember::Read));
        }
    }
}
