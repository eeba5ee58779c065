//! Jobs and their Workloads: `jobs::reconcile` asked, its steps turned into orders.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ::jobs::{
    GenericJob, Job, StopWrite,
    construct_workload::{construct_workload, priority_source},
    equivalence,
    prebuilt::prebuilt_name,
    reconcile::{self, ReconcileContext, ReconcileStep, StopReason},
};
use crds::{
    names::{MULTI_KUEUE_CONTROLLER, RECLAIMABLE_PODS_MANAGER, RESOURCE_IN_USE_FINALIZER},
    v1beta2::Workload,
};
use jiff::Timestamp;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::{Change, Key},
    write::{Write, difference},
    writer::WriteOutcome,
};
use serde_json::{Value, json};

use super::{
    Control, Order, Purpose, Role, Subject, Ticket,
    due::What,
    held::Held,
    record::Record,
    workloads::{delete_order, merge_order},
};

/// Jobs as they were last seen, and which Workloads are theirs.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    jobs: BTreeMap<Key, Held<Job>>,
    /// Workloads by the job that controls them.
    owned: BTreeMap<Key, BTreeSet<Key>>,
    /// Jobs by the Workload that they name.
    naming: BTreeMap<Key, BTreeSet<Key>>,
    /// Jobs by the Workload that is being made for them.
    creating: BTreeMap<Key, Key>,
    /// By job, the Workload that was taken away by force while the job ran: it says what the job was before it started. Not
    /// known after a restart; then only what names the Workload is put back.
    taken: BTreeMap<Key, Arc<Workload>>,
}

impl Jobs {
    pub(crate) fn is_free(&self, key: &Key, now: Timestamp) -> bool {
        self.jobs.get(key).is_some_and(|held| held.is_free(now))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<(&Key, &Job)> {
        self.jobs.get_key_value(key).map(|(key, held)| (key, &*held.object))
    }

    /// Whether the job controls a Workload.
    pub(crate) fn owns_any(&self, key: &Key) -> bool {
        self.owned.contains_key(key)
    }

    pub(crate) fn sent(&mut self, key: &Key) {
        if let Some(held) = self.jobs.get_mut(key) {
            held.sent();
        }
    }

    pub(crate) fn workload_seen(&mut self, key: &Key, workload: &Workload) {
        if let Some(owner) = owner(key, workload) {
            self.owned.entry(owner).or_default().insert(key.clone());
        }
    }

    pub(crate) fn workload_gone(&mut self, key: &Key, workload: &Arc<Workload>) {
        let Some(owner) = owner(key, workload) else {
            return;
        };
        if let Some(workloads) = self.owned.get_mut(&owner) {
            workloads.remove(key);
            if workloads.is_empty() {
                self.owned.remove(&owner);
            }
        }
        let runs = |job: &Job| !job.is_suspended() && job.finished().is_none();
        if self.get(&owner).is_some_and(|(_, job)| runs(job)) {
            self.taken.insert(owner, Arc::clone(workload));
        }
    }

    /// Whether anything is known of what jobs had before they started.
    #[cfg(test)]
    pub(crate) fn remembers_any(&self) -> bool {
        !self.taken.is_empty()
    }

    /// The Workload that was taken away from a job by force while it ran.
    pub(super) fn taken_from(&self, job: &Key) -> Option<&Workload> {
        self.taken.get(job).map(Arc::as_ref)
    }

    /// The job of a Workload: the one that controls it, or that names it.
    pub(crate) fn of(&self, key: &Key, workload: &Workload) -> Option<(&Key, &Job)> {
        let named = self.naming.get(key).and_then(BTreeSet::first);
        let owner = owner(key, workload);
        let key = owner.as_ref().filter(|owner| self.jobs.contains_key(owner)).or(named)?;
        self.get(key)
    }
}

/// The Job that controls a Workload.
fn owner(key: &Key, workload: &Workload) -> Option<Key> {
    let mut owners = workload.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true) && owner.kind == "Job")?;
    Some(Key { namespace: key.namespace.clone(), name: owner.name.as_str().into() })
}

