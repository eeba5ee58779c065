//! Workers: what each has of ours, and the steps of `dispatch::life` turned into orders.

mod breaker;
mod left_behind;
mod naming;
mod shown;
mod steps;
mod told;
mod view;

pub(crate) use self::told::Told;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ::dispatch::AssignedWorkload;
use ::jobs::{Job, prebuilt::prebuilt_name};
use crds::{names::conditions::FINISHED, v1alpha1::ClusterCapacity, v1beta2::Workload};
use engine::ids::{ClusterId, WorkloadId};
use jiff::Timestamp;
use kube::Resource;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

pub(super) use self::view::hub_job;

use super::{
    Control, Link, RemoteInput, Subject, Ticket,
    configuration::{each, is_list},
    due::What,
    held::{Held, after, keep, version},
};

/// How long a create that got no answer may still be on its way, and the news of a deletion that was answered.
const ON_ITS_WAY: Duration = Duration::from_secs(15);

/// One worker.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) id: ClusterId,
    pub(crate) link: Link,
    /// Since when it has not been connected.
    lost: Option<Timestamp>,
    clones: Copies<Workload>,
    jobs: Copies<Job>,
    naming: naming::Naming,
    /// Writes that are on their way, or may be.
    sent: BTreeMap<(Subject, Key), Sent>,
    /// What the API server did not let be created, by Workload, and at which epoch.
    refused: BTreeMap<Key, (u64, String)>,
    /// So much of what it has is not on the hub that nothing of that is deleted before a person says so.
    tripped: bool,
    /// It was compared with the hub since this process began.
    swept: bool,
    /// How much that was, when it was last compared.
    n_orphans: usize,
    pub(crate) capacity: Option<Held<ClusterCapacity>>,
    shown: shown::Shown,
}

/// The objects of a kind that the worker has of ours.
#[derive(Debug)]
struct Copies<K> {
    objects: BTreeMap<Key, Held<K>>,
    /// They were listed since the worker was connected.
    listed: bool,
}

/// A write on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// It is not answered yet.
    Unanswered,
    /// It got no answer and may be done until then.
    Unknown(Timestamp),
}

impl Sent {
    /// Whether it may still be done.
    fn waits(self, now: Timestamp) -> bool {
        match self {
            Self::Unanswered => true,
            Self::Unknown(until) => until > now,
        }
    }
}

impl<K> Default for Copies<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: false }
    }
}

impl<
    K: Resource
        + k8s_openapi::Metadata<Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>,
> Copies<K>
{
    /// Enters a change; the keys that it is about. The first list of a connection is complete: what it lacks is gone.
    fn take(&mut self, change: Change<K>) -> BTreeSet<Key> {
        let first =
            matches!(change, Change::Reset { .. }) && !std::mem::replace(&mut self.listed, true);
        let mut touched = BTreeSet::new();
        let before: BTreeSet<Key> =
            if first { self.objects.keys().cloned().collect() } else { BTreeSet::new() };
        each(change, |key, object| {
            keep(&mut self.objects, key.clone(), object);
            touched.insert(key);
        });
        for gone in before.difference(&touched) {
            self.objects.remove(gone);
        }
        touched.extend(before);
        touched
    }
}

impl Remote {
    fn new(id: ClusterId, now: Timestamp) -> Self {
        Self {
            id,
            link: Link { active: false, reason: "", message: String::new() },
            lost: Some(now),
            clones: Copies::default(),
            jobs: Copies::default(),
            naming: naming::Naming::default(),
            sent: BTreeMap::new(),
            refused: BTreeMap::new(),
            tripped: false,
            swept: false,
            n_orphans: 0,
            capacity: None,
            shown: shown::Shown::default(),
        }
    }

    /// Whether everything was listed since it was connected.
    fn is_listed(&self) -> bool {
        self.clones.listed && self.jobs.listed
    }

    /// What the API server said against a copy of this epoch.
    fn refusal(&self, key: &Key, epoch: u64) -> Option<&str> {
        let refused = self.refused.get(key).filter(|(of, _)| *of == epoch);
        refused.map(|(_, message)| message.as_str())
    }

    /// The Workload is gone.
    pub(super) fn forget_refusal(&mut self, key: &Key) {
        self.refused.remove(key);
    }

    /// Whether it has, or may get, anything of a Workload.
    fn concerns(&self, key: &Key) -> bool {
        self.clones.objects.contains_key(key)
            || self.naming.job_of(key).is_some()
            || self.sent.contains_key(&(Subject::Workload, key.clone()))
    }
}

