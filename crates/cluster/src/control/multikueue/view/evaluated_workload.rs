//! What one evaluation reads: a Workload, the objects of the hub, and the workers. What it changes is handed to its parts beside it.

use std::{collections::BTreeSet, sync::Arc};

use ::jobs::{admitted_infos::FlavorsByName, remote_objects::RemoteIdentity};
use dispatch::{CopyHistory, Fleet, HubIncarnation, WorkloadRequest};
use engine::ids::{ClusterId, WorkloadId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime::watch::Key;

use super::{
    hub_jobs::{HubJob, jobs_of},
    set_siblings::SetSiblings,
    slice_heirs::SliceHeirs,
};
use crate::control::{
    context::Context,
    fleet::FleetRegistry,
    jobs::Jobs,
    multikueue::{
        cleanup::orphan_cleanup::DepartedWorkloads,
        copies::copy_stamp::copy_stamp,
        dispatch_config::DispatchConfig,
        workers::{worker::Worker, worker_clusters::WorkerClusters},
    },
    scheduling::Scheduler,
    workloads::{TrackedWorkload, Workloads},
};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct EvaluatedWorkload<'a> {
    pub(crate) key: &'a Key,
    pub(crate) config: &'a DispatchConfig,
    pub(crate) workers: &'a WorkerClusters,
    pub(crate) registry: &'a FleetRegistry,
    pub(crate) incarnation: &'a HubIncarnation,
    pub(crate) departed: &'a DepartedWorkloads,
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
    pub(crate) scheduler: &'a Scheduler,
    pub(crate) flavors: &'a FlavorsByName,
}

/// What an evaluation reads to say something of a Workload.
#[derive(Clone, Copy)]
pub(crate) struct EvaluationView<'a> {
    pub(crate) workload: EvaluatedWorkload<'a>,
    pub(crate) fleet: &'a Fleet,
}

impl<'a> EvaluatedWorkload<'a> {
    /// The Workload with the clusters.
    pub(crate) fn view(self, fleet: &'a Fleet) -> EvaluationView<'a> {
        EvaluationView { workload: self, fleet }
    }

    /// `None` if the Workload does not exist.
    pub(crate) fn record(self) -> Option<&'a TrackedWorkload> {
        self.workloads.get(self.key)
    }

    pub(crate) fn id(self) -> Option<WorkloadId> {
        self.workloads.id_of(self.key)
    }

    /// The request of the Workload to a cluster.
    pub(crate) fn request(self) -> Option<&'a Arc<WorkloadRequest>> {
        self.scheduler.request(self.id()?)
    }

    /// The MultiKueueConfig of the ClusterQueue where the Workload has quota.
    pub(crate) fn multikueue_config(self) -> Option<&'a str> {
        let admission = self.record()?.object().status.admission.as_ref()?;
        self.scheduler.multikueue_config(&admission.cluster_queue)
    }

    /// The message of a check, as the Workload shows it.
    pub(crate) fn shown_message(self, check: Option<&str>) -> Option<&'a str> {
        let mut checks = self.record()?.object().status.admission_checks.iter();
        checks.find(|one| Some(one.name.as_str()) == check).map(|one| one.message.as_str())
    }

    /// The hub's jobs of the Workload.
    pub(crate) fn hub_jobs(self) -> Vec<HubJob<'a>> {
        jobs_of(self.key, self.workloads, self.jobs)
    }

    /// The other replicas of its set.
    pub(crate) fn siblings(self) -> SetSiblings<'a> {
        let Self { key, workloads, jobs, .. } = self;
        SetSiblings { key, workloads, jobs }
    }

    /// The slices of elastic jobs.
    pub(crate) fn heirs(self) -> SliceHeirs<'a> {
        SliceHeirs { workloads: self.workloads, jobs: self.jobs }
    }

    pub(crate) fn worker(self, cluster: ClusterId, fleet: &Fleet) -> Option<&'a Worker> {
        self.workers.get(cluster, fleet)
    }

    /// What identifies a copy of this epoch.
    pub(crate) fn identity<'i>(self, epoch: u64, lease: Option<&'i str>) -> RemoteIdentity<'i>
    where
        'a: 'i,
    {
        let HubIncarnation { id, term, .. } = *self.incarnation;
        RemoteIdentity { origin: &self.config.origin, epoch, incarnation: id, term, lease }
    }

    /// The uid of the last Workload of a name that was observed to be deleted.
    pub(crate) fn departed_uid(self, key: &Key) -> Option<&'a str> {
        self.departed.get(key).map(|uid| &**uid)
    }

    /// Whether copies of a Workload that the hub does not have must stay: the breaker of their worker has tripped for them and no user
    /// has confirmed.
    pub(crate) fn breaker_holds(self, key: &Key, ctx: &Context) -> bool {
        let departed = self.departed_uid(key);
        let is_departed = |copy: &ObjectMeta| {
            let history = self.incarnation.history(&copy_stamp(copy), None, departed);
            history == CopyHistory::Departed
        };
        let mut concerned = self.workers.concerned(key, ctx.outbox.writes());
        concerned.any(|(name, worker)| {
            worker.breaker.holds(key, || worker.metadata_of(key).all(is_departed))
                && !worker.breaker.is_confirmed(self.registry.is_cleanup_confirmed(name))
        })
    }

    /// Every worker that is registered or known.
    pub(crate) fn every_worker(self) -> Vec<Box<str>> {
        let registered = self.registry.names().map(Into::into);
        let all: BTreeSet<Box<str>> = registered.chain(self.workers.names()).collect();
        all.into_iter().collect()
    }

    /// Whether clusters without reports race beside those that report.
    pub(crate) fn races_beside_reports(self, fleet: &Fleet) -> bool {
        let config = self.multikueue_config().unwrap_or_default();
        fleet.races_beside_reports(config, self.config.dispatcher)
    }
}