impl Control {
    pub(super) fn jobs(&mut self, change: Change<Job>) {
        self.take(change, |this, key, object| match object {
            Some(job) => this.see_job(key, job),
            None => this.lose_job(&key),
        });
    }

    fn see_job(&mut self, key: Key, job: Job) {
        let named = self.named_workload(&key, &job);
        if let Some(workload) = &named {
            self.jobs.naming.entry(workload.clone()).or_default().insert(key.clone());
            self.due.now(What::Workload(workload.clone()));
        }
        if let Some(held) = self.jobs.jobs.get_mut(&key) {
            if !held.see(job) {
                return;
            }
        } else {
            self.jobs.jobs.insert(key.clone(), Held::new(job));
        }
        self.workloads_of_job_due(&key);
        self.due.now(What::Job(key));
    }

    fn lose_job(&mut self, key: &Key) {
        if let Some(held) = self.jobs.jobs.remove(key)
            && let Some(workload) = self.named_workload(key, &held.object)
        {
            if let Some(jobs) = self.jobs.naming.get_mut(&workload) {
                jobs.remove(key);
            }
            self.due.now(What::Workload(workload));
        }
        self.jobs.taken.remove(key);
        self.forget_orphan(key);
        self.workloads_of_job_due(key);
        self.due.now(What::Job(key.clone()));
    }

    fn workloads_of_job_due(&mut self, key: &Key) {
        for workload in self.jobs.owned.get(key).into_iter().flatten() {
            self.due.now(What::Workload(workload.clone()));
        }
    }

    fn named_workload(&self, key: &Key, job: &Job) -> Option<Key> {
        let name = prebuilt_name(job, self.settings.jobs).name;
        let key = Key { namespace: key.namespace.clone(), name: name.into() };
        (!name.is_empty()).then_some(key)
    }

    pub(super) fn owner_due(&mut self, key: &Key, workload: &Workload) {
        let naming = self.jobs.naming.get(key).into_iter().flatten().cloned();
        for job in owner(key, workload).into_iter().chain(naming).collect::<Vec<_>>() {
            self.due.now(What::Job(job));
        }
    }

    pub(super) fn all_jobs_due(&mut self) {
        self.due.jobs.extend(self.jobs.jobs.keys().cloned());
    }

    /// Decides about every job that is due; how many.
    pub(super) fn decide_jobs(&mut self, now: Timestamp) -> usize {
        let due = std::mem::take(&mut self.due.jobs);
        for key in &due {
            self.decide_job(key, now);
        }
        due.len()
    }

    fn decide_job(&mut self, key: &Key, now: Timestamp) {
        let Some(held) = self.jobs.jobs.get(key) else {
            return self.orphans(key, now);
        };
        if !held.is_free(now) {
            tracing::trace!(job = %key, "not free");
            if let Some(at) = held.later() {
                self.due.at(at, What::Job(key.clone()));
            }
            return;
        }
        let job = held.object.clone();
        let prebuilt = self.named_workload(key, &job);
        if !self.manages(key, &job) {
            return;
        }
        self.note_orphan(key, &job, prebuilt.as_ref());
        if job.is_suspended() {
            self.jobs.taken.remove(key);
        }
        let steps = {
            let of_job = match &prebuilt {
                Some(named) => vec![named],
                None => self.jobs.owned.get(key).into_iter().flatten().collect(),
            };
            let workloads: Vec<&Workload> = of_job
                .into_iter()
                .filter_map(|key| self.workloads.get(key))
                .map(Record::object)
                .filter(|workload| is_for(&job, workload, prebuilt.is_some()))
                .collect();
            let taken = self.jobs.taken_from(key);
            let taken = taken.filter(|workload| is_for(&job, workload, false));
            reconcile::reconcile(
                &*job,
                ReconcileContext {
                    workloads: &workloads,
                    previous_workload: taken,
                    prebuilt: prebuilt.is_some(),
                    flavors: &self.queues.flavors,
                    gates: self.settings.jobs,
                },
            )
        };
        tracing::trace!(job = %key, n_steps = steps.len(), outcome = ?job.finished(), "looked at");
        for step in steps {
            self.take_step(key, &job, step, now);
        }
    }

