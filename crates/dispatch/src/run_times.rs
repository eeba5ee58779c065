//! How long work runs: declared, or learned from work of the same origin.
//!
//! A group is a LocalQueue with the owner of the jobs. Of each group, and of each LocalQueue as a whole, the newest run times are
//! kept. The estimate is their 90th percentile, that of the queue where the owner has too few. It is rounded up, so that few
//! estimates exist: work with equal requests and estimates is placed by one verdict. Source: docs/reference/dispatch.md §1.

use std::{collections::BTreeMap, fmt};

use engine::Time;

/// Run times that are kept per group.
const MAX_SAMPLES: usize = 64;

/// Groups that are kept. The one whose last run time is the oldest is forgotten first.
const MAX_GROUPS: usize = 4096;

/// Run times of one owner that an estimate needs.
const FEWEST_OF_OWNER: usize = 3;

/// Run times of one queue that an estimate needs: its owners may differ much.
const FEWEST_OF_QUEUE: usize = 10;

/// Estimates per doubling of the run time.
const STEPS: i64 = 8;

const SECOND: i64 = 1_000_000_000;

/// Work whose run times are alike: that of one owner in one queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunTimeGroup {
    /// The LocalQueue, as `namespace/name`.
    pub queue: Box<str>,
    /// Kind and name of the owner, without what distinguishes one job of it from the next.
    pub owner: Box<str>,
}

/// How long a Workload runs at most, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunTime {
    /// It is stopped after this time.
    Declared(i64),
    /// Most work of its origin did not run longer.
    Learned(i64),
}

impl RunTime {
    /// When work ends that starts at this time.
    pub(crate) fn end(self, start: Time) -> ExpectedEnd {
        let after = |nanos: i64| Time(start.0.saturating_add(nanos));
        match self {
            Self::Declared(nanos) => ExpectedEnd { at: after(nanos), may_overrun: false },
            Self::Learned(nanos) => ExpectedEnd { at: after(nanos), may_overrun: true },
        }
    }
}

/// `90s (declared)`, in seconds that are rounded up.
impl fmt::Display for RunTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nanos, source) = match self {
            Self::Declared(nanos) => (nanos, "declared"),
            Self::Learned(nanos) => (nanos, "learned"),
        };
        write!(f, "{}s ({source})", nanos.saturating_add(SECOND - 1) / SECOND)
    }
}

/// When placed work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedEnd {
    at: Time,
    /// The end is an estimate.
    may_overrun: bool,
}

impl ExpectedEnd {
    /// The end, as far as it is known: nothing is known of work that runs longer than work of its origin did.
    pub(crate) fn known(self, now: Time) -> Option<Time> {
        (!self.may_overrun || self.at > now).then_some(self.at)
    }

    /// When the end becomes unknown, if it may.
    pub(crate) fn overruns_at(self) -> Option<Time> {
        self.may_overrun.then_some(self.at)
    }
}

/// The run times of finished work.
#[derive(Debug, Default)]
pub(crate) struct RunTimes {
    /// By group; those of a whole queue under the empty owner.
    groups: BTreeMap<RunTimeGroup, Samples>,
}

/// The newest run times of a group.
#[derive(Debug, Default)]
struct Samples {
    /// End and nanoseconds of each, in order of their ends.
    by_end: BTreeMap<(Time, i64), usize>,
    count: usize,
}

impl RunTimes {
    /// Records that work of a group ran for so long until `end`. Ends may come in any order.
    pub(crate) fn record(&mut self, group: &RunTimeGroup, nanos: i64, end: Time) {
        for group in [whole_queue(group), group.clone()] {
            self.groups.entry(group).or_default().add(nanos, end);
        }
        while self.groups.len() > MAX_GROUPS {
            self.forget_oldest();
        }
    }

    /// The run time that most work of this origin does not exceed; `None` while too little of it has finished.
    pub(crate) fn estimate(&self, group: &RunTimeGroup) -> Option<i64> {
        let of_owner = self.groups.get(group).and_then(|one| one.estimate(FEWEST_OF_OWNER));
        of_owner.or_else(|| self.groups.get(&whole_queue(group))?.estimate(FEWEST_OF_QUEUE))
    }

    fn forget_oldest(&mut self) {
        let oldest = self.groups.iter().min_by_key(|(_, samples)| samples.newest());
        if let Some(group) = oldest.map(|(group, _)| group.clone()) {
            self.groups.remove(&group);
        }
    }
}

impl Samples {
    fn add(&mut self, nanos: i64, end: Time) {
        *self.by_end.entry((end, nanos)).or_default() += 1;
        self.count += 1;
        if self.count > MAX_SAMPLES
            && let Some(mut oldest) = self.by_end.first_entry()
        {
            self.count -= 1;
            *oldest.get_mut() -= 1;
            if *oldest.get() == 0 {
                oldest.remove();
            }
        }
    }

