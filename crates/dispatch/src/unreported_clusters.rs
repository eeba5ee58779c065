//! Clusters that report no capacity beside clusters that do: workers that run Kueue (docs/reference/dispatch.md §2).
//!
//! Room that a cluster reports is certain, so it comes first. A Workload without such room gets quota alone and races for the
//! clusters that report nothing: their own queues decide. It holds quota meanwhile, so only a few wait at a time, each for a
//! limited time.

use std::collections::BTreeMap;

use engine::{
    Time,
    ids::{ClusterId, WorkloadId},
};

use crate::{
    AssignedWorkload, ClusterRefusal, Dispatcher, Fleet, PlacementPolicy, WorkloadRequest,
};

/// Workloads that may wait for the queues of a cluster at a time, beside clusters that report.
pub const UNREPORTED_WINDOW: usize = 10;

/// Workloads that wait for the queues of clusters without reports.
#[derive(Debug, Default)]
pub(crate) struct RacingWorkloads(BTreeMap<WorkloadId, Vec<ClusterId>>);

impl RacingWorkloads {
    /// Number of Workloads that wait for a cluster.
    fn waiting_for(&self, cluster: ClusterId) -> usize {
        self.0.values().filter(|clusters| clusters.contains(&cluster)).count()
    }

    /// The clusters with the queues that a Workload waits for.
    pub(crate) fn queues(&self, workload: WorkloadId) -> Vec<ClusterId> {
        self.0.get(&workload).cloned().unwrap_or_default()
    }
}

impl Fleet {
    /// Whether something is known of the capacity of a cluster, whatever its age.
    pub fn reports(&self, id: ClusterId) -> bool {
        self.clusters[id.index()].report().is_some()
    }

    /// Whether a cluster is connected and known to report nothing.
    pub fn is_unreported(&self, id: ClusterId) -> bool {
        let cluster = &self.clusters[id.index()];
        cluster.reachability.connected && cluster.is_unreported()
    }

    /// Whether a Workload gets quota alone and its clusters race, because nothing is known of any of them. A Workload that requires
    /// a cluster, or with flavors that are bound to clusters, waits without quota while none of these can be nominated.
    pub fn races_without_current_reports(
        &self,
        name: &str,
        work: &AssignedWorkload,
        now: Time,
    ) -> bool {
        let (config, request) = (self.config(name), &*work.request);
        let opens = |id: ClusterId| {
            work.may_run_on(self.name(id))
                && self.serves(id, request)
                && self.check_open(request, &config.policy, id, now).is_ok()
        };
        let is_limited = request.required_cluster().is_some() || work.is_bound();
        self.has_no_current_report(name)
            && (!is_limited || config.clusters.iter().any(|id| opens(*id)))
    }

    /// Whether a race is one of clusters without reports, beside others that report.
    pub fn races_beside_reports(&self, config: &str, dispatcher: Dispatcher) -> bool {
        dispatcher == Dispatcher::Capacity && !self.has_no_current_report(config)
    }

    /// The clusters without reports that a Workload may wait for now.
    pub(crate) fn unreported_candidates(
        &self,
        config: &str,
        work: &AssignedWorkload,
        now: Time,
    ) -> Vec<ClusterId> {
        let config = self.config(config);
        let clusters = config.clusters.iter().copied();
        clusters.filter(|id| self.waits_for(*id, work, &config.policy, now)).collect()
    }

    /// Whether a Workload without room elsewhere would wait for the queues of a cluster.
    pub(crate) fn waits_for(
        &self,
        id: ClusterId,
        work: &AssignedWorkload,
        policy: &PlacementPolicy,
        now: Time,
    ) -> bool {
        self.is_unreported(id)
            && work.may_run_on(self.name(id))
            && self.check_unreported(&work.request, policy, id, now).is_ok()
    }

    /// Checks whether a Workload may wait for the queues of a cluster that reports nothing.
    pub(crate) fn check_unreported(
        &self,
        request: &WorkloadRequest,
        policy: &PlacementPolicy,
        id: ClusterId,
        now: Time,
    ) -> Result<(), ClusterRefusal> {
        self.check_open(request, policy, id, now)?;
        if self.racing.waiting_for(id) < UNREPORTED_WINDOW {
            Ok(())
        } else {
            Err(ClusterRefusal::QueueFull)
        }
    }

    /// Records that a Workload waits for the queues of these clusters, until it is placed or removed.
    pub fn begin_race(&mut self, workload: WorkloadId, clusters: Vec<ClusterId>) {
        self.end_race(workload);
        self.racing.0.insert(workload, clusters);
    }

    /// Whether a Workload has quota and waits for the queues of clusters without reports.
    pub fn is_racing(&self, workload: WorkloadId) -> bool {
        self.racing.0.contains_key(&workload)
    }

    /// Workloads that have quota and wait for the queues of clusters without reports.
    pub fn racing_workloads(&self) -> impl Iterator<Item = WorkloadId> {
        self.racing.0.keys().copied()
    }

    /// Makes room for others that want to wait.
    pub(crate) fn end_race(&mut self, workload: WorkloadId) {
        for cluster in self.racing.0.remove(&workload).into_iter().flatten() {
            self.mark_changed(cluster);
        }
    }
}
