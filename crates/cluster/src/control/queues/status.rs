//! The status of queues.
//!
//! Written at most once per period and queue, however much happens in it. One count of a ClusterQueue serves its LocalQueues
//! too. Cost: one walk over the Workloads of each marked ClusterQueue, and none while its status may not be written yet.

use std::{collections::BTreeSet, time::Duration};

use crds::v1beta2::{ClusterQueue, LocalQueue};
use index::{
    queue_status::{ClusterQueueCounts, QueueStatusInputs},
    status::StatusStamp,
};
use jiff::Timestamp;
use runtime::watch::Key;

use super::{TrackedQueue, managed_quota::ManagedQuota};
use crate::control::{
    context::Context,
    key_map::KeyMap,
    measurement::{ClusterQueueGauges, LabelsAndAnnotations, Measurement, labels_and_annotations},
    outbox::{Intent, Purpose, Subject, Target, after},
    scheduling::Scheduler,
    timers::Reevaluation,
};

/// How long a status waits for a write in flight: when that ends is not known.
const IN_FLIGHT_RECHECK: Duration = Duration::from_millis(500);

/// One evaluation of a ClusterQueue's status and that of its LocalQueues.
pub(super) struct StatusPass<'a> {
    pub(super) name: &'a str,
    pub(super) scheduler: &'a Scheduler,
    pub(super) ctx: &'a mut Context,
    /// The least time between two writes of one queue's status.
    pub(super) period: Duration,
    /// Takes the Cohorts above the ClusterQueue if it is counted.
    pub(super) cohorts: &'a mut BTreeSet<String>,
    /// What its quota follows, if quotas follow workers.
    pub(super) quota: Option<&'a ManagedQuota>,
}

