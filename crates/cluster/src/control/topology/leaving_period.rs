//! For how long a deleted pod counts as one that is about to leave its node.
//!
//! A pod has its grace period to end, and its deletion timestamp is the end of that. Heads wait for pods that leave, so a pod counts
//! only while its end is near: a grace period may be a day, and the kubelet of a node that hangs ends no pod at all. Before and after
//! that a deleted pod is foreign usage like any other (docs/reference/kueue.md §4.11).

use jiff::{SignedDuration, Timestamp};

/// The longest time before the end of the grace period: Workloads wait about as long for their own pods to become ready.
const BEFORE_END: SignedDuration = SignedDuration::from_mins(10);

/// The time after it, in which the kubelet kills and removes a pod: twice the default grace period.
const AFTER_END: SignedDuration = SignedDuration::from_secs(60);

/// Whether a pod with this deletion timestamp is about to leave its node.
pub(super) fn is_leaving(deletion: Timestamp, now: Timestamp) -> bool {
    let [begin, end] = limits(deletion);
    begin <= now && now < end
}

/// The next time at which [`is_leaving`] changes.
pub(super) fn next_change(deletion: Timestamp, now: Timestamp) -> Option<Timestamp> {
    limits(deletion).into_iter().find(|limit| *limit > now)
}

fn limits(deletion: Timestamp) -> [Timestamp; 2] {
    let begin = deletion.checked_sub(BEFORE_END).unwrap_or(Timestamp::MIN);
    [begin, deletion.checked_add(AFTER_END).unwrap_or(Timestamp::MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_leaves_around_the_end_of_its_grace_period() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let changes = |now| (is_leaving(at(1000), at(now)), next_change(at(1000), at(now)));
        assert_eq!(changes(399), (false, Some(at(400))));
        assert_eq!(changes(400), (true, Some(at(1060))));
        assert_eq!(changes(1059), (true, Some(at(1060))));
        assert_eq!(changes(1060), (false, None));
        assert!(!is_leaving(Timestamp::MAX, at(0)) && is_leaving(Timestamp::MIN, Timestamp::MIN));
    }
}
