//! What reads have shown of sets that are not observed while pods of theirs wait.
//!
//! A pod without a gate runs without quota. The watch of sets may be late or broken while that of pods goes on, so a set that is not observed is read
//! first: only a consistent answer without it releases the pods that had been there long enough by then.

use std::time::Duration;

use jiff::Timestamp;

use crate::control::{job_key::JobKey, key_map::KeyMap, outbox::after};

/// How old a pod is before its set counts as gone. The watches of pods and sets are not in step: a pod may be seen before its new set.
pub(super) const SHOWN_AFTER: Duration = Duration::from_mins(1);

/// The last answers about sets that are not observed while pods of theirs wait.
#[derive(Debug, Default)]
pub(super) struct AbsentSets(KeyMap<JobKey, SetRead>);

/// The last answer to the read of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetRead {
    pub(super) at: Timestamp,
    /// The set did not exist.
    pub(super) absent: bool,
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
    /// Takes the answer to a read.
    pub(super) fn read(&mut self, set: &JobKey, read: SetRead) {
        self.0.insert(set.clone(), read);
    }

    /// No pod waits for the set.
    pub(super) fn forget(&mut self, set: &JobKey) {
        self.0.remove(set);
    }

    /// Decides about a pod whose set has to be seen at `shown`.
    pub(super) fn decide(&self, set: &JobKey, shown: Timestamp, now: Timestamp) -> WaitingMember {
        match self.0.get(set) {
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