    /// Workloads whose job is gone need not be kept; the garbage collector takes them.
    fn orphans(&mut self, key: &Key, now: Timestamp) {
        let workloads: Vec<Key> = self.jobs.owned.get(key).into_iter().flatten().cloned().collect();
        for workload in workloads {
            self.unfinalize(&workload, now);
        }
    }

    /// Whether a job is ours to hold back and start (docs/reference/kueue.md §7.3, 0d to 0g).
    fn manages(&self, key: &Key, job: &Job) -> bool {
        if self.settings.role == Role::Thin {
            return true;
        }
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let Some(labels) = self.configuration.namespace(namespace) else {
            return false;
        };
        let asked = !job.queue_name().is_empty() || self.settings.manage_jobs_without_queue_name;
        asked && self.settings.managed_namespaces.matches(labels)
    }

    fn take_step(&mut self, key: &Key, job: &Job, step: ReconcileStep<Job>, now: Timestamp) {
        let in_namespace = |name: &str| Key { namespace: key.namespace.clone(), name: name.into() };
        match step {
            ReconcileStep::CreateWorkload => self.create_workload(key, job),
            ReconcileStep::UpdateWorkload(workload) => {
                self.update_workload(&in_namespace(name(&workload)), &workload, now);
            }
            ReconcileStep::DeleteWorkload(name) => self.delete_workload(&in_namespace(&name), now),
            ReconcileStep::FinishWorkload { workload, reason, message } => {
                let workload = in_namespace(&workload);
                if let Some(record) = self.workloads.get_mut(&workload) {
                    record.wants.finish = Some((reason.to_owned(), message));
                    self.due.now(What::Workload(workload));
                }
            }
            ReconcileStep::RemoveFinalizer(name) => self.unfinalize(&in_namespace(&name), now),
            ReconcileStep::UpdateReclaimablePods(name, pods) => {
                self.reclaim(&in_namespace(&name), &json!(pods), now)
            }
            ReconcileStep::StartJob(started) => {
                self.change_job(key, job, &started, None, Purpose::Start);
            }
            ReconcileStep::StopJob(StopWrite::Object(next), reason) => {
                if !job.spec_suspended() {
                    self.notice_job(job, false, "Stopped", why(reason).to_owned());
                }
                self.change_job(key, job, &next, None, Purpose::Stop);
            }
            ReconcileStep::StopJob(StopWrite::Status(next), _) => {
                self.change_job(key, job, &next, Some("status"), Purpose::StopStatus);
            }
            ReconcileStep::ReleaseQuota(name) => {
                let workload = in_namespace(&name);
                if let Some(record) = self.workloads.get_mut(&workload)
                    && !record.wants.release
                {
                    record.wants.release = true;
                    self.due.now(What::Workload(workload));
                }
            }
            ReconcileStep::UpdateQueueName(name) => {
                let fields = json!({ "spec": { "queueName": job.queue_name() } });
                self.patch_workload(&in_namespace(&name), Purpose::Move, fields, now);
            }
        }
    }

    fn create_workload(&mut self, key: &Key, job: &Job) {
        let source = priority_source(job, self.settings.jobs);
        let Some(priority) = self.configuration.priority(&source) else {
            let message = format!("the priority class of {source:?} is not there");
            return self.notice_job(job, true, "WorkloadPriorityClassNotFound", message);
        };
        let workload = construct_workload(job, priority, &self.settings.copied, self.settings.jobs);
        let name = workload.metadata.name.clone().unwrap_or_default();
        let workload_key = Key { namespace: key.namespace.clone(), name: name.into() };
        if self.workloads.contains_key(&workload_key) {
            // It is there and says something else; its removal is awaited.
            return;
        }
        let ticket = Ticket::home(Subject::Workload, &workload_key, Purpose::WorkloadCreate);
        let order = Order::of(ticket, |purpose, _| Write::create(purpose, &workload));
        if let Some(order) = order {
            // The job is written next when this is answered.
            self.jobs.sent(key);
            self.jobs.creating.insert(workload_key, key.clone());
            self.orders.push(order);
        }
    }

