//! The steps of a Workload's life over clusters, as orders.

use std::time::Duration;

use ::dispatch::workload::{self, DispatchStep, DispatchTimeouts, RetryReason};
use ::jobs::{GenericJob, Job, remote_objects, remote_objects::RemoteIdentity};
use crds::{
    names::{annotations::EPOCH, conditions::EVICTED},
    v1beta2::Workload,
};
use engine::ids::ClusterId;
use index::status::find;
use jiff::Timestamp;
use runtime::{
    watch::Key,
    write::{DeletePreconditions, DeletePropagation, Write},
};
use serde_json::json;

use super::{Control, Remote, Sent, told::News};
use crate::control::{
    Destination, Order, Purpose, Role, Subject, Ticket,
    due::What,
    held::{Held, after},
    record::has_quota,
    time, timestamp,
    workloads::merge_order,
};

impl Control {
    /// Looks at the copies of a Workload.
    pub(crate) fn decide_copies(&mut self, key: &Key, now: Timestamp) {
        if self.settings.role != (Role::Manager { dispatches: true }) {
            return;
        }
        let somewhere = self.remotes.values().any(|remote| remote.concerns(key));
        let dispatched = self.dispatching_check(key).is_some() || self.orphans.contains(key);
        if !somewhere && !dispatched {
            return;
        }
        if self.reject(key) {
            return;
        }
        let hub = self.hub(key);
        if !hub.exists && self.breaker_holds(key) {
            return;
        }
        let copies = self.copies(key, &hub, now);
        let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let settings = DispatchTimeouts {
            worker_lost_timeout: nanos(self.settings.lost_after),
            admission_timeout: nanos(self.settings.admit_within),
        };
        let steps = workload::decide(&hub, &copies, &settings, time(now));
        tracing::trace!(workload = %key, ?hub, ?copies, ?steps, "life");
        for step in steps {
            self.take_life_step(key, step, now);
        }
    }

    /// The check that dispatches a Workload that holds quota, if there is one.
    pub(crate) fn dispatching_check(&self, key: &Key) -> Option<String> {
        let workload = self.workloads.get(key)?.object();
        let admission = workload.status.admission.as_ref().filter(|_| has_quota(workload))?;
        self.index.multi_kueue_check(&admission.cluster_queue).map(str::to_owned)
    }

    /// What cannot be dispatched is told so, before anything is made anywhere.
    fn reject(&mut self, key: &Key) -> bool {
        let Some(record) = self.workloads.get(key) else {
            return false;
        };
        let workload = record.object();
        if !has_quota(workload) || workload.status.cluster_name.is_some() {
            return false;
        }
        let Some(why) = self.undispatchable(key, workload) else {
            return false;
        };
        if let Some(record) = self.workloads.get_mut(key) {
            record.wants.reject = Some(format!("{why}, Previously: \"Pending\""));
            record.trip.withdrawn = true;
        }
        true
    }

    fn take_life_step(&mut self, key: &Key, step: DispatchStep, now: Timestamp) {
        match step {
            DispatchStep::CreateClone(cluster) => self.create_clone(key, cluster),
            DispatchStep::CreateJob(cluster) => self.create_job(key, cluster),
            DispatchStep::DeleteJob(cluster) => self.delete_job(key, cluster),
            DispatchStep::DeleteClone(cluster) => self.delete_clone(key, cluster),
            DispatchStep::SyncStatus(cluster) => self.sync_status(key, cluster, now),
            DispatchStep::ClearActivePods => self.idle(key, now),
            DispatchStep::RaiseEpoch => self.raise_epoch(key, now),
            DispatchStep::WaitUntil(at) => self.due.at(timestamp(at), What::Workload(key.clone())),
            DispatchStep::SetCheckReady(cluster) => {
                let name: Box<str> = self.fleet.name(cluster).into();
                self.want(key, |wants| wants.ready = Some(name));
            }
            DispatchStep::Finish { reason, message } => {
                self.want(key, |wants| wants.finish = Some((reason.into(), message.into())));
            }
            DispatchStep::SetCheckRetry(retry) => {
                match retry {
                    RetryReason::EvictedOnWorker(cluster)
                    | RetryReason::RefusedByWorker(cluster) => {
                        self.leave_out(key, cluster, now);
                    }
                    RetryReason::RemoteLost => self.tell_left_behind(key),
                    RetryReason::RemoteMissing
                    | RetryReason::OutOfSync(_)
                    | RetryReason::NoClusterRecorded => {}
                }
                let message = retry.message(|cluster| self.fleet.name(cluster));
                self.want(key, |wants| wants.retry = Some(message));
            }
            DispatchStep::CancelNomination { cluster, why } => self.unplace(key, cluster, why, now),
            DispatchStep::Withdrawn => self.withdrawn(key),
        }
    }

