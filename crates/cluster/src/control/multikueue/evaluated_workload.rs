//! What one evaluation reads: a Workload, the objects of the hub, and the workers. What it changes is handed to its parts beside it.

use std::{collections::BTreeSet, sync::Arc};

use ::jobs::{admitted_infos::FlavorsByName, remote_objects::RemoteIdentity};
use dispatch::{Fleet, HubIncarnation, WorkloadRequest};
use engine::ids::{ClusterId, WorkloadId};
use runtime::watch::Key;

use super::{
    dispatch_config::DispatchConfig,
    hub_jobs::{HubJob, jobs_of},
    orphan_cleanup::{DepartedWorkloads, breaker_holds},
    set_siblings::SetSiblings,
    slice_heirs::SliceHeirs,
    worker::Worker,
    worker_clusters::WorkerClusters,
};
use crate::control::{
    context::Context,
    fleet::FleetRegistry,
    jobs::Jobs,
    scheduling::Scheduler,
    workloads::{TrackedWorkload, Workloads},
};

/// See the module.
#[derive(Clone, Copy)]
pub(super) struct EvaluatedWorkload<'a> {
    pub(super) key: &'a Key,
    pub(super) config: &'a DispatchConfig,
    pub(super) workers: &'a WorkerClusters,
    pub(super) registry: &'a FleetRegistry,
    pub(super) incarnation: &'a HubIncarnation,
    pub(super) departed: &'a DepartedWorkloads,
    pub(super) workloads: &'a Workloads,
    pub(super) jobs: &'a Jobs,
    pub(super) scheduler: &'a Scheduler,
    pub(super) flavors: &'a FlavorsByName,
}

/// What an evaluation reads to say something of a Workload.
#[derive(Clone, Copy)]
pub(super) struct EvaluationView<'a> {
    pub(super) workload: EvaluatedWorkload<'a>,
    pub(super) fleet: &'a Fleet,
}

impl<'a> EvaluatedWorkload<'a> {
    /// The Workload with the clusters.
    pub(super) fn view(self, fleet: &'a Fleet) -> EvaluationView<'a> {
        EvaluationView { workload: self, fleet }
    }

    /// `None` if the Workload does not exist.
    pub(super) fn record(self) -> Option<&'a TrackedWorkload> {
        self.workloads.get(self.key)
    }

    pub(super) fn id(self) -> Option<WorkloadId> {
        self.workloads.id_of(self.key)
    }

    /// The request of the Workload to a cluster.
    pub(super) fn request(self) -> Option<&'a Arc<WorkloadRequest>> {
        self.scheduler.request(self.id()?)
    }

    /// The MultiKueueConfig of the ClusterQueue where the Workload has quota.
    pub(super) fn multikueue_config(self) -> Option<&'a str> {
        let admission = self.record()?.object().status.admission.as_ref()?;
        self.scheduler.multikueue_config(&admission.cluster_queue)
    }

    /// The message of a check, as the Workload shows it.
    pub(super) fn shown_message(self, check: Option<&str>) -> Option<&'a str> {
        let mut checks = self.record()?.object().status.admission_checks.iter();
        checks.find(|one| Some(one.name.as_str()) == check).map(|one| one.message.as_str())
    }

    /// The hub's jobs of the Workload.
    pub(super) fn hub_jobs(self) -> Vec<HubJob<'a>> {
        jobs_of(self.key, self.workloads, self.jobs)
    }

    /// The other replicas of its set.
    pub(super) fn siblings(self) -> SetSiblings<'a> {
        let Self { key, workloads, jobs, .. } = self;
        SetSiblings { key, workloads, jobs }
    }

    /// The slices of elastic jobs.
    pub(super) fn heirs(self) -> SliceHeirs<'a> {
        SliceHeirs { workloads: self.workloads, jobs: self.jobs }
    }

    pub(super) fn worker(self, cluster: ClusterId, fleet: &Fleet) -> Option<&'a Worker> {
        self.workers.get(cluster, fleet)
    }

    /// What identifies a copy of this epoch.
    pub(super) fn identity<'i>(self, epoch: u64, lease: Option<&'i str>) -> RemoteIdentity<'i>
    where
        'a: 'i,
    {
        let HubIncarnation { id, term, .. } = *self.incarnation;
        RemoteIdentity { origin: &self.config.origin, epoch, incarnation: id, term, lease }
    }

    /// The uid of the last Workload of a name that was observed to be deleted.
    pub(super) fn departed_uid(self, key: &Key) -> Option<&'a str> {
        self.departed.get(key).map(|uid| &**uid)
    }

    /// Whether copies of a Workload that the hub does not have must stay.
    pub(super) fn breaker_holds(self, key: &Key, ctx: &Context) -> bool {
        let history = (self.incarnation, self.departed_uid(key));
        breaker_holds(self.workers, key, history, self.registry, ctx)
    }

    /// Every worker that is registered or known.
    pub(super) fn every_worker(self) -> Vec<Box<str>> {
        let registered = self.registry.names().map(Into::into);
        let all: BTreeSet<Box<str>> = registered.chain(self.workers.names()).collect();
        all.into_iter().collect()
    }

    /// Whether clusters without reports race beside those that report.
    pub(super) fn races_beside_reports(self, fleet: &Fleet) -> bool {
        let config = self.multikueue_config().unwrap_or_default();
        fleet.races_beside_reports(config, self.config.dispatcher)
    }
}
