//! Which Workloads say that they replace an older slice, by the name of the older one.
//!
//! A claim may name a Workload that is not known (yet). [`crate::slices`] decides which claims count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ids::WorkloadId;

/// Claims by the name of the older slice. Shared with what-ifs that do not change them.
#[derive(Debug, Default, Clone)]
pub(crate) struct SliceReplacements(Arc<BTreeMap<Box<str>, BTreeSet<WorkloadId>>>);

/// Workloads that a change of a claim may affect.
pub(crate) type AffectedSlices = SmallVec<[WorkloadId; 2]>;

impl SliceReplacements {
    /// True if there is no claim.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of older slices with a claim.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Records that `new` names `old` as the slice that it replaces.
    pub(crate) fn add(&mut self, old: &str, new: WorkloadId) {
        // A claim that is known already must not copy a table that a what-if shares.
        if !self.0.get(old).is_some_and(|claims| claims.contains(&new)) {
            Arc::make_mut(&mut self.0).entry(old.into()).or_default().insert(new);
        }
    }

    /// Removes the claim of `new` on `old`.
    pub(crate) fn remove(&mut self, old: &str, new: WorkloadId) {
        let all = Arc::make_mut(&mut self.0);
        if let Some(claims) = all.get_mut(old) {
            claims.remove(&new);
            if claims.is_empty() {
                all.remove(old);
            }
        }
    }

    /// Workloads that claim to replace the one named `old`.
    pub(crate) fn of(&self, old: &str) -> impl Iterator<Item = WorkloadId> + '_ {
        self.0.get(old).into_iter().flatten().copied()
    }
}
