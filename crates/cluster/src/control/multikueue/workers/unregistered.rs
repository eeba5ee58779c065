//! Events about workers that are not registered any more: their copies stay there (docs/reference/dispatch.md §9).
//!
//! A connection outlives its registration until the worker is clean, for a while at most, but not the process. An Event is
//! published once per worker: when its connection ends although it has copies, and after a restart, if Workloads hold quota
//! there. More is not known then: what finished or was deleted meanwhile names no worker. One more is published for each
//! Workload that moves elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    names::reasons::LEFT_BEHIND,
    v1beta2::{MultiKueueCluster, Workload},
};
use kube::Resource;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

use crate::control::workloads::Workloads;

/// Workers that get an Event each after a restart.
pub(crate) const MAX_EVENTS: usize = 16;

/// The number of Workloads that hold quota on each worker that is not registered.
pub(crate) fn unregistered_workers(
    workloads: &Workloads,
    is_registered: impl Fn(&str) -> bool,
) -> BTreeMap<Box<str>, usize> {
    let mut counts: BTreeMap<Box<str>, usize> = BTreeMap::new();
    let holding = workloads.iter().filter(|(_, record)| record.phase().holds_quota());
    for (_, record) in holding {
        let status = &record.object().status;
        let clusters = status.cluster_name.iter().chain(&status.nominated_cluster_names);
        let clusters: BTreeSet<&String> = clusters.collect();
        for name in clusters.into_iter().filter(|name| !is_registered(name)) {
            *counts.entry(name.as_str().into()).or_default() += 1;
        }
    }
    counts
}

/// The Event about a worker.
pub(crate) fn worker_event(cluster: &str, n_workloads: usize) -> EventRecord {
    tracing::warn!(cluster, n_workloads, "copies on an unregistered worker are left behind");
    let regarding = Regarding {
        api_version: MultiKueueCluster::api_version(&()).into_owned(),
        kind: MultiKueueCluster::kind(&()).into_owned(),
        key: Key { namespace: None, name: cluster.into() },
        // The object may be gone, and its uid with it.
        uid: String::new(),
        version: String::new(),
    };
    let note = format!(
        "worker cluster \"{cluster}\" is not registered any more; what it has of {n_workloads} workloads is left behind, unless it is registered again"
    );
    warning(regarding, note)
}

/// The Event about a Workload that moves elsewhere.
pub(crate) fn workload_event(key: &Key, workload: &Workload, cluster: &str) -> EventRecord {
    tracing::warn!(cluster, workload = %key, "a copy on an unregistered worker is left behind");
    let note = format!(
        "worker cluster \"{cluster}\" is not registered any more; what it has of this workload is left behind"
    );
    warning(Regarding::of(workload), note)
}

fn warning(regarding: Regarding, note: String) -> EventRecord {
    let (event_type, reason) = (EventType::Warning, LEFT_BEHIND.to_owned());
    EventRecord { regarding, event_type, action: reason.clone(), reason, note, controller: None }
}
