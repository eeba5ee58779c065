//! Workloads that wait for the capacity of worker clusters, by requeue key.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{RequeueKey, WorkloadId};

/// What a Workload waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CapacityWait<'a> {
    pub(crate) key: RequeueKey,
    pub(crate) further_keys: &'a [RequeueKey],
    /// It waits for quota, too.
    pub(crate) awaits_quota: bool,
}

/// The Workloads under each requeue key.
#[derive(Debug, Default, Clone)]
pub(super) struct CapacityWaits {
    by_key: BTreeMap<RequeueKey, BTreeSet<WorkloadId>>,
    /// Keys of Workloads that wait under several, beside the one in their record.
    further: BTreeMap<WorkloadId, Box<[RequeueKey]>>,
}

impl CapacityWaits {
    /// Adds a Workload that does not wait.
    pub(super) fn add(&mut self, id: WorkloadId, key: RequeueKey, further: &[RequeueKey]) {
        for &one in std::iter::once(&key).chain(further) {
            self.by_key.entry(one).or_default().insert(id);
        }
        if !further.is_empty() {
            self.further.insert(id, further.into());
        }
    }

    /// The Workloads that wait under a key.
    pub(super) fn under(&self, key: RequeueKey) -> BTreeSet<WorkloadId> {
        self.by_key.get(&key).cloned().unwrap_or_default()
    }

    /// Removes a Workload that waits under `key`, and under its further ones.
    pub(super) fn remove(&mut self, id: WorkloadId, key: RequeueKey) {
        let further = self.further.remove(&id).unwrap_or_default();
        for &one in std::iter::once(&key).chain(&further) {
            let Some(ids) = self.by_key.get_mut(&one) else {
                continue;
            };
            ids.remove(&id);
            // Keys come from the placer without bound, so no empty set is kept.
            if ids.is_empty() {
                self.by_key.remove(&one);
            }
        }
    }
}
