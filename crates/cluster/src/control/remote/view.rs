//! What `dispatch::life` looks at, made from what was seen.

use std::collections::BTreeSet;

use ::dispatch::workload::{
    DispatchCheckState, LocalJob, LocalWorkload, RemoteCopy, RemoteJob, RemoteWorkload,
    WorkerConnection,
};
use ::jobs::{GenericJob, Job, remote_objects};
use crds::{
    meta::is_true,
    names::conditions::{ADMITTED, EVICTED, FINISHED, REFUSED},
    v1beta2::{Workload, WorkloadSpec},
};
use engine::ids::ClusterId;
use jiff::Timestamp;
use runtime::watch::Key;

use super::{Control, Remote};
use crate::control::{
    Subject,
    record::{Record, has_quota, is},
    time,
};

impl Control {
    /// The hub's side. What is gone holds nothing.
    pub(super) fn hub(&mut self, key: &Key) -> LocalWorkload {
        let Some(record) = self.workloads.get(key) else {
            return self.hub_without(key);
        };
        let workload = record.object();
        let job = self.jobs.of(key, workload).map(|(_, job)| hub_job(job)).unwrap_or_default();
        let (status, trip) = (&workload.status, &record.trip);
        let check = self.dispatching_check(key);
        let mut id = |name: &String| self.fleet.cluster(name);
        LocalWorkload {
            exists: workload.metadata.deletion_timestamp.is_none(),
            finished: is(workload, FINISHED),
            quota_reserved: has_quota(workload),
            evicted: is(workload, EVICTED),
            check: check_state(workload, check.as_deref()),
            recorded_cluster: status.cluster_name.as_ref().map(&mut id),
            nominated_clusters: status.nominated_cluster_names.iter().map(&mut id).collect(),
            epoch: ::index::epoch(workload),
            epoch_raised: trip.raised,
            create_sent: trip.sent,
            nominated_at: time(trip.nominated_at),
            job,
        }
    }

    /// Every cluster that matters to a Workload, in the order of names.
    pub(super) fn copies(&self, key: &Key, hub: &LocalWorkload, now: Timestamp) -> Vec<RemoteCopy> {
        let record = self.workloads.get(key);
        let expected =
            record.filter(|_| hub.quota_reserved).and_then(|record| self.expected(record));
        let hub_job = self.job_of(key).map(|(_, job)| job);
        let chosen: BTreeSet<ClusterId> =
            hub.nominated_clusters.iter().chain(&hub.recorded_cluster).copied().collect();
        let mut copies = Vec::new();
        for remote in self.remotes.values() {
            if chosen.contains(&remote.id) || remote.concerns(key) {
                copies.push(remote.copy(key, hub, expected.as_ref(), hub_job, now));
            }
        }
        // A cluster that nobody ever heard of since this process began.
        let known: BTreeSet<ClusterId> = copies.iter().map(|copy| copy.cluster).collect();
        for cluster in chosen.difference(&known) {
            copies.push(unheard(*cluster, time(self.began(now))));
        }
        copies
    }

    /// The hub's job of a Workload, which may be gone already.
    pub(super) fn job_of(&self, key: &Key) -> Option<(&Key, &Job)> {
        match self.workloads.get(key) {
            Some(record) => self.jobs.of(key, record.object()),
            None => self.orphan(key),
        }
    }

    /// What the clone of a Workload should ask for.
    fn expected(&self, record: &Record) -> Option<WorkloadSpec> {
        let workload = record.object();
        workload.status.admission.as_ref()?;
        let pod_sets = remote_objects::admitted_pod_sets(workload);
        Some(WorkloadSpec { pod_sets, ..workload.spec.clone() })
    }
}

fn unheard(cluster: ClusterId, since: engine::Time) -> RemoteCopy {
    let link = WorkerConnection::Disconnected { since };
    RemoteCopy {
        cluster,
        connection: link,
        creates_answered: true,
        refused: None,
        clone: None,
        job: None,
    }
}

pub(in crate::control) fn hub_job(job: &Job) -> LocalJob {
    LocalJob {
        exists: true,
        suspended: job.spec_suspended(),
        active: job.is_active(),
        started: job.has_started(),
    }
}

