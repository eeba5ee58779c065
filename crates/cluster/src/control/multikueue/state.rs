//! What is remembered of a Workload's dispatch.
//!
//! All of it may be lost: after a restart the cautious values hold until the API servers say more.

use std::collections::BTreeSet;

use dispatch::workload::{LocalJob, RemoteCopy};
use engine::{Time, ids::ClusterId};
use jiff::{SignedDuration, Timestamp};

use super::{
    copies::{
        lost_copies::LostCopies,
        name_wait::{NEWER_COPY_GRACE, NameWait},
        sent_copies::SentCopies,
    },
    race::{race_state::RaceState, waiting_messages::WaitingMessages},
    statuses::status_sync::StatusSyncThrottle,
};
use crate::control::{
    outbox::after,
    time::{engine_time, moved},
};

/// Copies of a former leader, and what was read of them.
#[derive(Debug, Default)]
pub(super) struct FormerCopies {
    /// A former leader may have created copies.
    pub(super) may_exist: bool,
    /// Clusters on which the copies were read since the hub Lease has the term of this leader.
    pub(super) read_on: BTreeSet<ClusterId>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct DispatchState {
    /// Since when the recorded worker has admitted the Workload and not started it.
    pub(super) start_awaited_since: Option<Timestamp>,
    /// Since when the clone there is finished, while a copy of its job may be there that is not observed.
    pub(super) end_awaited_since: Option<Timestamp>,
    pub(super) names: NameWait,
    pub(super) sent: SentCopies,
    pub(super) former: FormerCopies,
    /// The highest epoch of any copy that was observed.
    pub(super) highest_epoch: u64,
    /// Since when a copy has a higher epoch than the observed Workload.
    newer_copy_since: Option<Timestamp>,
    /// The epoch was raised for the withdrawal that is under way.
    pub(super) epoch_raised: bool,
    /// Nothing of the Workload runs on any worker.
    pub(super) withdrawn: bool,
    pub(super) race: RaceState,
    pub(super) lost_copies: LostCopies,
    /// When the status of its job was copied to the hub.
    pub(super) throttle: StatusSyncThrottle,
    /// What the check says about workers that have not admitted it.
    pub(super) waiting: WaitingMessages,
    /// Since when it is nominated, as far as this process knows.
    pub(super) nominated_at: Timestamp,
}

/// Since when something lasts, as this process has seen; `None` if it does not.
fn lasting_since(known: &mut Option<Timestamp>, lasts: bool, now: Timestamp) -> Option<Timestamp> {
    *known = lasts.then(|| known.unwrap_or(now));
    *known
}

/// Since when the recorded worker has something to do for a Workload.
pub(super) struct AssignedWaits {
    /// It has admitted the Workload and does not start the jobs.
    pub(super) start: Option<Time>,
    /// The clone there is finished, and a copy of its job may be there.
    pub(super) end: Option<Time>,
}

impl DispatchState {
    /// Of a Workload that this process observes for the first time: a create may be on its way.
    pub(super) fn unknown(now: Timestamp) -> Self {
        let mut unknown = Self::fresh(now);
        unknown.sent.any = true;
        unknown.former.may_exist = true;
        unknown
    }

    /// Of a Workload that gets or gives back quota now.
    fn fresh(now: Timestamp) -> Self {
        Self {
            start_awaited_since: None,
            end_awaited_since: None,
            names: NameWait::default(),
            sent: SentCopies::default(),
            former: FormerCopies::default(),
            highest_epoch: 0,
            newer_copy_since: None,
            epoch_raised: false,
            withdrawn: false,
            race: RaceState::default(),
            lost_copies: LostCopies::default(),
            throttle: StatusSyncThrottle::default(),
            waiting: WaitingMessages::default(),
            nominated_at: now,
        }
    }

    /// Of the same Workload, which gets or gives back quota now.
    pub(super) fn restarted(&mut self, now: Timestamp) {
        self.keep_only_losses(Self::fresh(now));
    }

    /// Of the same Workload, with copies that a former leader may have created.
    pub(super) fn doubted(&mut self, now: Timestamp) {
        self.keep_only_losses(Self::unknown(now));
    }

    /// Becomes another state, with the count of lost copies.
    fn keep_only_losses(&mut self, next: Self) {
        let lost_copies = std::mem::take(&mut self.lost_copies);
        *self = Self { lost_copies, ..next };
    }

    /// Remembers what the recorded worker has to do.
    pub(super) fn note_waits(
        &mut self,
        recorded: Option<&RemoteCopy>,
        job: &LocalJob,
        now: Timestamp,
    ) -> AssignedWaits {
        let starts = recorded.is_some_and(|copy| copy.awaits_start(job));
        let ends = recorded.is_some_and(RemoteCopy::awaits_end);
        let start = lasting_since(&mut self.start_awaited_since, starts, now);
        let end = lasting_since(&mut self.end_awaited_since, ends, now);
        AssignedWaits { start: start.map(engine_time), end: end.map(engine_time) }
    }

    /// Until when a copy of a higher epoch may be that of a Workload which is observed late. `newer` says whether there is one.
    pub(super) fn newer_copy_until(&mut self, newer: bool, now: Timestamp) -> Option<Timestamp> {
        let since = lasting_since(&mut self.newer_copy_since, newer, now);
        since.map(|since| after(since, NEWER_COPY_GRACE))
    }

    /// The clock jumped.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            start_awaited_since,
            end_awaited_since,
            names,
            sent,
            former: _,
            highest_epoch: _,
            newer_copy_since,
            epoch_raised: _,
            withdrawn: _,
            race,
            lost_copies,
            throttle,
            waiting,
            nominated_at,
        } = self;
        *nominated_at = moved(*nominated_at, by);
        for at in [newer_copy_since, start_awaited_since, end_awaited_since] {
            *at = at.map(|at| moved(at, by));
        }
        names.clock_jumped(by);
        race.clock_jumped(by);
        lost_copies.clock_jumped(by);
        sent.clock_jumped(by);
        throttle.clock_jumped(by);
        waiting.clock_jumped(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_lost_copies_outlives_each_reservation() {
        let (mut state, now) = (DispatchState::fresh(Timestamp::UNIX_EPOCH), Timestamp::UNIX_EPOCH);
        assert!(!state.lost_copies.lost(ClusterId(1), 1, now));
        state.restarted(now);
        state.doubted(now);
        assert!(
            state.former.may_exist && state.sent.any,
            "a former leader may have created copies"
        );
        assert!(state.lost_copies.lost(ClusterId(1), 2, now), "it is not the first one");
    }
}
