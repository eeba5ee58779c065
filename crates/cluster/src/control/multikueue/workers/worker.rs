//! One worker cluster as the hub sees it: its connection, the copies that it has, its report, and its breaker.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ::jobs::{
    GenericJob, JobGates, JobObject, Kind, Kinds, integrations::controller,
    prebuilt::prebuilt_name, replicas::first_workload, set_copies,
};
use crds::{
    meta::Condition,
    names::{
        conditions::{EVICTED, PODS_FAILING, REFUSED},
        reasons::{KIND_NOT_ALLOWED, NAMESPACE_NOT_ALLOWED},
    },
    v1alpha1::ClusterCapacity,
    v1beta2::Workload,
};
use dispatch::{CopyStamp, ListedCopy};
use engine::ids::ClusterId;
use index::{
    AddedNames, OversizedReport,
    status::{find, find_true},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use runtime::watch::{Change, Key};

use super::{
    copies::Copies,
    job_copies::JobCopies,
    naming::Naming,
    refused_writes::{RefusedScope, RefusedWrites},
};
use crate::control::{
    change::for_each_object,
    input::ConnectionStatus,
    job_key::JobKey,
    jobs::Jobs,
    multikueue::{
        cleanup::breaker::Breaker, copies::copy_stamp::copy_stamp,
        reports::report_copies::ReportCopy,
    },
    outbox::{Subject, Target, Tracked, Writes, after, upsert_single},
    start_failure::{PodStarts, StartFailure},
    time::moved,
};

/// How long the lists of a new connection may take before its condition says so.
pub(crate) const LISTED_WITHIN: Duration = Duration::from_secs(30);

/// How long a report counts after its last heartbeat: three of ten seconds each.
const REPORT_COUNTS_FOR: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) id: ClusterId,
    name: Box<str>,
    connection: ConnectionStatus,
    /// When the present connection began.
    connected_at: Option<Timestamp>,
    /// Since when it has not been reached: a connection counts once everything was listed.
    lost: Option<Timestamp>,
    /// This process has reached it.
    was_reached: bool,
    pub(crate) clones: Copies<Workload>,
    pub(crate) jobs: JobCopies,
    naming: Naming,
    pub(crate) refused: RefusedWrites,
    pub(crate) breaker: Breaker,
    capacity: Option<Tracked<ClusterCapacity>>,
    /// Why the last report is not read.
    pub(crate) unread_report: Option<OversizedReport>,
    /// How many names of resources its reports have added to those that are never forgotten.
    pub(crate) resource_names: AddedNames,
    /// The worker does not keep the entries of managers: its CRD is of an earlier version.
    pub(crate) drops_entries: bool,
    /// When a heartbeat of the report was first observed.
    heartbeat: Option<(Time, Timestamp)>,
    pub(crate) report_copy: ReportCopy,
}

impl Worker {
    /// A worker that was never connected, on which jobs of these kinds are watched.
    pub(crate) fn new(id: ClusterId, name: &str, kinds: &Kinds, now: Timestamp) -> Self {
        Self {
            id,
            name: name.into(),
            connection: ConnectionStatus { active: false, reason: "", message: String::new() },
            connected_at: None,
            // The time of the loss begins here, so that a worker that is down when the manager starts is lost as well
            // (docs/reference/multikueue.md §2.8).
            lost: Some(now),
            was_reached: false,
            clones: Copies::default(),
            jobs: JobCopies::new(kinds),
            naming: Naming::default(),
            refused: RefusedWrites::new(),
            breaker: Breaker::default(),
            capacity: None,
            unread_report: None,
            resource_names: AddedNames::default(),
            heartbeat: None,
            drops_entries: false,
            report_copy: ReportCopy::default(),
        }
    }

    pub(crate) fn connection(&self) -> &ConnectionStatus {
        &self.connection
    }

    /// Since when it has not been reached: not connected, or not listed since then.
    pub(crate) fn lost_since(&self) -> Option<Timestamp> {
        self.lost
    }