fn check_state(workload: &Workload, name: Option<&str>) -> DispatchCheckState {
    let checks = workload.status.admission_checks.iter();
    let mut checks = checks.filter(|check| Some(check.name.as_str()) == name);
    match checks.next().map(|check| check.state.as_str()) {
        Some("Ready") => DispatchCheckState::Ready,
        Some("Retry") => DispatchCheckState::RetryReason,
        Some("Rejected") => DispatchCheckState::Rejected,
        _ => DispatchCheckState::Pending,
    }
}

impl Remote {
    fn copy(
        &self,
        key: &Key,
        hub: &LocalWorkload,
        expected: Option<&WorkloadSpec>,
        hub_job: Option<&Job>,
        now: Timestamp,
    ) -> RemoteCopy {
        let link = match self.lost {
            Some(since) => WorkerConnection::Disconnected { since: time(since) },
            None if self.clones.listed && self.jobs.listed => WorkerConnection::Connected,
            None => WorkerConnection::NotSynced,
        };
        let job_key = self.naming.job_of(key);
        let waits = |subject, key: &Key| {
            self.sent.get(&(subject, key.clone())).is_some_and(|sent| sent.waits(now))
        };
        // Until it was seen, a job goes by the name of the hub's.
        let hub_key = hub_job.and_then(|job| job.metadata.name.as_deref());
        let hub_key =
            hub_key.map(|name| Key { namespace: key.namespace.clone(), name: name.into() });
        let job_waits = job_key.or(hub_key.as_ref()).is_some_and(|key| waits(Subject::Job, key));
        RemoteCopy {
            cluster: self.id,
            connection: link,
            creates_answered: !waits(Subject::Workload, key) && !job_waits,
            refused: self.refusal(key, nominated_epoch(hub)).map(Into::into),
            clone: self.clones.objects.get(key).map(|held| clone_view(&held.object, expected)),
            job: job_key
                .and_then(|key| self.jobs.objects.get(key))
                .map(|held| job_view(&held.object, hub_job)),
        }
    }
}

/// Of the last nomination: the epoch may have been raised since.
fn nominated_epoch(hub: &LocalWorkload) -> u64 {
    if hub.epoch_raised { hub.epoch.saturating_sub(1) } else { hub.epoch }
}

fn clone_view(clone: &Workload, expected: Option<&WorkloadSpec>) -> RemoteWorkload {
    let conditions = &clone.status.conditions;
    let find =
        |kind: &str| conditions.iter().find(|one| one.r#type == kind && one.status == "True");
    let admitted = find(ADMITTED);
    let at = |one: &crds::meta::Condition| one.last_transition_time.as_ref().map(|at| time(at.0));
    RemoteWorkload {
        epoch: remote_objects::epoch(&clone.metadata),
        deleting: clone.metadata.deletion_timestamp.is_some(),
        admitted_at: admitted.map(|one| at(one).unwrap_or_default()),
        evicted: is_true(conditions, EVICTED),
        refused: find(REFUSED).map(|one| one.message.as_str().into()),
        finished: find(FINISHED)
            .map(|one| (one.reason.as_str().into(), one.message.as_str().into())),
        same_spec: expected.is_none_or(|expected| same_spec(&clone.spec, expected)),
    }
}

/// Gates that keep a clone from preempting are the manager's to change, and no difference.
fn same_spec(clone: &WorkloadSpec, expected: &WorkloadSpec) -> bool {
    let active = |spec: &WorkloadSpec| spec.active.unwrap_or(true);
    clone.pod_sets == expected.pod_sets
        && clone.queue_name == expected.queue_name
        && clone.priority == expected.priority
        && clone.maximum_execution_time_seconds == expected.maximum_execution_time_seconds
        && active(clone) == active(expected)
}

fn job_view(job: &Job, hub_job: Option<&Job>) -> RemoteJob {
    RemoteJob {
        epoch: remote_objects::epoch(&job.metadata),
        deleting: job.metadata.deletion_timestamp.is_some(),
        active: job.is_active(),
        finished: job.finished().is_some(),
        status_synced: hub_job.is_some_and(|hub| hub.with_remote_status(job).status == hub.status),
    }
}
