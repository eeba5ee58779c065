//! A cluster that a queued Workload was moved to (docs/reference/dispatch.md §3).
//!
//! It stays nominated when it does not take the Workload: the race goes on, and its clone may still be admitted. Only the room
//! that was counted there is free for others.

use engine::Time;

use super::{
    DispatchTimeouts, RemoteCopy,
    nomination::{LATE, refusal_of},
};

/// What becomes of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveProgress {
    /// The cluster has admitted the clone; it may be recorded.
    Admitted,
    /// The cluster may admit the clone until this time.
    Awaited(Time),
    /// The cluster does not take the Workload. With the reason.
    Failed(Box<str>),
}

impl RemoteCopy {
    /// What becomes of a move to this cluster that began at `since`.
    #[must_use]
    pub fn move_progress(
        &self,
        since: Time,
        timeouts: &DispatchTimeouts,
        now: Time,
    ) -> MoveProgress {
        let clone = self.clone.as_ref();
        let refused = || clone.and_then(|clone| refusal_of(clone, false));
        if let Some(why) = self.refused.clone().or_else(refused) {
            return MoveProgress::Failed(why);
        }
        if clone.is_some_and(|clone| clone.admitted_at.is_some() && !clone.evicted) {
            return MoveProgress::Admitted;
        }
        let until = Time(since.0.saturating_add(timeouts.admission_timeout));
        if now >= until { MoveProgress::Failed(LATE.into()) } else { MoveProgress::Awaited(until) }
    }
}
