//! The breaker of orphan cleanup: copies on a worker that the hub does not know (docs/reference/dispatch.md §9).
//!
//! A copy is deleted when its Workload is not on the hub. But a hub that was restored from a backup misses many Workloads at
//! once. So copies are counted before anything is decided whenever many may be found: when the worker was listed, when all
//! Workloads of the hub were, and when a later list of either shows what no watch reported. If too many are unknown, the
//! breaker trips, and none of these is deleted before a user confirms it. It trips as well for a single copy of a higher epoch
//! or of a history that the hub does not know. In between each copy is decided about when it or its Workload changes, and
//! every `gcInterval` all of them are compared. A Workload that the hub had at the last comparison, and that is deleted since, takes
//! its copies with it.
//!
//! A confirmation is about what was asked: one that was there before the breaker tripped is void. It is removed when it is void, and
//! when nothing unknown is left.
//!
//! Cost: one look at every copy per list and interval.

use crds::names::annotations::CLEANUP;
use dispatch::OrphanScan;
use runtime::watch::Key;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    tripped: bool,
    /// The MultiKueueCluster had a confirmation already when the breaker tripped.
    void_confirmation: bool,
    /// The worker was compared with the hub since this process began.
    compared: bool,
    /// What the last comparison found. The Workloads of orphans may have vanished from the hub by a restore.
    found: OrphanScan,
}

impl Breaker {
    pub(crate) fn is_tripped(&self) -> bool {
        self.tripped
    }

    /// Whether a user has confirmed what the breaker asks. `annotated`: the MultiKueueCluster has a confirmation.
    pub(crate) fn is_confirmed(&self, annotated: bool) -> bool {
        annotated && self.tripped && !self.void_confirmation
    }

    /// Whether a confirmation says nothing: it is void, or nothing is asked.
    pub(crate) fn ends_confirmation(&self) -> bool {
        self.void_confirmation || self.compared && !self.tripped
    }

    /// The MultiKueueCluster has changed. Without a confirmation the next one counts.
    pub(crate) fn registration_observed(&mut self, annotated: bool) {
        self.void_confirmation &= annotated;
    }

    /// Whether the next comparison is the first of this process.
    pub(crate) fn is_first(&self) -> bool {
        !self.compared
    }

    /// Takes a comparison after a list. `annotated`: the MultiKueueCluster has a confirmation. A breaker that has tripped stays so until
    /// nothing unknown is left, however often the worker reconnects.
    pub(crate) fn compare(&mut self, cluster: &str, annotated: bool, sweep: &OrphanScan) {
        self.compared = true;
        self.count(cluster, annotated, sweep, sweep.breaker_tripped);
    }

    /// Takes the comparison of a garbage collection. All of its orphans were counted when they were first observed. Returns
    /// whether their number changed.
    pub(crate) fn recount(&mut self, cluster: &str, annotated: bool, sweep: &OrphanScan) -> bool {
        let before = (self.tripped, self.n_unknown());
        self.count(cluster, annotated, sweep, !sweep.disputed.is_empty());
        before != (self.tripped, self.n_unknown())
    }

    /// Whether the copies of a Workload that the hub does not have must stay. `is_departed`: they belong to the Workload that this
    /// process observed until it was deleted. A rebuild may have made them known since the last comparison.
    pub(crate) fn holds(&self, key: &Key, is_departed: impl FnOnce() -> bool) -> bool {
        if !self.tripped {
            return false;
        }
        let workload = key.to_string();
        let is_orphan = self.found.orphans.iter().any(|(name, _)| **name == *workload);
        let was_disputed = || self.found.disputed.iter().any(|name| **name == *workload);
        is_orphan || was_disputed() && !is_departed()
    }

    /// Workloads with copies that a person is asked about.
    pub(crate) fn n_asked(&self) -> usize {
        if self.tripped { self.n_unknown() } else { 0 }
    }

    /// Unknown and disputed copies at the last comparison.
    fn n_unknown(&self) -> usize {
        self.found.orphans.len() + self.found.disputed.len()
    }

    fn count(&mut self, cluster: &str, annotated: bool, sweep: &OrphanScan, trips: bool) {
        self.found = sweep.clone();
        let n_unknown = self.n_unknown();
        if trips && !self.tripped {
            self.void_confirmation = annotated;
            tracing::error!(
                cluster,
                n_unknown,
                "the worker has copies of unknown Workloads; annotate the MultiKueueCluster with {CLEANUP}=confirmed to delete them"
            );
        }
        // Fewer unknown copies do not close it again: the first deletions would make the rest look harmless.
        self.tripped = trips || self.tripped && n_unknown > 0;
    }

    /// The message of the worker's condition: that of its connection, and what a user is asked to confirm.
    pub(crate) fn message(&self, connection: &str) -> String {
        let n_unknown = self.n_unknown();
        format!(
            "{connection}; it has copies of {n_unknown} workloads that are not known here, which stay until the annotation {CLEANUP}=confirmed is set"
        )
    }
}