impl Control {
    /// Something happened on a worker.
    pub(super) fn remote(&mut self, name: &str, input: RemoteInput, now: Timestamp) {
        let id = self.fleet.cluster(name);
        let remote = self.remotes.entry(name.into()).or_insert_with(|| Remote::new(id, now));
        match input {
            RemoteInput::Link(link) => self.remote_link(name, link, now),
            RemoteInput::GivenUp => self.given_up(name),
            RemoteInput::Workload(change) => {
                let listed = is_list(&change);
                let touched = remote.clones.take(change);
                for key in touched {
                    self.clone_seen(name, &key);
                }
                if listed {
                    self.sweep(name);
                }
            }
            RemoteInput::Job(change) => {
                let gates = self.settings.jobs;
                let listed = is_list(&change);
                let touched = remote.jobs.take(change);
                let mut workloads = BTreeSet::new();
                for key in touched {
                    workloads.extend(remote.job_seen(&key, gates));
                }
                workloads.into_iter().for_each(|key| self.due.now(What::Workload(key)));
                if listed {
                    self.sweep(name);
                }
            }
            RemoteInput::Capacity(change) => {
                each(change, |key, object| {
                    if &*key.name != crds::v1alpha1::LOCAL {
                        return;
                    }
                    match (&mut remote.capacity, object) {
                        (Some(held), Some(object)) => {
                            held.see(object);
                        }
                        (capacity, object) => *capacity = object.map(Held::new),
                    }
                });
                self.reported(name);
            }
        }
    }

    fn remote_link(&mut self, name: &str, link: Link, now: Timestamp) {
        let Some(remote) = self.remotes.get_mut(name) else {
            return;
        };
        if remote.link == link {
            return;
        }
        let takes_work = link.active && self.clusters.is_registered(name);
        self.fleet.set_connected(remote.id, takes_work);
        if remote.link.active != link.active {
            remote.lost = (!link.active).then_some(now);
            remote.clones.listed = false;
            remote.jobs.listed = false;
            // Every write is answered, if only by saying that nobody knows. One under way may be done whatever the link.
            remote.sent.retain(|_, sent| sent.waits(now));
            let cluster = name;
            tracing::info!(cluster, active = link.active, reason = link.reason, "worker");
        }
        remote.link = link;
        self.due.now(What::Clusters);
        self.due.now(What::LabelKeys);
        self.all_workloads_due();
    }

    fn clone_seen(&mut self, name: &str, key: &Key) {
        if let Some(remote) = self.remotes.get_mut(name) {
            remote.sent.remove(&(Subject::Workload, key.clone()));
            if let (Some(record), Some(held)) =
                (self.workloads.get(key), remote.clones.objects.get(key))
            {
                self.fleet.clone_created(record.id, held.version());
            }
        }
        self.due.now(What::Workload(key.clone()));
    }

    /// The worker says what it can take.
    pub(super) fn reported(&mut self, name: &str) {
        let Some(remote) = self.remotes.get_mut(name) else {
            return;
        };
        remote.shown.look();
        let capacity = remote.capacity.as_ref().map(|held| &held.object);
        let names = self.engine.names_mut();
        let report = capacity.filter(|one| one.status.protocol > 0);
        let report = report.map(|capacity| ::index::capacity_report(names, capacity));
        self.fleet.set_report(remote.id, report);
        self.due.now(What::LabelKeys);
    }

    /// A Workload that holds quota on a worker counts there, also after a restart.
    pub(super) fn recover_placement(&mut self, key: &Key) {
        let Some(record) = self.workloads.get(key) else {
            return;
        };
        let (id, workload) = (record.id, record.object());
        let status = &workload.status;
        let cluster = status.cluster_name.as_ref().or(status.nominated_cluster_names.first());
        let (Some(cluster), Some(admission)) = (cluster, &status.admission) else {
            return;
        };
        if !super::record::has_quota(workload) || self.fleet.placed_on(id).is_some() {
            return;
        }
        let since = super::record::started(workload);
        if let Some(request) = self.index.request(id) {
            let given = self.index.admitted_pod_sets(admission);
            let work = Arc::new(AssignedWorkload { request: Arc::clone(request), assigned: given });
            let cluster = self.fleet.cluster(cluster);
            self.fleet.place(id, cluster, work, since);
        }
    }

    /// At which resourceVersion the clone of a Workload was over, on the cluster where it counts.
    pub(super) fn ended_at(&self, key: &Key, id: WorkloadId) -> Option<u64> {
        let remote = self.remotes.get(self.fleet.name(self.fleet.placed_on(id)?))?;
        let clone = remote.clones.objects.get(key)?;
        super::record::is(&clone.object, FINISHED).then(|| clone.version())
    }

