//! Partial admission: finds the largest Workload that can be admitted if the whole one cannot. Kueue:
//! `PodSetReducer`.
//!
//! Every pod set shrinks from its count towards its minimum in proportion. Finished pods count, so a tried count may
//! exceed the pods that are left. The smallest reduction that works is bisected, on the assumption that a larger
//! reduction works if a smaller one does. Source: docs/reference/kueue.md §4.5.

use smallvec::SmallVec;

use crate::spec::PodSetSpec;
use crate::workloads::equivalence_class::EquivalenceClass;

/// Counts of all pod sets.
pub(crate) type Counts = SmallVec<[i64; 4]>;

/// Bisects the smallest reduction that `works` accepts. Returns true if the last accepted reduction is the result.
pub(crate) fn search(class: &EquivalenceClass, mut works: impl FnMut(&Counts) -> bool) -> bool {
    let whole = |one: &PodSetSpec| one.count + one.reclaimed;
    let spare = |one: &PodSetSpec| whole(one) - one.min_count.unwrap_or(whole(one));
    let total: i64 = class.pod_sets.iter().map(spare).sum();
    // Without a minimum below its count no pod set can shrink.
    if total == 0 {
        return false;
    }
    let reduced = |by: i64| -> Counts {
        let count = |pod_set: &PodSetSpec| match pod_set.count {
            // Upstream does not raise a count of zero.
            0 => 0,
            _ => whole(pod_set) - spare(pod_set) * by / total,
        };
        class.pod_sets.iter().map(count).collect()
    };
    // `total + 1` stands for: no reduction works.
    let (mut low, mut high, mut accepted) = (0, total + 1, None);
    while low < high {
        let middle = low + (high - low) / 2;
        if works(&reduced(middle)) {
            accepted = Some(middle);
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    accepted == Some(low)
}
