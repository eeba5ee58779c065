//! Every cluster that matters to a Workload, as the state machine of dispatch looks at it.

use std::collections::{BTreeMap, BTreeSet};

use ::jobs::JobObject;
use dispatch::{
    Fleet,
    workload::{DispatchCheckState, RemoteCopy},
};
use engine::ids::ClusterId;
use jiff::Timestamp;

use super::{
    CopyInputs, ViewedWorker, copy_view, evaluated_workload::EvaluatedWorkload, expected_spec,
    observed_workload::ObservedWorkload, unknown_cluster,
};
use crate::control::{
    job_key::JobKey,
    multikueue::{
        cleanup::orphan_cleanup::present_workload,
        copies::{held_members::is_held, sent_copies::SentCopies},
        leases::exactly_once::LeasedDispatch,
        workers::worker::Worker,
    },
    outbox::Writes,
};

/// What copies are read by.
#[derive(Clone, Copy)]
pub(crate) struct CopyViews<'e> {
    pub(crate) workload: EvaluatedWorkload<'e>,
    pub(crate) leases: &'e LeasedDispatch<'e>,
    pub(crate) fleet: &'e Fleet,
    pub(crate) writes: &'e Writes,
    pub(crate) sent: &'e SentCopies,
    /// `workerLostTimeout`, in nanoseconds.
    pub(crate) lost_after: i64,
    pub(crate) now: Timestamp,
}

impl<'e> CopyViews<'e> {
    /// The copies of a Workload, in the order of names, and then the clusters that were never connected.
    pub(crate) fn copies(self, hub: &ObservedWorkload) -> Vec<RemoteCopy> {
        let chosen = self.chosen_clusters(hub);
        let mut copies = self.known_copies(hub, &chosen);
        let known: BTreeSet<ClusterId> = copies.iter().map(|copy| copy.cluster).collect();
        // A worker that was down before this process began times out as well
        // (docs/reference/multikueue.md §2.8).
        let unknown = chosen.difference(&known).map(|cluster| {
            let name = self.fleet.name(*cluster);
            let since = self.lost_since(name).unwrap_or(self.now);
            let lease = self.leases.of_worker(name).lease;
            unknown_cluster(*cluster, since, lease)
        });
        copies.extend(unknown);
        copies
    }

    fn known_copies(self, hub: &ObservedWorkload, chosen: &BTreeSet<ClusterId>) -> Vec<RemoteCopy> {
        let Self { workload, writes, sent, .. } = self;
        let on_hub = workload.record();
        // Without quota every copy is to be removed, whatever its spec is.
        let expected = on_hub.filter(|_| hub.quota_reserved);
        let expected = expected.and_then(|one| expected_spec(one.object()));
        let hub_jobs = workload.hub_jobs();
        let siblings = workload.siblings();
        let is_needed = |set: &JobKey, cluster: &str| siblings.need(set, cluster);
        let gates = workload.jobs.gates();
        let requests = workload.jobs.role_requests(workload.scheduler.index());
        let is_held =
            |job: &JobObject| on_hub.is_some_and(|one| is_held(job, one.object(), requests, gates));
        let copy_inputs = CopyInputs {
            is_needed: &is_needed,
            is_held: &is_held,
            heirs: workload.heirs(),
            epoch: hub.epoch,
            nominated_epoch: hub.nominated_epoch(),
            hub_jobs: &hub_jobs,
            statuses: workload.jobs.statuses(),
            expected: expected.as_ref(),
            gates,
            incarnation: workload.incarnation,
            pod_sets: on_hub.map(|record| record.object().spec.pod_sets.as_slice()),
            present: on_hub.and_then(present_workload),
            departed: workload.departed_uid(workload.key),
            writes,
            sent,
            now: self.now,
        };
        let concerned = self.concerned(chosen).into_iter();
        concerned.map(|worker| self.copy(worker, &copy_inputs)).collect()
    }

    /// Workers that have, or may get, anything of the Workload, in the order of names.
    fn concerned(self, chosen: &BTreeSet<ClusterId>) -> Vec<&'e Worker> {
        let chosen = chosen.iter().filter_map(|id| self.workload.worker(*id, self.fleet));
        let holders = self.workload.workers.concerned(self.workload.key, self.writes);
        let workers = holders.map(|(_, worker)| worker).chain(chosen);
        let by_name: BTreeMap<&str, &Worker> =
            workers.map(|worker| (worker.name(), worker)).collect();
        by_name.into_values().collect()
    }

    fn copy(self, worker: &Worker, inputs: &CopyInputs<'_>) -> RemoteCopy {
        let annotated = self.workload.registry.is_cleanup_confirmed(worker.name());
        let viewed = ViewedWorker {
            worker,
            lost_since: self.lost_since(worker.name()),
            leases: self.leases.of_worker(worker.name()),
            cleanup_confirmed: worker.breaker.is_confirmed(annotated),
        };
        copy_view(&viewed, self.workload.key, inputs)
    }

    fn lost_since(self, name: &str) -> Option<Timestamp> {
        self.workload.workers.lost_since(name, self.lost_after, self.now)
    }

    /// The clusters that may have a copy for all that the Workload says: the nominated and the recorded one. With a Ready check and no
    /// recorded cluster it may be any of its configuration, also one that is not listed yet.
    fn chosen_clusters(self, hub: &ObservedWorkload) -> BTreeSet<ClusterId> {
        let fleet = self.fleet;
        let is_unrecorded =
            hub.check == DispatchCheckState::Ready && hub.recorded_cluster.is_none();
        let config = self.workload.multikueue_config().filter(|_| is_unrecorded);
        let any = config.into_iter().flat_map(|config| fleet.clusters_of(config));
        let any = any.filter_map(|name| fleet.find(name));
        hub.nominations.clusters.iter().chain(&hub.recorded_cluster).copied().chain(any).collect()
    }
}
