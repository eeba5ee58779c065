//! What a worker has that the hub does not want any more.
//!
//! The durable intent to remove something is its absence on the hub, or a higher epoch there. A hub that was restored from
//! a backup misses much at once: then nothing is deleted before a person says so. Source: docs/reference/dispatch.md §9.

use std::collections::BTreeSet;

/// More than this many at once, and more than this share, is suspicious.
const MANY: usize = 10;
const PERCENT: usize = 20;

/// A clone or a job on a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCopy {
    /// Its Workload, as `namespace/name`.
    pub workload: Box<str>,
    /// The epoch it carries.
    pub epoch: u64,
    /// Its removal has begun. It was decided about before, and nobody can take that back.
    pub deleting: bool,
}

/// What a sweep over one worker found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrphanScan {
    /// Workloads whose copies, at these epochs, are to be deleted; sorted, each once.
    pub orphans: Vec<(Box<str>, u64)>,
    /// They are too many: nothing is deleted, a person is asked.
    pub breaker_tripped: bool,
}

/// Compares everything of this hub's origin on a worker with the hub, whose epochs `on_hub` tells. `n_on_hub` is how many
/// Workloads the hub has in all, where this process looks for the first time: with fewer than one worker has copies,
/// something is missing. What is leaving is one of the copies, but neither found nor asked about.
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
    let lost: BTreeSet<&str> = found.iter().map(|(workload, _)| *workload).collect();
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
    fn what_the_hub_misses_or_has_at_a_higher_epoch_is_an_orphan() {
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
    fn what_is_leaving_is_not_asked_about() {
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
    fn after_a_restart_the_breaker_trips_where_the_hub_has_less_than_the_worker() {
        let one_is_lost = |name: &str| (name != "ns/000").then_some(2);
        let nothing_is_lost = |_: &str| Some(2);
        for (n_on_hub, tripped) in [(Some(2), true), (Some(3), false), (None, false)] {
            let sweep = find_orphans(&listed(0..3), one_is_lost, n_on_hub);
            assert_eq!((sweep.orphans.len(), sweep.breaker_tripped), (1, tripped), "{n_on_hub:?}");
        }
        assert!(!find_orphans(&listed(0..3), nothing_is_lost, Some(2)).breaker_tripped);
    }

    #[test]
    fn the_breaker_trips_above_ten_and_a_fifth() {
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
