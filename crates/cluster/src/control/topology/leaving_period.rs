//! For how long a pod counts as one that is about to leave its node.
//!
//! A deleted pod has its grace period to end, and its deletion timestamp is the end of that. Heads wait for pods that leave, so a
//! pod counts only while its end is near: a grace period may be a day, and the kubelet of a node that hangs ends no pod at all. A
//! pod of an evicted Workload that is not deleted yet has as long after the release of the quota: the controller of the job
//! deletes it, and that may be stopped. Outside of these times a pod is foreign usage like any other (docs/reference/kueue.md
//! §4.11).

use jiff::{SignedDuration, Timestamp};

/// The longest time before the end of the grace period: Workloads wait about as long for their own pods to become ready.
const BEFORE_END: SignedDuration = SignedDuration::from_mins(10);

/// The time after it, in which the kubelet kills and removes a pod: twice the default grace period.
const AFTER_END: SignedDuration = SignedDuration::from_secs(60);

/// When a pod counts as one that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeavingPeriod {
    begin: Timestamp,
    end: Timestamp,
}

impl LeavingPeriod {
    /// The period of a pod with this deletion timestamp.
    pub(super) fn of_deleted(deletion: Timestamp) -> Self {
        let begin = deletion.checked_sub(BEFORE_END).unwrap_or(Timestamp::MIN);
        Self { begin, end: deletion.checked_add(AFTER_END).unwrap_or(Timestamp::MAX) }
    }

    /// The period of a pod without one. Its Workload was evicted, and has had no quota since this time.
    pub(super) fn of_evicted(released: Timestamp) -> Self {
        let end = released.checked_add(BEFORE_END).unwrap_or(Timestamp::MAX);
        Self { begin: Timestamp::MIN, end }
    }

    /// Whether the pod is about to leave its node.
    pub(super) fn contains(self, now: Timestamp) -> bool {
        self.begin <= now && now < self.end
    }

    /// The next time at which [`contains`](Self::contains) changes.
    pub(super) fn next_change(self, now: Timestamp) -> Option<Timestamp> {
        [self.begin, self.end].into_iter().find(|limit| *limit > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn a_pod_leaves_around_the_end_of_its_grace_period() {
        let deleted = LeavingPeriod::of_deleted(at(1000));
        let changes = |now| (deleted.contains(at(now)), deleted.next_change(at(now)));
        assert_eq!(changes(399), (false, Some(at(400))));
        assert_eq!(changes(400), (true, Some(at(1060))));
        assert_eq!(changes(1059), (true, Some(at(1060))));
        assert_eq!(changes(1060), (false, None));
        let never = LeavingPeriod::of_deleted(Timestamp::MAX);
        let always = LeavingPeriod::of_deleted(Timestamp::MIN);
        assert!(!never.contains(at(0)) && always.contains(Timestamp::MIN));
    }

    #[test]
    fn a_pod_that_no_controller_deletes_leaves_for_a_while_after_the_release() {
        let evicted = LeavingPeriod::of_evicted(at(1000));
        let changes = |now| (evicted.contains(at(now)), evicted.next_change(at(now)));
        assert_eq!(changes(0), (true, Some(at(1600))), "clocks may differ");
        assert_eq!(changes(1599), (true, Some(at(1600))));
        assert_eq!(changes(1600), (false, None));
    }
}