impl StatusPass<'_> {
    pub(super) fn run<'k>(
        mut self,
        cluster_queue: Option<&mut TrackedQueue<ClusterQueue>>,
        pointing: impl Iterator<Item = &'k Key> + Clone,
        local_queues: &mut KeyMap<Key, TrackedQueue<LocalQueue>>,
    ) {
        let own = Key { namespace: None, name: self.name.into() };
        if cluster_queue.is_none() {
            self.measure_gone(pointing.clone().filter_map(|key| local_queues.get(key)));
        }
        let own_wait =
            cluster_queue.as_ref().map(|queue| self.wait(queue, &own, Subject::ClusterQueue));
        let local = pointing.clone().filter_map(|key| Some((key, local_queues.get(key)?)));
        let local_waits = local.map(|(key, queue)| self.wait(queue, key, Subject::LocalQueue));
        // While no queue may be written, nothing is counted.
        // `None`, writable now, is less than any time.
        match own_wait.into_iter().chain(local_waits).min() {
            None => return,
            Some(Some(at)) => return self.ctx.agenda.at(at, self.waiter()),
            Some(None) => {}
        }
        let counts = self.scheduler.counts(self.name);
        let objects = pointing.clone().filter_map(|key| local_queues.get(key));
        let own_metadata = cluster_queue
            .as_ref()
            .map(|one| labels_and_annotations(&one.tracked.object().metadata));
        self.measure(own_metadata.unwrap_or_default(), objects, &counts);
        if let Some(queue) = cluster_queue {
            self.write_cluster_queue(queue, &own, &counts);
        }
        for key in pointing {
            if let Some(queue) = local_queues.get_mut(key) {
                self.write_local_queue(queue, key, &counts);
            }
        }
    }

    /// Without this the series of the ClusterQueue would stay at their last values. Its LocalQueues keep theirs.
    fn measure_gone<'q>(
        &mut self,
        local_queues: impl Iterator<Item = &'q TrackedQueue<LocalQueue>>,
    ) {
        let counts = ClusterQueueCounts::default();
        let local = local_queues
            .filter_map(|queue| self.scheduler.local_queue_gauges(queue.tracked.object(), &counts));
        let gone = Measurement::ClusterQueueGone(self.name.to_owned(), local.collect());
        self.ctx.measurements.push(gone);
    }

    fn measure<'q>(
        &mut self,
        metadata: LabelsAndAnnotations,
        local_queues: impl Iterator<Item = &'q TrackedQueue<LocalQueue>>,
        counts: &ClusterQueueCounts,
    ) {
        let Some(gauges) = self.scheduler.queue_gauges(self.name, counts) else {
            return;
        };
        self.cohorts.extend(gauges.cohorts.iter().cloned());
        let local = local_queues
            .filter_map(|queue| self.scheduler.local_queue_gauges(queue.tracked.object(), counts));
        let local = local.collect();
        let gauges = ClusterQueueGauges { metadata, ..gauges };
        self.ctx.measurements.push(Measurement::ClusterQueue(Box::new(gauges), local));
    }

    fn write_cluster_queue(
        &mut self,
        queue: &mut TrackedQueue<ClusterQueue>,
        key: &Key,
        counts: &ClusterQueueCounts,
    ) {
        let object = queue.tracked.object().clone();
        let (before, at) = (&object.status, self.at(object.metadata.generation));
        let share = self.scheduler.queue_share(self.name);
        let status = self.inputs(counts, at).cluster_queue(self.name, share, before);
        let Some(mut status) = status else { return };
        if let Some(quota) = self.quota {
            quota.set_condition(&mut status.conditions, at);
        }
        let intent = self.intent(queue, key, Subject::ClusterQueue, Purpose::ClusterQueueStatus);
        self.write(queue, intent, |ctx, intent| {
            ctx.outbox.submit_status::<ClusterQueue, _>(intent, before, &status)
        });
    }

    fn write_local_queue(
        &mut self,
        queue: &mut TrackedQueue<LocalQueue>,
        key: &Key,
        counts: &ClusterQueueCounts,
    ) {
        let object = queue.tracked.object().clone();
        let (before, at) = (&object.status, self.at(object.metadata.generation));
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let usage = self.scheduler.usage_record(key);
        let status = self.inputs(counts, at).local_queue(namespace, &key.name, usage, before);
        let Some(status) = status else { return };
        let intent = self.intent(queue, key, Subject::LocalQueue, Purpose::LocalQueueStatus);
        self.write(queue, intent, |ctx, intent| {
            ctx.outbox.submit_status::<LocalQueue, _>(intent, before, &status)
        });
    }

    fn inputs<'c>(
        &'c self,
        counts: &'c ClusterQueueCounts,
        at: StatusStamp,
    ) -> QueueStatusInputs<'c> {
        let (index, names) = (self.scheduler.index(), self.scheduler.names());
        QueueStatusInputs { index, names, counts, at }
    }

    /// Submits a write if the queue may be written, else waits.
    fn write<K: kube::Resource>(
        &mut self,
        queue: &mut TrackedQueue<K>,
        intent: Intent,
        submit: impl FnOnce(&mut Context, Intent) -> bool,
    ) {
        let subject = intent.target.subject.clone();
        if let Some(at) = self.wait(queue, &intent.target.key, subject) {
            return self.ctx.agenda.at(at, self.waiter());
        }
        if submit(self.ctx, intent) {
            queue.not_before = after(self.ctx.now, self.period);
        }
    }

    /// When the status may be written; `None` if that is now.
    fn wait<K: kube::Resource>(
        &self,
        queue: &TrackedQueue<K>,
        key: &Key,
        subject: Subject,
    ) -> Option<Timestamp> {
        let now = self.ctx.now;
        let (target, stamp) = (Target::home(subject, key), queue.tracked.stamp());
        let kept_back = queue.kept_back(now, self.period);
        let waits = kept_back.is_some() || !self.ctx.outbox.writes().is_free(&target, &stamp, now);
        waits.then(|| after(now, IN_FLIGHT_RECHECK).max(kept_back.unwrap_or(now)))
    }

    fn intent<K: kube::Resource>(
        &self,
        queue: &TrackedQueue<K>,
        key: &Key,
        subject: Subject,
        purpose: Purpose,
    ) -> Intent {
        let target = Target::home(subject, key);
        Intent { target, purpose, base: queue.tracked.stamp(), waiter: self.waiter() }
    }

    fn waiter(&self) -> Reevaluation {
        Reevaluation::Queue(self.name.into())
    }

    fn at(&self, generation: Option<i64>) -> StatusStamp {
        StatusStamp { now: self.ctx.now, generation: generation.unwrap_or_default() }
    }
}
