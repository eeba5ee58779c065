//! All workers as the manager knows them, and what it placed on them.
//!
//! Whoever owns a fleet tells it what changed, asks it for clusters ([`Fleet::choose`]) and, after changes, who may
//! ask again ([`Fleet::woken`]). Source: docs/reference/dispatch.md §1-3.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Interner, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::gang_reservation::{CapacityReservation, ReservationInputs};
use crate::pending_placements::{ClusterExclusion, PendingPlacements};
use crate::worker_cluster::{PlacementSerial, WorkerCluster};
use crate::{AssignedWorkload, CapacityReport, DispatchConfig};

/// A configuration and when it last changed.
#[derive(Debug, Default)]
pub(crate) struct FleetConfig {
    pub(crate) config: Arc<DispatchConfig>,
    pub(crate) changed: u64,
}

/// All workers. See the module.
#[derive(Debug, Default)]
pub struct Fleet {
    names: Interner<ClusterId>,
    pub(crate) clusters: Vec<WorkerCluster>,
    pub(crate) configs: BTreeMap<Box<str>, FleetConfig>,
    placements: BTreeMap<WorkloadId, (ClusterId, PlacementSerial)>,
    pub(crate) exclusions: BTreeMap<WorkloadId, Vec<ClusterExclusion>>,
    pub(crate) pending: PendingPlacements,
    /// Counts changes.
    pub(crate) changes: u64,
    pub(crate) serial: PlacementSerial,
    pub(crate) reservations: Vec<CapacityReservation>,
    /// What the reservations take into account.
    pub(crate) reservation_inputs: ReservationInputs,
}

impl Fleet {
    /// A fleet without clusters.
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of a MultiKueueCluster, new or known. It never changes.
    pub fn cluster(&mut self, name: &str) -> ClusterId {
        let id = self.names.intern(name);
        while self.clusters.len() <= id.index() {
            self.clusters.push(WorkerCluster::default());
        }
        id
    }

    /// The id of a known MultiKueueCluster.
    pub fn find(&self, name: &str) -> Option<ClusterId> {
        self.names.get(name)
    }

    /// The name of a cluster.
    pub fn name(&self, id: ClusterId) -> &str {
        self.names.name(id)
    }

    /// The labels of a MultiKueueCluster.
    pub fn set_labels(&mut self, id: ClusterId, labels: Vec<(Box<str>, Box<str>)>) {
        self.mark_changed(id).labels = labels;
    }

    /// Whether a cluster can be reached. A new one cannot; one that cannot be reached takes nothing new.
    pub fn set_connected(&mut self, id: ClusterId, connected: bool) {
        if self.clusters[id.index()].connected != connected {
            self.mark_changed(id).connected = connected;
        }
    }

    /// What a cluster says it can take. Without a report it takes nothing new.
    pub fn set_report(&mut self, id: ClusterId, report: Option<CapacityReport>) {
        self.mark_changed(id).set_report(report);
    }

    /// A MultiKueueConfig with its policy; `None` if it is gone.
    pub fn set_config(&mut self, name: &str, config: Option<DispatchConfig>) {
        self.changes += 1;
        let changed = self.changes;
        match config {
            Some(config) => {
                let configured = FleetConfig { config: Arc::new(config), changed };
                self.configs.insert(name.into(), configured);
            }
            None => {
                self.configs.remove(name);
            }
        }
    }

    /// Counts a Workload's pods on a cluster from now on: it was decided, or found so after a restart. It was started at
    /// `since`.
    pub fn place(
        &mut self,
        workload: WorkloadId,
        cluster: ClusterId,
        work: Arc<AssignedWorkload>,
        since: Time,
    ) {
        self.unplace(workload);
        self.serial += 1;
        let serial = self.serial;
        self.placements.insert(workload, (cluster, serial));
        let until = work.request.max_run_time.map(|runs| Time(since.0.saturating_add(runs)));
        self.mark_changed(cluster).place(serial, work, until);
    }

    /// The clone exists at this resourceVersion. A report that takes this version into account includes it.
    pub fn clone_created(&mut self, workload: WorkloadId, version: u64) {
        if let Some(&(cluster, serial)) = self.placements.get(&workload)
            && self.clusters[cluster.index()].clone_created(serial, version)
        {
            self.mark_changed(cluster);
        }
    }

    /// A Workload runs nowhere and waits for nothing: it was withdrawn, or its decision could not be written. Clusters that
    /// refused it stay left out.
    pub fn unplace(&mut self, workload: WorkloadId) {
        self.pending.remove(workload);
        if let Some((cluster, serial)) = self.placements.remove(&workload) {
            let freed = self.clusters[cluster.index()].unplace(serial);
            // When room is there for those who wait depends on all that runs.
            if freed || !self.reservations.is_empty() {
                self.mark_changed(cluster);
            }
        }
    }

    /// A Workload is over on its cluster, at this resourceVersion of the clone. Its room is there before a report says so.
    pub fn workload_ended(&mut self, workload: WorkloadId, version: u64) {
        self.pending.remove(workload);
        if let Some((cluster, serial)) = self.placements.remove(&workload) {
            self.mark_changed(cluster).workload_ended(serial, version);
        }
    }

    /// A Workload does not wait for room, for the time being: it lacks something else. Nothing is kept for it, but it has
    /// waited so long when it comes back and wants the same.
    pub fn pause_waiting(&mut self, workload: WorkloadId) {
        self.pending.pause(workload);
    }

    /// A Workload is not pending. If it ever is again, it has not waited.
    pub fn reset_waiting(&mut self, workload: WorkloadId) {
        self.pending.remove(workload);
    }

    /// A Workload is finished or deleted. Its id may be handed out again.
    pub fn workload_removed(&mut self, workload: WorkloadId) {
        self.unplace(workload);
        self.exclusions.remove(&workload);
    }

    /// Leaves a cluster out for a Workload that was refused there. A later end wins over an earlier one.
    pub fn exclude_cluster(
        &mut self,
        workload: WorkloadId,
        cluster: ClusterId,
        until: Time,
        why: Box<str>,
    ) {
        let all = self.exclusions.entry(workload).or_default();
        match all.iter_mut().find(|one| one.cluster == cluster) {
            Some(one) => (one.until, one.why) = (one.until.max(until), why),
            None => all.push(ClusterExclusion { cluster, until, why }),
        }
        all.sort_by_key(|one| one.cluster);
    }

    /// Where a Workload was placed.
    pub fn placed_on(&self, workload: WorkloadId) -> Option<ClusterId> {
        self.placements.get(&workload).map(|(cluster, _)| *cluster)
    }

    pub(crate) fn mark_changed(&mut self, id: ClusterId) -> &mut WorkerCluster {
        self.changes += 1;
        let cluster = &mut self.clusters[id.index()];
        cluster.changed = self.changes;
        cluster
    }
}

#[cfg(test)]
mod tests;
