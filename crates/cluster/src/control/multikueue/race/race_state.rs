//! What is remembered of the race of clusters for a Workload, and of its wait in their queues.

use jiff::{SignedDuration, Timestamp};

use crate::control::time::moved;

/// A move of queued work to a cluster with room.
#[derive(Debug)]
struct QueuedMove {
    /// When it was decided.
    at: Timestamp,
    /// It was reported.
    announced: bool,
}

impl QueuedMove {
    /// One that is decided now.
    fn begun(now: Timestamp) -> Self {
        Self { at: now, announced: false }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RaceState {
    /// Clusters without reports race for the Workload.
    pub(crate) is_unreported: bool,
    /// It waits for further clusters to race.
    pub(crate) awaits_clusters: bool,
    /// It waits for queues of workers, as this process knows.
    queued: bool,
    /// Its last move to a cluster with room.
    moved: Option<QueuedMove>,
}

impl RaceState {
    /// The Workload waits for queues. Returns whether this process learns it now.
    pub(crate) fn remember_queued(&mut self) -> bool {
        !std::mem::replace(&mut self.queued, true)
    }

    /// A move is decided.
    pub(crate) fn move_begun(&mut self, now: Timestamp) {
        self.moved = Some(QueuedMove::begun(now));
    }

    /// The time of the last nomination or move.
    pub(crate) fn last_change(&self, nominated_at: Timestamp) -> Timestamp {
        self.moved.iter().map(|one| one.at).fold(nominated_at, Timestamp::max)
    }

    /// Reports a move once. Returns when it was decided, and whether it is to be reported.
    pub(crate) fn report_move(&mut self, now: Timestamp) -> (Timestamp, bool) {
        let moved = self.moved.get_or_insert_with(|| QueuedMove::begun(now));
        (moved.at, !std::mem::replace(&mut moved.announced, true))
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { is_unreported: _, awaits_clusters: _, queued: _, moved: last } = self;
        last.iter_mut().for_each(|one| one.at = moved(one.at, by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn a_move_is_reported_once_with_the_time_of_its_decision() {
        let mut race = RaceState::default();
        race.move_begun(at(10));
        assert_eq!(race.report_move(at(20)), (at(10), true));
        assert_eq!(race.report_move(at(30)), (at(10), false));
        race.move_begun(at(40));
        race.clock_jumped(SignedDuration::from_secs(-5));
        assert_eq!(race.report_move(at(50)), (at(35), true));
    }

    #[test]
    fn the_later_one_of_nomination_and_move_counts() {
        let mut race = RaceState::default();
        assert_eq!(race.last_change(at(5)), at(5));
        race.move_begun(at(10));
        assert_eq!((race.last_change(at(5)), race.last_change(at(15))), (at(10), at(15)));
    }

    #[test]
    fn a_process_learns_once_that_a_workload_is_queued() {
        let mut race = RaceState::default();
        assert!(race.remember_queued());
        assert!(!race.remember_queued());
    }
}