    pub(super) fn creation_answer(&mut self, key: &Key, answer: WriteOutcome, now: Timestamp) {
        if let Some(job) = self.jobs.creating.remove(key) {
            if let Some(held) = self.jobs.jobs.get_mut(&job) {
                // The answer was about the Workload: of the job, it says only whether to try again.
                let about_job = match &answer {
                    WriteOutcome::Done(_) | WriteOutcome::Exists => WriteOutcome::Done(Value::Null),
                    other => other.clone(),
                };
                held.answered(about_job, now);
                if let Some(at) = held.later() {
                    self.due.at(at, What::Job(job.clone()));
                }
            }
            self.due.now(What::Job(job));
        }
        if let WriteOutcome::Done(value) = answer
            && let Ok(mut workload) = serde_json::from_value::<Workload>(value)
        {
            workload.metadata.managed_fields = None;
            self.workloads(Change::Apply(workload), now);
        }
    }

    fn update_workload(&mut self, key: &Key, after: &Workload, now: Timestamp) {
        let Some(record) = self.workloads.get(key).filter(|one| one.held.is_free(now)) else {
            return;
        };
        let before = record.object();
        let patch = difference(&json!({ "spec": before.spec }), &json!({ "spec": after.spec }));
        if let Some(order) =
            patch.and_then(|patch| merge_order(key, before, Purpose::WorkloadUpdate, patch))
        {
            self.send(order);
        }
    }

    fn patch_workload(&mut self, key: &Key, purpose: Purpose, fields: Value, now: Timestamp) {
        let record = self.workloads.get(key).filter(|one| one.held.is_free(now));
        let order = record.and_then(|record| merge_order(key, record.object(), purpose, fields));
        order.into_iter().for_each(|order| self.send(order));
    }

    fn delete_workload(&mut self, key: &Key, now: Timestamp) {
        self.unfinalize(key, now);
        let record = self.workloads.get(key).filter(|one| one.held.is_free(now));
        let record = record.filter(|one| one.object().metadata.deletion_timestamp.is_none());
        let order = record.and_then(|one| delete_order(key, one.object(), Purpose::WorkloadDelete));
        order.into_iter().for_each(|order| self.send(order));
    }

    fn unfinalize(&mut self, key: &Key, now: Timestamp) {
        let Some(record) = self.workloads.get(key) else {
            return;
        };
        let finalizers = record.object().metadata.finalizers.iter().flatten();
        let (ours, kept): (Vec<&String>, Vec<&String>) =
            finalizers.partition(|one| *one == RESOURCE_IN_USE_FINALIZER);
        if !ours.is_empty() {
            let fields = json!({ "metadata": { "finalizers": kept } });
            self.patch_workload(key, Purpose::Unfinalize, fields, now);
        }
    }