    fn want(&mut self, key: &Key, set: impl FnOnce(&mut crate::control::record::Wants)) {
        if let Some(record) = self.workloads.get_mut(key) {
            set(&mut record.wants);
        }
    }

    /// The Workload and its number of copy.
    fn source(&self, key: &Key) -> Option<(&Workload, RemoteIdentity<'_>)> {
        let workload = self.workloads.get(key)?.object();
        let mark =
            RemoteIdentity { origin: &self.settings.origin, epoch: ::index::epoch(workload) };
        Some((workload, mark))
    }

    fn create_clone(&mut self, key: &Key, cluster: ClusterId) {
        let Some((workload, mark)) = self.source(key) else {
            return;
        };
        let clone = match remote_objects::remote_workload(workload, &self.queues.flavors, mark) {
            Ok(clone) => clone,
            Err(error) => return tracing::warn!(%error, workload = %key, "cannot make a clone"),
        };
        self.send_to(cluster, key, (Subject::Workload, key), Purpose::CloneCreate, |purpose, _| {
            Write::create(purpose, &clone)
        });
        if let Some(record) = self.workloads.get_mut(key) {
            record.trip.sent = true;
        }
    }

    fn create_job(&mut self, key: &Key, cluster: ClusterId) {
        let Some((workload, mark)) = self.source(key) else {
            return;
        };
        let Some((job_key, job)) = self.jobs.of(key, workload) else {
            return;
        };
        let copy = remote_objects::remote_job(job, workload, mark, self.settings.jobs);
        let job_key = job_key.clone();
        self.send_to(cluster, key, (Subject::Job, &job_key), Purpose::JobCreate, |purpose, _| {
            Write::create(purpose, &copy)
        });
        if let Some(record) = self.workloads.get_mut(key) {
            record.trip.sent = true;
        }
    }

    fn delete_job(&mut self, key: &Key, cluster: ClusterId) {
        let Some(remote) = self.remotes.get(self.fleet.name(cluster)) else {
            return;
        };
        let Some(job_key) = remote.naming.job_of(key).cloned() else {
            return;
        };
        let Some(only) = remote.jobs.objects.get(&job_key).and_then(only) else {
            return;
        };
        self.send_to(cluster, key, (Subject::Job, &job_key), Purpose::JobDelete, |purpose, key| {
            Write::delete::<Job>(purpose, key, only, DeletePropagation::Foreground)
        });
    }

    fn delete_clone(&mut self, key: &Key, cluster: ClusterId) {
        let Some(remote) = self.remotes.get(self.fleet.name(cluster)) else {
            return;
        };
        let Some(only) = remote.clones.objects.get(key).and_then(only) else {
            return;
        };
        self.send_to(
            cluster,
            key,
            (Subject::Workload, key),
            Purpose::CloneDelete,
            |purpose, key| {
                Write::delete::<Workload>(purpose, key, only, DeletePropagation::Background)
            },
        );
    }

