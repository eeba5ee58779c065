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

use crate::cluster::{Cluster, Serial};
use crate::reservation::{Reservation, Reserved};
use crate::waits::{Exclusion, Waits};
use crate::{Config, Report, Work};

/// A configuration and when it last changed.
#[derive(Debug, Default)]
pub(crate) struct Configured {
    pub(crate) config: Arc<Config>,
    pub(crate) changed: u64,
}

/// All workers. See the module.
#[derive(Debug, Default)]
pub struct Fleet {
    names: Interner<ClusterId>,
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) configs: BTreeMap<Box<str>, Configured>,
    placements: BTreeMap<WorkloadId, (ClusterId, Serial)>,
    pub(crate) exclusions: BTreeMap<WorkloadId, Vec<Exclusion>>,
    pub(crate) waits: Waits,
    /// Counts changes.
    pub(crate) changes: u64,
    pub(crate) serial: Serial,
    pub(crate) reservations: Vec<Reservation>,
    /// What the reservations take into account.
    pub(crate) reserved: Reserved,
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
            self.clusters.push(Cluster::default());
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
        self.change(id).labels = labels;
    }

    /// Whether a cluster can be reached. A new one cannot; one that cannot be reached takes nothing new.
    pub fn set_connected(&mut self, id: ClusterId, connected: bool) {
        if self.clusters[id.index()].connected != connected {
            self.change(id).connected = connected;
        }
    }

    /// What a cluster says it can take. Without a report it takes nothing new.
    pub fn set_report(&mut self, id: ClusterId, report: Option<Report>) {
        self.change(id).set_report(report);
    }

    /// A MultiKueueConfig with its policy; `None` if it is gone.
    pub fn set_config(&mut self, name: &str, config: Option<Config>) {
        self.changes += 1;
        let changed = self.changes;
        match config {
            Some(config) => {
                let configured = Configured { config: Arc::new(config), changed };
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
        work: Arc<Work>,
        since: Time,
    ) {
        self.forget(workload);
        self.serial += 1;
        let serial = self.serial;
        self.placements.insert(workload, (cluster, serial));
        let until = work.request.runs.map(|runs| Time(since.0.saturating_add(runs)));
        self.change(cluster).place(serial, work, until);
    }

    /// The clone exists at this resourceVersion. A report that takes this version into account includes it.
    pub fn created(&mut self, workload: WorkloadId, version: u64) {
        if let Some(&(cluster, serial)) = self.placements.get(&workload)
            && self.clusters[cluster.index()].created(serial, version)
        {
            self.change(cluster);
        }
    }

    /// A Workload runs nowhere and waits for nothing: it was withdrawn, or its decision could not be written. Clusters that
    /// refused it stay left out.
    pub fn forget(&mut self, workload: WorkloadId) {
        self.waits.forget(workload);
        if let Some((cluster, serial)) = self.placements.remove(&workload) {
            let freed = self.clusters[cluster.index()].forget(serial);
            // When room is there for those who wait depends on all that runs.
            if freed || !self.reservations.is_empty() {
                self.change(cluster);
            }
        }
    }

    /// A Workload is over on its cluster, at this resourceVersion of the clone. Its room is there before a report says so.
    pub fn ended(&mut self, workload: WorkloadId, version: u64) {
        self.waits.forget(workload);
        if let Some((cluster, serial)) = self.placements.remove(&workload) {
            self.change(cluster).ended(serial, version);
        }
    }

    /// A Workload does not wait for room, for the time being: it lacks something else. Nothing is kept for it, but it has
    /// waited so long when it comes back and wants the same.
    pub fn stop_waiting(&mut self, workload: WorkloadId) {
        self.waits.leave(workload);
    }

    /// A Workload is not pending. If it ever is again, it has not waited.
    pub fn give_up_waiting(&mut self, workload: WorkloadId) {
        self.waits.forget(workload);
    }

    /// A Workload is finished or deleted. Its id may be handed out again.
    pub fn gone(&mut self, workload: WorkloadId) {
        self.forget(workload);
        self.exclusions.remove(&workload);
    }

    /// Leaves a cluster out for a Workload that was refused there. A later end wins over an earlier one.
    pub fn exclude(
        &mut self,
        workload: WorkloadId,
        cluster: ClusterId,
        until: Time,
        why: Box<str>,
    ) {
        let all = self.exclusions.entry(workload).or_default();
        match all.iter_mut().find(|one| one.cluster == cluster) {
            Some(one) => (one.until, one.why) = (one.until.max(until), why),
            None => all.push(Exclusion { cluster, until, why }),
        }
        all.sort_by_key(|one| one.cluster);
    }

    /// Where a Workload was placed.
    pub fn placed(&self, workload: WorkloadId) -> Option<ClusterId> {
        self.placements.get(&workload).map(|(cluster, _)| *cluster)
    }

    pub(crate) fn change(&mut self, id: ClusterId) -> &mut Cluster {
        self.changes += 1;
        let cluster = &mut self.clusters[id.index()];
        cluster.changed = self.changes;
        cluster
    }
}

#[cfg(test)]
mod tests;