    fn reclaim(&mut self, key: &Key, pods: &Value, now: Timestamp) {
        if self.settings.role == Role::Thin {
            // A thin worker counts them itself; the manager learns of them from the job's status.
            return;
        }
        let Some(record) = self.workloads.get(key).filter(|one| one.held.is_free(now)) else {
            return;
        };
        let fields = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": { "name": key.name, "namespace": key.namespace, "uid": record.object().metadata.uid },
            "status": { "reclaimablePods": pods },
        });
        let ticket = Ticket::home(Subject::Workload, key, Purpose::Reclaim);
        let order = Order::of(ticket, |purpose, key| {
            let part = Some("status");
            Write::apply::<Workload>(purpose, key, part, RECLAIMABLE_PODS_MANAGER, &fields)
        });
        order.into_iter().for_each(|order| self.send(order));
    }

    /// Writes what differs between two states of a job.
    pub(super) fn change_job(
        &mut self,
        key: &Key,
        before: &Job,
        after: &Job,
        part: Option<&'static str>,
        purpose: Purpose,
    ) {
        let (old, new) = match part {
            None => (
                json!({ "metadata": before.metadata, "spec": before.spec }),
                json!({ "metadata": after.metadata, "spec": after.spec }),
            ),
            Some(_) => (json!({ "status": before.status }), json!({ "status": after.status })),
        };
        let Some(mut patch) = difference(&old, &new) else {
            return;
        };
        patch["metadata"]["uid"] = json!(before.metadata.uid);
        patch["metadata"]["resourceVersion"] = json!(before.metadata.resource_version);
        let ticket = Ticket::home(Subject::Job, key, purpose);
        let order =
            Order::of(ticket, |purpose, key| Write::merge::<Job>(purpose, key, part, &patch));
        order.into_iter().for_each(|order| self.send(order));
    }

    pub(super) fn job_answer(&mut self, ticket: &Ticket, answer: WriteOutcome, now: Timestamp) {
        let key = &ticket.key;
        let Some(held) = self.jobs.jobs.get_mut(key) else {
            return;
        };
        if answer == WriteOutcome::Gone && held.is_as_sent() {
            return self.lose_job(key);
        }
        let started = ticket.purpose == Purpose::Start && matches!(answer, WriteOutcome::Done(_));
        held.answered(answer, now);
        if let Some(at) = held.later() {
            self.due.at(at, What::Job(key.clone()));
        }
        if started {
            self.announce_start(key);
        }
        self.workloads_of_job_due(key);
        self.due.now(What::Job(key.clone()));
    }

    fn announce_start(&mut self, key: &Key) {
        let Some(job) = self.jobs.jobs.get(key).map(|held| held.object.clone()) else {
            return;
        };
        let named = self.named_workload(key, &job);
        let owned = self.jobs.owned.get(key).into_iter().flatten().cloned();
        let mut workloads =
            named.into_iter().chain(owned).filter_map(|key| self.workloads.get(&key));
        let admission = workloads.find_map(|one| one.object().status.admission.as_ref());
        let queue = admission.map(|one| one.cluster_queue.clone()).unwrap_or_default();
        self.notice_job(&job, false, "Started", format!("Admitted by clusterQueue {queue}"));
    }

    fn notice_job(&mut self, job: &Job, warning: bool, reason: &'static str, message: String) {
        let about = Regarding::of(job);
        let severity = if warning { EventType::Warning } else { EventType::Normal };
        let (action, reason) = (reason.to_owned(), reason.to_owned());
        self.notices.push(EventRecord {
            regarding: about,
            event_type: severity,
            action,
            reason,
            note: message,
        });
    }

    /// Whether the hub's job can be dispatched at all; if not, why.
    pub(super) fn undispatchable(&self, key: &Key, workload: &Workload) -> Option<String> {
        let Some((_, job)) = self.jobs.of(key, workload) else {
            let kinds = workload.metadata.owner_references.iter().flatten();
            let kind = kinds.map(|owner| owner.kind.as_str()).next();
            // A Job that is not seen yet may come.
            return match kind {
                Some("Job") => None,
                Some(kind) => {
                    Some(format!("No multikueue adapter found for owner kind \"{kind}\""))
                }
                None => Some("No multikueue adapter found".to_owned()),
            };
        };
        let manager = job.managed_by().unwrap_or_default();
        (manager != MULTI_KUEUE_CONTROLLER).then(|| {
            format!(
                "The owner is not managed by Kueue: Expecting spec.managedBy to be \"{MULTI_KUEUE_CONTROLLER}\" not \"{manager}\""
            )
        })
    }
}

/// Whether a Workload can be this job's: one that it only names must be of the same epoch.
fn is_for(job: &Job, workload: &Workload, prebuilt: bool) -> bool {
    if prebuilt {
        let epoch = ::jobs::remote_objects::epoch;
        return epoch(&job.metadata) == epoch(&workload.metadata);
    }
    equivalence::owned_by(workload, job)
}

fn why(reason: StopReason) -> &'static str {
    match reason {
        StopReason::NoMatchingWorkload => "No matching Workload; restoring pod templates",
        StopReason::WorkloadDeleted => "Workload is deleted",
        StopReason::WorkloadEvicted => "Workload is evicted",
        StopReason::NotAdmitted => "Not admitted by cluster queue",
    }
}

fn name(workload: &Workload) -> &str {
    workload.metadata.name.as_deref().unwrap_or_default()
}
