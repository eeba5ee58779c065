//! Orphan cleanup: copies on a worker that the hub no longer has.
//!
//! The durable intent to remove a copy is its absence on the hub, or a higher epoch there. A hub that was restored
//! from a backup lacks many objects at once; the breaker then stops the cleanup until a user confirms it. Source:
//! docs/reference/dispatch.md §9.

use std::collections::BTreeSet;

use crate::{CopyHistory, CopyStamp, HubIncarnation, PresentWorkload};

/// The breaker trips above this number and above this percentage of orphans.
const BREAKER_MIN_ORPHANS: usize = 10;
const BREAKER_PERCENT: usize = 20;

/// A clone or a job that a worker lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCopy {
    /// Key of its Workload, `namespace/name`.
    pub workload: Box<str>,
    /// What it carries.
    pub stamp: CopyStamp,
    /// It is being deleted, so a decision was made before.
    pub deleting: bool,
}

/// A Workload of the hub, as a copy is compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubWorkload<'a> {
    /// Its epoch; `None` if the hub does not have it.
    pub epoch: Option<u64>,
    /// Its uid and version.
    pub present: Option<PresentWorkload<'a>>,
    /// The uid of the last Workload of the name whose deletion was observed.
    pub deleted_uid: Option<&'a str>,
}

/// Result of comparing one worker with the hub.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrphanScan {
    /// Workloads and epochs of the copies to delete; sorted, without duplicates.
    pub orphans: Vec<(Box<str>, u64)>,
    /// Workloads of the copies that only a person decides about; sorted, without duplicates.
    pub disputed: Vec<Box<str>>,
    /// A copy proves that the hub went back ([`HubIncarnation::is_behind`]).
    pub hub_went_back: bool,
    /// The breaker tripped: nothing is deleted before a user confirms it.
    pub breaker_tripped: bool,
}

/// Compares the copies with this hub's origin on a worker with the hub. `on_hub` returns the Workload of a name.
/// `n_on_hub` is the number of Workloads on the hub, given at the first comparison after a restart: fewer
/// Workloads than copies on one worker trip the breaker, and so does any copy of a higher epoch or of a history that the
/// hub does not know. A copy that is being deleted counts as a copy, not as an orphan.
pub fn find_orphans<'a>(
    listed: &[ListedCopy],
    on_hub: impl Fn(&str) -> HubWorkload<'a>,
    incarnation: &HubIncarnation,
    n_on_hub: Option<usize>,
) -> OrphanScan {
    let is_disputed = |one: &ListedCopy| {
        let hub = on_hub(&one.workload);
        let history = incarnation.history(&one.stamp, hub.present, hub.deleted_uid);
        history == CopyHistory::Unknown || hub.epoch.is_some_and(|epoch| epoch < one.stamp.epoch)
    };
    let is_orphan =
        |one: &ListedCopy| on_hub(&one.workload).epoch.is_none_or(|epoch| epoch > one.stamp.epoch);
    let present = listed.iter().filter(|one| !one.deleting);
    let (disputed, others): (Vec<&ListedCopy>, Vec<&ListedCopy>) =
        present.partition(|one| is_disputed(one));
    let found: BTreeSet<(&str, u64)> = others
        .into_iter()
        .filter(|one| is_orphan(one))
        .map(|one| (&*one.workload, one.stamp.epoch))
        .collect();
    let disputed: BTreeSet<&str> = disputed.into_iter().map(|one| &*one.workload).collect();
    let all: BTreeSet<&str> = listed.iter().map(|one| &*one.workload).collect();
    // Clone and job of one Workload count once.
    let orphaned: BTreeSet<&str> = found.iter().map(|(workload, _)| *workload).collect();
    // Both limits must be exceeded: all copies of a small worker may go, and many of a large one.
    let many =
        orphaned.len() > BREAKER_MIN_ORPHANS && orphaned.len() * 100 > all.len() * BREAKER_PERCENT;
    let fewer = !orphaned.is_empty() && n_on_hub.is_some_and(|on_hub| on_hub < all.len());
    OrphanScan {
        orphans: found.into_iter().map(|(name, epoch)| (name.into(), epoch)).collect(),
        breaker_tripped: many || fewer || !disputed.is_empty(),
        disputed: disputed.into_iter().map(Into::into).collect(),
        hub_went_back: listed.iter().any(|one| incarnation.is_behind(&one.stamp)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: std::ops::Range<usize>) -> Vec<ListedCopy> {
        let stamp = CopyStamp { epoch: 2, ..CopyStamp::default() };
        let one = |one| ListedCopy {
            workload: format!("ns/{one:03}").into(),
            stamp: stamp.clone(),
            deleting: false,
        };
        names.map(one).collect()
    }

    /// The comparison with a hub that has these epochs.
    fn scan(
        listed: &[ListedCopy],
        epoch_of: impl Fn(&str) -> Option<u64>,
        n_on_hub: Option<usize>,
    ) -> OrphanScan {
        let on_hub =
            |name: &str| HubWorkload { epoch: epoch_of(name), present: None, deleted_uid: None };
        find_orphans(listed, on_hub, &HubIncarnation::default(), n_on_hub)
    }

    #[test]
    fn a_copy_of_a_higher_epoch_or_another_incarnation_is_no_orphan_and_trips_the_breaker() {
        let mut all = listed(0..3);
        all[1].stamp.incarnation = Some(9);
        let sweep = scan(&all, |name| Some(if name == "ns/000" { 1 } else { 2 }), None);
        assert_eq!(sweep.disputed, ["ns/000".into(), "ns/001".into()]);
        assert_eq!((sweep.orphans.len(), sweep.breaker_tripped), (0, true));
        let gone = scan(&all, |_| None, None);
        assert_eq!(gone.disputed, ["ns/001".into()], "no Workload has a lower epoch");
        assert_eq!((gone.orphans.len(), gone.breaker_tripped), (2, true));
    }

    #[test]
    fn a_copy_without_a_workload_or_with_a_lower_epoch_is_an_orphan() {
        let mut all = listed(0..4);
        all.extend(listed(0..1));
        let sweep = scan(
            &all,
            |name| match name {
                "ns/000" => None,
                "ns/001" => Some(3),
                _ => Some(2),
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
        let sweep = scan(&all, |name| (name >= "ns/025").then_some(2), None);
        assert_eq!((sweep.orphans.len(), sweep.breaker_tripped), (5, false));
        let nothing = scan(&all, |_| None, None);
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
            let sweep = scan(&listed(0..3), one_is_lost, n_on_hub);
            assert_eq!((sweep.orphans.len(), sweep.breaker_tripped), (1, tripped), "{n_on_hub:?}");
        }
        assert!(!scan(&listed(0..3), nothing_is_lost, Some(2)).breaker_tripped);
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
            let sweep = scan(&listed(0..of), |name| (*name >= *kept).then_some(2), None);
            assert_eq!(
                (sweep.orphans.len(), sweep.breaker_tripped),
                (orphaned, tripped),
                "{orphaned}/{of}"
            );
        }
    }
}
