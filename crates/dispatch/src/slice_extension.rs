//! A slice of an elastic job that extends one which runs on a worker (docs/reference/multikueue.md §2.13).
//!
//! It goes to the cluster of the older slice only, and needs room there for what it has beyond that one: the pods of the older
//! slice become its own. Until the older slice is gone, each is counted with its own pods; then all pods count with the newer
//! one, without a moment in which they are free.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Time,
    ids::{ClusterId, WorkloadId},
};

use crate::{AssignedPodSet, AssignedWorkload, ClusterRace, Fleet, WorkloadRequest};

/// What a slice extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceExtension {
    /// The older slice.
    pub old: WorkloadId,
    /// Name of the cluster that runs it.
    pub cluster: Box<str>,
    /// All pods of the newer slice.
    pub whole: Arc<AssignedWorkload>,
}

impl AssignedWorkload {
    /// The pods beyond those of an older slice, which has so many per pod set.
    #[must_use]
    pub fn beyond(&self, old: impl Fn(&str) -> i64) -> Self {
        let further = |count: i64, name: &str| count.saturating_sub(old(name)).max(0);
        let sets = self.pod_sets().map(|(pods, count, given)| AssignedPodSet {
            count: further(count, &pods.name),
            ..given.cloned().unwrap_or_default()
        });
        Self { assigned: sets.collect(), ..self.clone() }
    }
}

/// Placed slices that extend another one, by that one.
#[derive(Debug, Default)]
pub(crate) struct SliceExtensions(BTreeMap<WorkloadId, (WorkloadId, Arc<AssignedWorkload>)>);

impl SliceExtensions {
    /// Forgets what a Workload extends.
    pub(crate) fn forget(&mut self, new: WorkloadId) {
        self.0.retain(|_, (one, _)| *one != new);
    }

    /// The slice that extends a Workload, which is gone now, with all of its pods.
    pub(crate) fn take(&mut self, old: WorkloadId) -> Option<(WorkloadId, Arc<AssignedWorkload>)> {
        self.0.remove(&old)
    }
}

impl Fleet {
    /// Places a Workload with what it has beyond the slice that it extends, if it extends one.
    pub fn place_extending(
        &mut self,
        workload: WorkloadId,
        cluster: ClusterId,
        (work, extends): (Arc<AssignedWorkload>, Option<&SliceExtension>),
        since: Time,
    ) {
        self.place(workload, cluster, work, since);
        if let Some(extension) = extends {
            self.extend(workload, extension);
        }
    }

    /// Records that a placed Workload extends another one. It was placed with the further pods.
    pub fn extend(&mut self, new: WorkloadId, extension: &SliceExtension) {
        self.extensions.forget(new);
        if self.placed_on(new).is_some() {
            let whole = Arc::clone(&extension.whole);
            self.extensions.0.insert(extension.old, (new, whole));
        }
    }

    /// The race of a slice that extends another one: the cluster of that one, once it may be nominated.
    pub fn extension_race(
        &self,
        config: &str,
        request: &WorkloadRequest,
        cluster: ClusterId,
        now: Time,
    ) -> ClusterRace {
        let policy = &self.config(config).policy;
        let is_open = self.is_configured(config, cluster)
            && self.check_open(request, policy, cluster, now).is_ok();
        ClusterRace {
            clusters: is_open.then_some(cluster).into_iter().collect(),
            incomplete: !is_open,
            until: self.exclusions.ends(request, now).map(|(_, until)| until).min(),
        }
    }
}
