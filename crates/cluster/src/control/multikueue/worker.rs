//! One worker cluster as the hub sees it: its connection, the copies that it has, its report, and its breaker.

use std::collections::BTreeMap;

use ::jobs::{Job, JobGates, prebuilt::prebuilt_name, remote_objects::epoch};
use crds::{names::conditions::EVICTED, v1alpha1::ClusterCapacity, v1beta2::Workload};
use dispatch::ListedCopy;
use engine::ids::ClusterId;
use index::status::find;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime::watch::{Change, Key};

use super::{breaker::Breaker, copies::Copies, naming::Naming, report_copies::ReportCopy};
use crate::control::{
    change::for_each_object,
    input::Connection,
    outbox::{Subject, Target, Tracked, Writes, upsert_single},
};

/// See the module.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) id: ClusterId,
    name: Box<str>,
    connection: Connection,
    /// Since when it has not been connected.
    lost: Option<Timestamp>,
    pub(super) clones: Copies<Workload>,
    pub(super) jobs: Copies<Job>,
    naming: Naming,
    /// By Workload: the epoch at which the API server refused a copy, and its message.
    refused: BTreeMap<Key, (u64, String)>,
    pub(super) breaker: Breaker,
    capacity: Option<Tracked<ClusterCapacity>>,
    pub(super) report_copy: ReportCopy,
}

impl Worker {
    /// A worker that was never connected.
    pub(super) fn new(id: ClusterId, name: &str, now: Timestamp) -> Self {
        Self {
            id,
            name: name.into(),
            connection: Connection { active: false, reason: "", message: String::new() },
            lost: Some(now),
            clones: Copies::default(),
            jobs: Copies::default(),
            naming: Naming::default(),
            refused: BTreeMap::new(),
            breaker: Breaker::default(),
            capacity: None,
            report_copy: ReportCopy::default(),
        }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Since when it has not been connected.
    pub(super) fn lost_since(&self) -> Option<Timestamp> {
        self.lost
    }

    /// Whether clones and jobs were listed since it was connected.
    pub(super) fn is_listed(&self) -> bool {
        self.clones.is_listed() && self.jobs.is_listed()
    }

    /// Records the state of the connection. Returns whether it connected or disconnected.
    pub(super) fn set_connection(&mut self, connection: Connection, now: Timestamp) -> bool {
        let changed = self.connection.active != connection.active;
        if changed {
            self.lost = (!connection.active).then_some(now);
            self.clones.disconnect();
            self.jobs.disconnect();
        }
        self.connection = connection;
        changed
    }

    pub(super) fn capacity(&self) -> Option<&Tracked<ClusterCapacity>> {
        self.capacity.as_ref()
    }

    pub(super) fn capacity_mut(&mut self) -> Option<&mut Tracked<ClusterCapacity>> {
        self.capacity.as_mut()
    }

    /// Records a change of its ClusterCapacity. Only the object `local` is its own.
    pub(super) fn observe_capacity(&mut self, change: Change<ClusterCapacity>) {
        for_each_object(change, |key, object| {
            if &*key.name != crds::v1alpha1::LOCAL {
                return;
            }
            upsert_single(&mut self.capacity, object);
        });
    }

    /// The job that names a clone. Of several, the first by name.
    pub(super) fn job_of(&self, clone: &Key) -> Option<&Key> {
        self.naming.job_of(clone)
    }

    /// Clones that jobs name, each with every job that does.
    pub(super) fn named_clones(&self) -> impl Iterator<Item = (&Key, &Key)> {
        self.naming.all()
    }

    /// Records which clone a job names now. Returns that clone, and the one that it named before.
    pub(super) fn job_observed(&mut self, key: &Key, gates: JobGates) -> Vec<Key> {
        let now = self.jobs.get(key).map(|tracked| named(key, tracked.object(), gates));
        self.naming.note(key, now)
    }

    /// The API server's message, if it refused a copy of this epoch.
    pub(super) fn refusal(&self, key: &Key, epoch: u64) -> Option<&str> {
        let refused = self.refused.get(key).filter(|(of, _)| *of == epoch);
        refused.map(|(_, message)| message.as_str())
    }

    pub(super) fn refuse(&mut self, workload: Key, epoch: u64, message: String) {
        self.refused.insert(workload, (epoch, message));
    }

    /// Forgets refusals of a Workload that is gone.
    pub(super) fn forget_refusal(&mut self, key: &Key) {
        self.refused.remove(key);
    }

    /// Whether it has, or may get, anything of a Workload.
    pub(super) fn concerns(&self, key: &Key, writes: &Writes) -> bool {
        self.clones.get(key).is_some()
            || self.naming.job_of(key).is_some()
            || writes.is_pending(&self.target(Subject::Workload, key))
    }

    /// Why the clone of a Workload was evicted.
    pub(super) fn eviction(&self, key: &Key) -> Option<&str> {
        let clone = self.clones.get(key)?;
        find(&clone.object().status.conditions, EVICTED).map(|one| one.message.as_str())
    }

    /// The number of Workloads that it has something of.
    pub(super) fn n_workloads(&self) -> usize {
        let named = self.naming.all().map(|(clone, _)| clone);
        self.clones.keys().chain(named).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Whether its watches show nothing of ours, and no write can still be applied.
    pub(super) fn is_clean(&self, writes: &Writes, now: Timestamp) -> bool {
        let seen = self.connection.active && self.is_listed();
        let empty = self.clones.is_empty() && self.jobs.is_empty();
        seen && empty && !writes.any_may_apply(&self.name, now)
    }

    /// Every copy, as orphan cleanup compares it with the hub.
    pub(super) fn listed(&self, writes: &Writes) -> Vec<ListedCopy> {
        let clones = self.clones.iter();
        let clones = clones.map(|(key, tracked)| (key, epoch(&tracked.object().metadata)));
        let jobs = self.naming.all().filter_map(|(workload, job)| {
            Some((workload, epoch(&self.jobs.get(job)?.object().metadata)))
        });
        let listed = |(key, epoch): (&Key, u64)| {
            let (workload, deleting) = (key.to_string().into(), self.is_leaving(key, writes));
            ListedCopy { workload, epoch, deleting }
        };
        clones.chain(jobs).map(listed).collect()
    }

    /// An object of this worker.
    pub(super) fn target(&self, subject: Subject, key: &Key) -> Target {
        Target::worker(&self.name, subject, key)
    }

    /// Whether something of a Workload is being removed here.
    fn is_leaving(&self, key: &Key, writes: &Writes) -> bool {
        let job = self.naming.job_of(key);
        let clone: Option<&ObjectMeta> =
            self.clones.get(key).map(|tracked| &tracked.object().metadata);
        let of_job = job.and_then(|job| self.jobs.get(job));
        let mut seen = clone.into_iter().chain(of_job.map(|tracked| &tracked.object().metadata));
        let written = |subject, key: &Key| writes.is_pending(&self.target(subject, key));
        seen.any(|metadata| metadata.deletion_timestamp.is_some())
            || clone.is_some() && written(Subject::Workload, key)
            || job.is_some_and(|job| written(Subject::Job, job))
    }
}

/// The clone that a job names.
fn named(key: &Key, job: &Job, gates: JobGates) -> Key {
    let name = prebuilt_name(job, gates).name;
    Key { namespace: key.namespace.clone(), name: name.into() }
}
