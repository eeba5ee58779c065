//! Copies that a worker removes or changes after it has admitted them, as a controller or a webhook there may
//! (docs/reference/dispatch.md §3).
//!
//! A copy that is lost once may be a person's doing, and the Workload is dispatched again at once. From the second time on the
//! cluster is left out; in a race, which leaves none out, no copy is created there for as long.

use std::{collections::BTreeMap, time::Duration};

use engine::ids::ClusterId;
use jiff::{SignedDuration, Timestamp};

use crate::control::{
    outbox::after,
    time::{doubled, moved},
};

/// The pause after the second loss.
const SHORTEST: Duration = Duration::from_secs(60);

/// The longest pause, and the time after which a cluster begins again.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The losses on one cluster that follow one another.
#[derive(Debug)]
struct Losses {
    times: u32,
    /// The epoch of the last one.
    epoch: u64,
    /// When the pause after it ends.
    until: Timestamp,
}

/// See the module. Of one Workload, by cluster.
#[derive(Debug, Default)]
pub(crate) struct LostCopies(BTreeMap<ClusterId, Losses>);

impl LostCopies {
    /// The recorded copy of this epoch is lost, which counts once. Returns whether it is not the first one.
    pub(crate) fn lost(&mut self, cluster: ClusterId, epoch: u64, now: Timestamp) -> bool {
        self.0.retain(|_, one| now < after(one.until, LONGEST));
        let before = self.0.get(&cluster).map_or((0, None), |one| (one.times, Some(one.epoch)));
        if before.1 != Some(epoch) {
            let times = before.0.saturating_add(1);
            let pause = times.checked_sub(2).map(|earlier| doubled(SHORTEST, earlier, LONGEST));
            let until = after(now, pause.unwrap_or_default());
            self.0.insert(cluster, Losses { times, epoch, until });
        }
        self.0.get(&cluster).is_some_and(|one| one.times > 1)
    }

    /// Until when a cluster that races gets no copy.
    pub(crate) fn paused_until(&self, cluster: ClusterId) -> Option<Timestamp> {
        self.0.get(&cluster).filter(|one| one.times > 1).map(|one| one.until)
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        self.0.values_mut().for_each(|one| one.until = moved(one.until, by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn a_cluster_that_loses_copies_again_and_again_is_paused_longer_and_longer() {
        let (mut lost, east) = (LostCopies::default(), ClusterId(1));
        assert!(!lost.lost(east, 1, at(0)), "once may be a person's doing");
        assert_eq!(lost.paused_until(east), None);
        let mut now = 0;
        for (epoch, pause) in [60, 120, 240, 480, 960, 1800, 1800].into_iter().enumerate() {
            let epoch = epoch as u64 + 2;
            assert!(lost.lost(east, epoch, at(now)));
            assert!(lost.lost(east, epoch, at(now + 1)), "an epoch counts once");
            assert_eq!(lost.paused_until(east), Some(at(now + pause)));
            now += pause;
        }
        assert_eq!(lost.paused_until(ClusterId(2)), None);
        lost.clock_jumped(SignedDuration::from_secs(7));
        assert_eq!(lost.paused_until(east), Some(at(now + 7)));
        assert!(!lost.lost(east, 99, at(now + 7 + 1800)), "a quiet half an hour is forgotten");
    }
}