    /// Sends a write for a Workload to a worker, unless one of the same object is on its way.
    fn send_to(
        &mut self,
        cluster: ClusterId,
        workload: &Key,
        (subject, key): (Subject, &Key),
        purpose: Purpose,
        write: impl FnOnce(&'static str, &Key) -> Result<Write, runtime::write::WriteError>,
    ) {
        let name: Box<str> = self.fleet.name(cluster).into();
        let Some(remote) = self.remotes.get_mut(&name) else {
            return;
        };
        let sent = (subject, key.clone());
        if remote.sent.get(&sent) == Some(&Sent::Unanswered) {
            return;
        }
        let (to, workload) = (Destination::Worker(name), Some(workload.clone()));
        let ticket = Ticket { to, subject, key: key.clone(), purpose, workload };
        if let Some(order) = Order::of(ticket, write) {
            remote.sent.insert(sent, Sent::Unanswered);
            self.orders.push(order);
        }
    }

    fn sync_status(&mut self, key: &Key, cluster: ClusterId, now: Timestamp) {
        let Some((job_key, job)) = self.hub_job_if_free(key, now) else {
            return;
        };
        let remote = self.remotes.get(self.fleet.name(cluster));
        let copy = remote.and_then(|remote| {
            let key = remote.naming.job_of(key)?;
            Some(&remote.jobs.objects.get(key)?.object)
        });
        let Some(copy) = copy else {
            return;
        };
        let (news, after) = (News::of(&job, copy), job.with_remote_status(copy));
        let Some(record) = self.workloads.get_mut(key) else {
            return;
        };
        if let Some(until) = record.trip.told.keep_back(news, now) {
            return self.due.at(until, What::Workload(key.clone()));
        }
        record.trip.told.tell(now);
        self.change_job(&job_key, &job, &after, Some("status"), Purpose::SyncStatus);
    }

    fn idle(&mut self, key: &Key, now: Timestamp) {
        if let Some((job_key, job)) = self.hub_job_if_free(key, now)
            && let Some(after) = job.with_idle_status()
        {
            self.change_job(&job_key, &job, &after, Some("status"), Purpose::Idle);
        }
    }

    fn hub_job_if_free(&self, key: &Key, now: Timestamp) -> Option<(Key, Job)> {
        let (job_key, job) = self.job_of(key)?;
        self.jobs.is_free(job_key, now).then(|| (job_key.clone(), job.clone()))
    }

    fn raise_epoch(&mut self, key: &Key, now: Timestamp) {
        let Some(record) = self.workloads.get(key).filter(|record| record.held.is_free(now)) else {
            return;
        };
        let workload = record.object();
        let next = ::index::epoch(workload) + 1;
        let fields = json!({ "metadata": { "annotations": { EPOCH: next.to_string() } } });
        let order = merge_order(key, workload, Purpose::RaiseEpoch, fields);
        order.into_iter().for_each(|order| self.send(order));
    }

    /// The reservation is given up; the cluster is not asked again for a while.
    fn unplace(&mut self, key: &Key, cluster: ClusterId, why: Box<str>, now: Timestamp) {
        let until = after(now, self.settings.exclude_for);
        let Some(record) = self.workloads.get_mut(key) else {
            return;
        };
        let message =
            format!("worker cluster \"{}\" did not take it: {why}", self.fleet.name(cluster));
        self.fleet.unplace(record.id);
        self.fleet.exclude_cluster(record.id, cluster, time(until), why);
        record.wants.unplace = Some(message);
        record.wants.ready = None;
        record.trip.withdrawn = true;
    }

    /// A worker that evicted a Workload, or takes no job of it, is not asked again for a while.
    fn leave_out(&mut self, key: &Key, cluster: ClusterId, now: Timestamp) {
        let remote = self.remotes.get(self.fleet.name(cluster));
        let (Some(remote), Some(record)) = (remote, self.workloads.get(key)) else {
            return;
        };
        let epoch = ::index::epoch(record.object());
        let evicted = || format!("evicted there: {}", remote.eviction(key).unwrap_or_default());
        let why = remote.refusal(key, epoch).map_or_else(evicted, str::to_owned);
        let until = time(after(now, self.settings.exclude_for));
        self.fleet.exclude_cluster(record.id, cluster, until, why.into());
    }

    fn withdrawn(&mut self, key: &Key) {
        if let Some(record) = self.workloads.get_mut(key)
            && !std::mem::replace(&mut record.trip.withdrawn, true)
        {
            self.fleet.unplace(record.id);
        }
    }
}

impl Remote {
    /// Why the clone of a Workload was evicted.
    fn eviction(&self, key: &Key) -> Option<&str> {
        let clone = self.clones.objects.get(key)?;
        find(&clone.object.status.conditions, EVICTED).map(|one| one.message.as_str())
    }
}

/// Of a deletion: what was seen and is not being deleted yet.
fn only<K: kube::Resource>(held: &Held<K>) -> Option<DeletePreconditions> {
    let meta = held.object.meta();
    let going = meta.deletion_timestamp.is_some();
    (!going).then(|| DeletePreconditions { uid: meta.uid.clone(), resource_version: None })
}