    /// Whether this process has reached it.
    pub(crate) fn was_reached(&self) -> bool {
        self.was_reached
    }

    /// Whether clones and jobs were listed since it was connected.
    pub(crate) fn is_listed(&self) -> bool {
        self.clones.is_listed() && self.jobs.is_listed()
    }

    /// Records that it is reached if everything was listed since it was connected. Returns whether it was lost until now.
    pub(crate) fn mark_reached(&mut self) -> bool {
        let reached = self.connection.active && self.is_listed();
        self.was_reached |= reached;
        reached && self.lost.take().is_some()
    }

    /// An earlier process has lost it at this time. What this process has seen itself is newer.
    pub(crate) fn lost_before(&mut self, since: Timestamp) {
        if !self.was_reached {
            self.lost = self.lost.map(|lost| lost.min(since));
        }
    }

    /// The clock jumped: what lasts goes on.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            id: _,
            name: _,
            connection: _,
            connected_at,
            lost,
            was_reached: _,
            clones,
            jobs,
            naming: _,
            refused,
            breaker: _,
            capacity: _,
            unread_report: _,
            resource_names: _,
            drops_entries: _,
            heartbeat,
            report_copy,
        } = self;
        refused.clock_jumped(by);
        clones.clock_jumped(by);
        jobs.clock_jumped(by);
        report_copy.clock_jumped(by);
        if let Some((_, seen)) = heartbeat {
            *seen = moved(*seen, by);
        }
        for at in [lost, connected_at] {
            *at = at.map(|at| moved(at, by));
        }
    }

    /// What is not listed although it was connected long ago.
    pub(crate) fn overdue_lists(&self, now: Timestamp) -> Option<Vec<String>> {
        let is_due = self.connected_at.is_some_and(|at| after(at, LISTED_WITHIN) <= now);
        let clones = (!self.clones.is_listed()).then(|| "Workloads".to_owned());
        let all: Vec<String> =
            clones.into_iter().chain(self.jobs.unlisted().map(ToString::to_string)).collect();
        (is_due && !all.is_empty()).then_some(all)
    }

    /// Records the state of the connection. Returns whether it connected or disconnected.
    pub(crate) fn set_connection(&mut self, connection: ConnectionStatus, now: Timestamp) -> bool {
        let changed = self.connection.active != connection.active;
        if changed {
            // An API server that answers, and lists nothing, is not reached: the time of the loss runs on.
            self.lost.get_or_insert(now);
            self.connected_at = connection.active.then_some(now);
            // Lists of another connection do not count for this one: the worker may have changed in
            // between.
            self.clones.disconnect();
            self.jobs.disconnect();
            // What was free before may be taken now.
            (self.capacity, self.heartbeat) = (None, None);
            self.drops_entries = false;
            self.unread_report = None;
        }
        self.connection = connection;
        changed
    }

    pub(crate) fn capacity(&self) -> Option<&Tracked<ClusterCapacity>> {
        self.capacity.as_ref()
    }

    pub(crate) fn capacity_mut(&mut self) -> Option<&mut Tracked<ClusterCapacity>> {
        self.capacity.as_mut()
    }

    /// Records a change of its ClusterCapacity. Only the object `local` is its own. What is observed without a connection is
    /// forgotten when there is one.
    pub(crate) fn observe_capacity(&mut self, change: Change<ClusterCapacity>, now: Timestamp) {
        for_each_object(change, |key, object| {
            if &*key.name != crds::v1alpha1::LOCAL {
                return;
            }
            upsert_single(&mut self.capacity, object);
        });
        self.note_heartbeat(now);
    }

    /// Takes note of a heartbeat that was not observed before. Only times of this process are compared.
    pub(crate) fn note_heartbeat(&mut self, now: Timestamp) {
        let reported =
            self.capacity.as_ref().and_then(|one| one.object().status.reported_at.clone());
        let known = self.heartbeat.as_ref().map(|(beat, _)| beat);
        if reported.as_ref() != known {
            self.heartbeat = reported.map(|beat| (beat, now));
        }
    }

    /// Until when the report counts; `None` without a heartbeat, as of an agent that writes none.
    pub(crate) fn report_counts_until(&self) -> Option<Timestamp> {
        self.heartbeat_seen().map(|seen| after(seen, REPORT_COUNTS_FOR))
    }

    /// When the manager observed the last heartbeat of the report.
    pub(crate) fn heartbeat_seen(&self) -> Option<Timestamp> {
        self.heartbeat.as_ref().map(|(_, seen)| *seen)
    }

    /// The jobs that name a clone.
    pub(crate) fn jobs_of(&self, clone: &Key) -> impl Iterator<Item = &JobKey> {
        self.naming.jobs_of(clone)
    }

    /// The jobs that name a clone, as they were observed.
    pub(crate) fn jobs(&self, clone: &Key) -> impl Iterator<Item = (&JobKey, &Arc<JobObject>)> {
        self.jobs_of(clone).filter_map(|key| Some((key, self.jobs.get(key)?.object())))
    }

    /// Records which clone a job names now. Returns the Workloads that this concerns: that clone, the one that it named before, and those
    /// of the hub's job. The copy of a set of replicas is that of all their Workloads, that of an elastic job is of one of its
    /// slices, and a copy for another Workload holds the name of a job that was made again.
    pub(crate) fn job_observed(&mut self, key: &JobKey, jobs: &Jobs) -> Vec<Key> {
        let copy = self.jobs.get(key);
        let now = copy.and_then(|tracked| named(key, tracked.object(), jobs.gates()));
        let mut concerned = self.naming.note(key, now);
        concerned.extend(jobs.owned_workloads(key).cloned());
        concerned
    }

    /// The clone that a job names.
    pub(crate) fn clone_of(&self, job: &JobKey) -> Option<&Key> {
        self.naming.clone_of(job)
    }

    /// The Workload of a copy: itself, or the clone that a job names.
    pub(crate) fn workload_of(&self, copy: &Target) -> Option<Key> {
        match &copy.subject {
            Subject::Job(kind) => self.clone_of(&JobKey::new(kind, &copy.key)).cloned(),
            _ => Some(copy.key.clone()),
        }
    }

    /// What the worker refuses with a Workload: by its API server, or by the condition of its agent.
    pub(crate) fn refused_scope(&self, key: &Key, epoch: u64) -> RefusedScope {
        let refused = self.refused.copy(key, epoch).map(|refused| refused.scope);
        let clone = self.clones.get(key);
        let condition = clone.and_then(|clone| find(&clone.object().status.conditions, REFUSED));
        refused.unwrap_or_else(|| match condition.map(|one| one.reason.as_str()) {
            Some(NAMESPACE_NOT_ALLOWED) => RefusedScope::Namespace,
            Some(KIND_NOT_ALLOWED) => RefusedScope::Kind,
            // A refusal for any other reason may be about the size of this work, so other work is still sent here.
            _ => RefusedScope::Shape,
        })
    }

    /// Whether it has anything of a Workload.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        self.clones.get(key).is_some() || self.naming.jobs_of(key).next().is_some()
    }

    /// The condition of a clone that is evicted.
    pub(crate) fn eviction(&self, key: &Key) -> Option<&Condition> {
        find_true(&self.clones.get(key)?.object().status.conditions, EVICTED)
    }

    /// Whether pods of a Workload fail to start here, as its clone shows it; unknown without a clone.
    pub(crate) fn pod_starts(&self, key: &Key) -> PodStarts {
        let Some(clone) = self.clones.get(key) else {
            return PodStarts::Unknown;
        };
        let failing = find_true(&clone.object().status.conditions, PODS_FAILING);
        // Another agent may give reasons that are unknown here.
        let failure = failing.and_then(|one| {
            StartFailure::of(&one.reason, &format!("{}: {}", self.name(), one.message))
        });
        failure.map_or(PodStarts::NotFailing, PodStarts::Failing)
    }

    /// The Workloads that it has something of.
    pub(crate) fn workloads(&self) -> BTreeSet<&Key> {
        // A job may be left without its clone.
        let named = self.naming.all().map(|(clone, _)| clone);
        self.clones.keys().chain(named).collect()
    }

    /// The number of Workloads that it has something of.
    pub(crate) fn n_workloads(&self) -> usize {
        self.workloads().len()
    }

    /// Whether its watches show nothing of ours, and no write can still be applied.
    pub(crate) fn is_clean(&self, writes: &Writes) -> bool {
        let seen = self.connection.active && self.is_listed();
        let empty = self.clones.is_empty() && self.jobs.is_empty();
        seen && empty && !writes.has_unsettled(&self.name)
    }

    /// Every copy, as orphan cleanup compares it with the hub.
    pub(crate) fn listed(&self, writes: &Writes) -> Vec<ListedCopy> {
        let clones = self.clones.iter();
        let clones = clones.map(|(key, tracked)| (key, copy_stamp(&tracked.object().metadata)));
        let jobs = self.naming.all().filter_map(|(workload, job)| {
            let job = self.jobs.get(job)?.object();
            // It has no stamp of its own beside a clone (docs/reference/multikueue.md §2.7).
            let stands_beside =
                set_copies::is_shared(&**job) && self.clones.get(workload).is_some();
            (!stands_beside).then(|| (workload, copy_stamp(job.metadata())))
        });
        let listed = |(key, stamp): (&Key, CopyStamp)| {
            let (workload, deleting) = (key.to_string().into(), self.is_leaving(key, writes));
            ListedCopy { workload, stamp, deleting }
        };
        clones.chain(jobs).map(listed).collect()
    }

    /// The metadata of the copies of a Workload: of its clone and of its jobs.
    pub(crate) fn metadata_of(&self, key: &Key) -> impl Iterator<Item = &ObjectMeta> {
        let clone = self.clones.get(key).map(|tracked| &tracked.object().metadata);
        let jobs = self.naming.jobs_of(key).filter_map(|job| self.jobs.get(job));
        clone.into_iter().chain(jobs.map(|tracked| tracked.object().metadata()))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// An object of this worker.
    pub(crate) fn target(&self, subject: Subject, key: &Key) -> Target {
        Target::worker(&self.name, subject, key)
    }

    /// A job of this worker.
    pub(crate) fn job_target(&self, job: &JobKey) -> Target {
        self.target(Subject::Job(job.kind.clone()), &job.key)
    }

    /// Since when a job of this kind that was not observed may exist.
    pub(crate) fn hides_since(&self, kind: &Kind) -> Option<Timestamp> {
        self.jobs.forbidden_since(kind)
    }

    /// Whether something of a Workload is being removed here.
    fn is_leaving(&self, key: &Key, writes: &Writes) -> bool {
        self.metadata_of(key).any(|metadata| metadata.deletion_timestamp.is_some())
            // The watch may report an answered deletion late. Meanwhile the copy must not count as an orphan for the
            // breaker.
            || self.clones.get(key).is_some() && writes.is_changing(&self.target(Subject::Workload, key))
            || self.naming.jobs_of(key).any(|job| writes.is_changing(&self.job_target(job)))
    }
}

/// The clone that a copy of a job names. A copy is created without a controller. What another object controls is a child of
/// it, to which its operator may have copied every label.
fn named(key: &JobKey, job: &JobObject, gates: JobGates) -> Option<Key> {
    controller(job.metadata()).is_none().then(|| match first_workload(job, gates) {
        Some(first) => key.in_namespace(&first),
        None => key.in_namespace(prebuilt_name(job, gates).name),
    })
}
