//! Partial admission: a smaller Workload that can be admitted, if the whole cannot.
//!
//! Every pod set shrinks from its count towards its minimum, all in proportion. The smallest reduction that works is
//! bisected, as if larger reductions always worked when smaller ones do. Source: spec/kueue-core.md §4.5.

use smallvec::SmallVec;

use crate::shape::Shape;

/// Counts of all pod sets.
pub(crate) type Counts = SmallVec<[i64; 4]>;

/// Looks for the smallest reduction that `works` accepts. Returns true if the last reduction accepted is the one found.
pub(crate) fn search(shape: &Shape, mut works: impl FnMut(&Counts) -> bool) -> bool {
    let spare = |index: usize| {
        let one = &shape.pod_sets[index];
        one.count - one.min_count.unwrap_or(one.count)
    };
    let total: i64 = (0..shape.pod_sets.len()).map(spare).sum();
    if total == 0 {
        return false;
    }
    let reduced = |by: i64| -> Counts {
        let counts = shape.pod_sets.iter().enumerate();
        counts.map(|(index, one)| one.count - spare(index) * by / total).collect()
    };
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
