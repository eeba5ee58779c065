//! A worker that is not registered any more: what it has of ours stays there (docs/reference/dispatch.md §9).
//!
//! Its connection outlives its registration until it is clean, for a while at most, but not the process. People are told once per
//! worker: when it is given up although it has something, and after a restart, when Workloads hold quota there. More is not
//! known then: what was finished or deleted meanwhile names no worker, and the copies of reports on the hub go with the
//! registration. They are told of each Workload when that goes elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crds::{names::reasons::LEFT_BEHIND, v1beta2::MultiKueueCluster};
use jiff::Timestamp;
use kube::Resource;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

use super::{Control, Remote};
use crate::control::{
    Role,
    record::{Record, has_quota},
    task::Names,
};

/// Workers that are told of one by one.
const MOST_TOLD: usize = 16;

impl Control {
    /// Workers that are not registered any more and have nothing of ours, nor can get anything.
    pub(in crate::control) fn clean_workers(&self, now: Timestamp) -> Names {
        let left = self.remotes.iter().filter(|(name, _)| !self.clusters.is_registered(name));
        left.filter(|(_, remote)| remote.is_clean(now)).map(|(name, _)| name.clone()).collect()
    }

    /// Tells of such workers that Workloads hold quota on, when everything was listed.
    pub(in crate::control) fn tell_who_is_left_behind(&mut self) {
        if self.settings.role != (Role::Manager { dispatches: true }) {
            return;
        }
        let mut placed: BTreeMap<Box<str>, usize> = BTreeMap::new();
        for workload in self.workloads.values().map(Record::object).filter(|one| has_quota(one)) {
            let status = &workload.status;
            let clusters = status.cluster_name.iter().chain(&status.nominated_cluster_names);
            let clusters: BTreeSet<&String> = clusters.collect();
            for name in clusters.into_iter().filter(|name| !self.clusters.is_registered(name)) {
                *placed.entry(name.as_str().into()).or_default() += 1;
            }
        }
        let n_more = placed.len().saturating_sub(MOST_TOLD);
        for (name, n_workloads) in placed.into_iter().take(MOST_TOLD) {
            self.tell_worker_left_behind(&name, n_workloads);
        }
        if n_more > 0 {
            tracing::warn!(
                n_more,
                "further unregistered workers have something that is left behind"
            );
        }
    }

    /// Nobody is connected to a worker any more, nor tries to be.
    pub(super) fn given_up(&mut self, name: &str) {
        let seen = self.remotes.get(name).map(Remote::n_workloads);
        if let Some(n_workloads) = seen.filter(|n| *n > 0)
            && !self.clusters.is_registered(name)
        {
            self.tell_worker_left_behind(name, n_workloads);
        }
    }

    fn tell_worker_left_behind(&mut self, cluster: &str, n_workloads: usize) {
        if !self.clusters.note_left_behind(cluster) {
            return;
        }
        let note = format!(
            "worker cluster \"{cluster}\" is not registered any more; what it has of {n_workloads} workloads is left behind, unless it is registered again"
        );
        tracing::warn!(cluster, n_workloads, "what an unregistered worker has is left behind");
        let about = Regarding {
            api_version: MultiKueueCluster::api_version(&()).into_owned(),
            kind: MultiKueueCluster::kind(&()).into_owned(),
            key: Key { namespace: None, name: cluster.into() },
            uid: String::new(),
        };
        self.notices.push(warning(about, note));
    }

    /// Tells of a Workload that is taken from such a worker, once.
    pub(super) fn tell_left_behind(&mut self, key: &Key) {
        let Some(record) = self.workloads.get(key) else {
            return;
        };
        let workload = record.object();
        let cluster = workload.status.cluster_name.as_deref().filter(|_| has_quota(workload));
        let Some(cluster) = cluster.filter(|name| !self.clusters.is_registered(name)) else {
            return;
        };
        if record.wants.retry.is_some() {
            return;
        }
        let note = format!(
            "worker cluster \"{cluster}\" is not registered any more; what it has of this workload is left behind"
        );
        tracing::warn!(cluster, workload = %key, "what an unregistered worker has is left behind");
        self.notices.push(warning(Regarding::of(workload), note));
    }
}

impl Remote {
    /// How many Workloads it has something of.
    fn n_workloads(&self) -> usize {
        let named = self.naming.all().map(|(clone, _)| clone);
        self.clones.objects.keys().chain(named).collect::<BTreeSet<_>>().len()
    }

    /// Whether it has nothing of ours, as its watches say, and nothing is on its way there.
    fn is_clean(&self, now: Timestamp) -> bool {
        let seen = self.link.active && self.is_listed();
        let empty = self.clones.objects.is_empty() && self.jobs.objects.is_empty();
        seen && empty && !self.sent.values().any(|sent| sent.waits(now))
    }
}

fn warning(about: Regarding, note: String) -> EventRecord {
    let (severity, reason) = (EventType::Warning, LEFT_BEHIND.to_owned());
    EventRecord { regarding: about, event_type: severity, action: reason.clone(), reason, note }
}
