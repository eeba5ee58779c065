//! Orphan cleanup: copies on a worker that the hub no longer has.
//!
//! The durable intent to remove a copy is its absence on the hub, or a higher epoch there. A hub that was restored
//! from a backup lacks many objects at once; the breaker then stops the cleanup until a user confirms it. Source:
//! docs/reference/dispatch.md §9.

use std::collections::BTreeSet;

/// The breaker trips above this number and above this percentage of orphans.
const MANY: usize = 10;
const PERCENT: usize = 20;

/// A clone or a job that a worker lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCopy {
    /// Key of its Workload, `namespace/name`.
    pub workload: Box<str>,
    /// The epoch it carries.
    pub epoch: u64,
    /// It is being deleted, so a decision was made before.
    pub deleting: bool,
}

/// Result of comparing one worker with the hub.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrphanScan {
    /// Workloads and epochs of the copies to delete; sorted, without duplicates.
    pub orphans: Vec<(Box<str>, u64)>,
    /// The breaker tripped: nothing is deleted before a user confirms it.
    pub breaker_tripped: bool,
}

/// Compares the copies with this hub's origin on a worker with the hub. `on_hub` returns the epoch of a Workload on
/// the hub. `n_on_hub` is the number of Workloads on the hub, given at the first comparison after a restart: fewer
/// Workloads than copies on one worker trip the breaker. A copy that is being deleted counts as a copy, not as an
/// orphan.
pub fn find_orphans(
    listed: &[ListedCopy],
    on_hub: impl Fn(&str) -> Option<u64>,
    n_on_hub: Option<usize>,
) -> OrphanScan {
    let unwanted = |one: &&ListedCopy| {
        !one.deleting && on_hub(&one.workload).is_none_or(|epoch| epoch > one.epoch)
    };
    let found: BTreeSet<(&str, u64)> =
        listed.iter().filter(unwanted).map(|one| (&*one.workload, one.epoch)).collect();
    let all: BTreeSet<&str> = listed.iter().map(|one| &*one.workload).collect();
    // Clone and job of one Workload count once.
    let lost: BTreeSet<&str> = found.iter().map(|(workload, _)| *workload).collect();
    // Both limits must be exceeded: all copies of a small worker may go, and many of a large one.
    let many = lost.len() > MANY && lost.len() * 100 > all.len() * PERCENT;
    let tripped = many || !lost.is_empty() && n_on_hub.is_some_and(|on_hub| on_hub < all.len());
    let orphans = found.into_iter().map(|(workload, epoch)| (workload.into(), epoch)).collect();
    OrphanScan { orphans, breaker_tripped: tripped }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: std::ops::Range<usize>) -> Vec<ListedCopy> {
        let one =
            |one| ListedCopy { workload: format!("ns/{one:03}").into(), epoch: 2, deleting: false };
        names.map(one).collect()
    }

    #[test]
    fn a_copy_without_a_workload_or_with_a_lower_epoch_is_an_orphan() {
        let mut all = listed(0..4);
        all.extend(listed(0..1));
        let sweep = find_orphans(
            &all,
            |name| match name {
                "ns/000" => None,
                "ns/001" => Some(3),
                "ns/002" => Some(2),
                _ => Some(1),
            },
            None,
        );
        assert_eq!(sweep.orphans, [("ns/000".into(), 2), ("ns/001".into(), 2)]);
        assert!(!sweep.breaker_tripped);
    }

    #[test]
    fn a_copy_that_is_being_deleted_is_no_orphan() {
        let mut all = listed(0..30);
        all.iter_mut().take(20).for_each(|one| one.deleting = true);
        let sweep = find_orphans(&all, |name| (name >= "ns/025").then_some(2), None);
        assert_eq!((sweep.orphans.len(), sweep.breaker_tripped), (5, false));
        let nothing = find_orphans(&all, |_| None, None);
        assert_eq!(
            (nothing.orphans.len(), nothing.breaker_tripped),
            (10, false),
            "ten may go at once"
        );
    }

    #[test]
    fn after_a_restart_the_breaker_trips_if_the_hub_has_fewer_workloads_than_the_worker() {
        let one_is_lost = |name: &str| (name != "ns/000").then_some(2);
        let nothing_is_lost = |_: &str| Some(2);
        for (n_on_hub, tripped) in [(Some(2), true), (Some(3), false), (None, false)] {
            let sweep = find_orphans(&listed(0..3), one_is_lost, n_on_hub);
            assert_eq!((sweep.orphans.len(), sweep.breaker_tripped), (1, tripped), "{n_on_hub:?}");
        }
        assert!(!find_orphans(&listed(0..3), nothing_is_lost, Some(2)).breaker_tripped);
    }

    #[test]
    fn the_breaker_trips_above_ten_orphans_and_twenty_percent() {
        for (orphaned, of, tripped) in [
            (10, 10, false),
            (11, 11, true),
            (11, 54, true),
            (11, 55, false),
            (20, 100, false),
            (21, 100, true),
        ] {
            let kept = format!("ns/{orphaned:03}");
            let sweep = find_orphans(&listed(0..of), |name| (*name >= *kept).then_some(2), None);
            assert_eq!(
                (sweep.orphans.len(), sweep.breaker_tripped),
                (orphaned, tripped),
                "{orphaned}/{of}"
            );
        }
    }
}