    fn newest(&self) -> Option<Time> {
        self.by_end.last_key_value().map(|((end, _), _)| *end)
    }

    fn estimate(&self, fewest: usize) -> Option<i64> {
        if self.count < fewest {
            return None;
        }
        let samples = self.by_end.iter();
        let samples = samples.flat_map(|((_, nanos), times)| std::iter::repeat_n(*nanos, *times));
        let mut sorted: Vec<i64> = samples.collect();
        sorted.sort_unstable();
        // The smallest run time that nine in ten do not exceed.
        sorted.get((sorted.len() * 9).div_ceil(10) - 1).map(|nanos| rounded_up(*nanos))
    }
}

fn whole_queue(group: &RunTimeGroup) -> RunTimeGroup {
    RunTimeGroup { queue: group.queue.clone(), owner: "".into() }
}

/// The next of [`STEPS`] values per doubling.
fn rounded_up(nanos: i64) -> i64 {
    let step = nanos.max(1).ilog2().checked_sub(STEPS.ilog2()).map_or(1, |bits| 1_i64 << bits);
    nanos.saturating_add(step - 1) / step * step
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn group(queue: &str, owner: &str) -> RunTimeGroup {
        RunTimeGroup { queue: queue.into(), owner: owner.into() }
    }

    fn learned(samples: &[(&str, i64)]) -> RunTimes {
        let mut history = RunTimes::default();
        for (end, (owner, nanos)) in (0..).zip(samples) {
            history.record(&group("team/q", owner), *nanos, Time(end));
        }
        history
    }

    #[test]
    fn an_owner_is_known_after_three_runs_and_a_queue_after_ten() {
        let mut samples = vec![("nightly", 8), ("nightly", 10)];
        assert_eq!(learned(&samples).estimate(&group("team/q", "nightly")), None);
        samples.push(("nightly", 9));
        assert_eq!(learned(&samples).estimate(&group("team/q", "nightly")), Some(10));
        assert_eq!(learned(&samples).estimate(&group("team/q", "other")), None);
        samples.extend([("a", 16), ("b", 16), ("c", 64), ("d", 1), ("e", 1), ("f", 1), ("g", 1)]);
        assert_eq!(learned(&samples).estimate(&group("team/q", "other")), Some(16));
        assert_eq!(learned(&samples).estimate(&group("team/r", "other")), None);
    }

    #[test]
    fn one_run_in_ten_may_be_longer() {
        let mut samples = vec![("o", 8); 18];
        samples.extend([("o", 4096); 2]);
        assert_eq!(learned(&samples).estimate(&group("team/q", "o")), Some(8));
        samples.push(("o", 4096));
        assert_eq!(learned(&samples).estimate(&group("team/q", "o")), Some(4096));
    }

    #[test]
    fn only_the_newest_run_times_count_whatever_their_order() {
        let mut history = RunTimes::default();
        let owner = group("team/q", "o");
        (100..200).for_each(|end| history.record(&owner, 8, Time(end)));
        (0..100).for_each(|end| history.record(&owner, 4096, Time(end)));
        assert_eq!(history.estimate(&owner), Some(8), "these ended before");
        (200..300).for_each(|end| history.record(&owner, 16, Time(end)));
        assert_eq!(history.estimate(&owner), Some(16));
        assert!(history.groups.values().all(|one| one.count == MAX_SAMPLES));
    }

    #[test]
    fn the_group_that_ended_first_is_forgotten_first() {
        let mut history = RunTimes::default();
        let owner = |number: i64| group("team/q", &format!("o{number}"));
        let n_groups = i64::try_from(MAX_GROUPS).expect("small");
        for number in 0..n_groups + 9 {
            (0..3).for_each(|_| history.record(&owner(number), 1 << number.min(20), Time(number)));
        }
        assert_eq!(history.groups.len(), MAX_GROUPS);
        assert_eq!(history.estimate(&owner(0)), history.estimate(&owner(-1)), "as the queue says");
        assert_eq!(history.estimate(&owner(n_groups)), Some(1 << 20));
    }

    #[test]
    fn an_estimate_that_is_over_says_nothing() {
        let start = Time(100);
        let ends = |run: RunTime, now| run.end(start).known(Time(now));
        assert_eq!(ends(RunTime::Declared(10), 500), Some(Time(110)));
        assert_eq!(ends(RunTime::Learned(10), 109), Some(Time(110)));
        assert_eq!(ends(RunTime::Learned(10), 110), None);
    }

    proptest! {
        #[test]
        fn an_estimate_is_rounded_up_by_an_eighth_at_most(nanos in 1..i64::MAX / 2) {
            let rounded = rounded_up(nanos);
            prop_assert!(rounded >= nanos && i128::from(rounded - nanos) * 8 <= i128::from(nanos));
            prop_assert_eq!(rounded_up(rounded), rounded);
        }
    }
}