    /// What came of a write on a worker.
    pub(super) fn remote_answer(
        &mut self,
        cluster: &str,
        ticket: &Ticket,
        answer: WriteOutcome,
        now: Timestamp,
    ) {
        let Some(remote) = self.remotes.get_mut(cluster) else {
            return;
        };
        let key = &ticket.key;
        let sent = (ticket.subject, key.clone());
        if ticket.subject == Subject::Capacity {
            if let Some(held) = &mut remote.capacity {
                held.answered(answer, now);
            }
            return self.reported(cluster);
        }
        let workload = ticket.workload.clone();
        remote.sent.remove(&sent);
        match answer {
            // It is gone, and only the watch may say so; until then it is not deleted again.
            WriteOutcome::Done(value) if is_status(&value) && remote.still_has(ticket) => {
                let until = after(now, ON_ITS_WAY);
                remote.sent.insert(sent, Sent::Unknown(until));
                self.due.at(until, What::Workload(key.clone()));
            }
            WriteOutcome::Done(value) => remote.enter(ticket, value, self.settings.jobs),
            WriteOutcome::Gone => {
                if ticket.subject == Subject::Workload {
                    remote.clones.objects.remove(key);
                } else {
                    remote.jobs.objects.remove(key);
                    remote.job_seen(key, self.settings.jobs);
                }
            }
            WriteOutcome::Exists => {}
            WriteOutcome::Refused { message, .. } => {
                if let Some(workload) = &workload {
                    let epoch =
                        self.workloads.get(workload).map_or(1, |one| ::index::epoch(one.object()));
                    remote.refused.insert(workload.clone(), (epoch, message));
                }
            }
            WriteOutcome::Stale => {}
            WriteOutcome::Unknown(_) => {
                let until = after(now, ON_ITS_WAY);
                remote.sent.insert(sent, Sent::Unknown(until));
                if let Some(workload) = &workload {
                    self.due.at(until, What::Workload(workload.clone()));
                }
            }
        }
        if let Some(workload) = workload {
            if ticket.subject == Subject::Workload {
                let version = remote.clones.objects.get(&workload).map(Held::version);
                if let (Some(record), Some(version)) = (self.workloads.get(&workload), version) {
                    self.fleet.clone_created(record.id, version);
                }
            }
            self.due.now(What::Workload(workload));
        }
    }
}

impl Remote {
    /// Whether a write was about a clone that is still seen.
    fn still_has(&self, ticket: &Ticket) -> bool {
        ticket.subject == Subject::Workload && self.clones.objects.contains_key(&ticket.key)
    }

    /// Notes which clone a job names; that clone, and the one that it named before.
    fn job_seen(&mut self, key: &Key, gates: ::jobs::JobGates) -> Vec<Key> {
        self.sent.remove(&(Subject::Job, key.clone()));
        let now = self.jobs.objects.get(key).map(|held| named(key, &held.object, gates));
        self.naming.note(key, now)
    }

    /// What a create or a delete was answered with.
    fn enter(&mut self, ticket: &Ticket, value: serde_json::Value, gates: ::jobs::JobGates) {
        match ticket.subject {
            Subject::Workload => enter(&mut self.clones.objects, &ticket.key, value),
            Subject::Job => {
                enter(&mut self.jobs.objects, &ticket.key, value);
                self.job_seen(&ticket.key, gates);
            }
            _ => {}
        }
    }
}

/// An object from an answer. The answer to a deletion that is done is a status; the watch tells the rest.
fn enter<K>(objects: &mut BTreeMap<Key, Held<K>>, key: &Key, value: serde_json::Value)
where
    K: Resource + serde::de::DeserializeOwned,
{
    if is_status(&value) {
        return;
    }
    let Ok(mut object) = serde_json::from_value::<K>(value) else {
        return;
    };
    object.meta_mut().managed_fields = None;
    match objects.get_mut(key) {
        Some(held) => {
            held.see(object);
        }
        // An object that is being deleted may be gone by now; only the watch knows.
        None if object.meta().deletion_timestamp.is_none() && version(&object) > 0 => {
            objects.insert(key.clone(), Held::new(object));
        }
        None => {}
    }
}

/// Whether an answer is no object but the status of a deletion that is done.
fn is_status(value: &serde_json::Value) -> bool {
    value.get("kind").and_then(serde_json::Value::as_str) == Some("Status")
}

fn named(key: &Key, job: &Job, gates: ::jobs::JobGates) -> Key {
    let name = prebuilt_name(job, gates).name;
    Key { namespace: key.namespace.clone(), name: name.into() }
}
