//! The pending queue of one ClusterQueue: active and inadmissible Workloads.
//!
//! Workloads of one equivalence class (same requests, same priority) share a [`ClassBucket`], oldest first; a heap
//! orders the active buckets by their heads. A refusal makes a whole bucket inadmissible in O(log classes), and a new
//! Workload of the class enters the inadmissible bucket. Workloads that are older than the refused ones, if this matters, and one
//! that is active when its class changes to an inadmissible one, stay active in a `detached` bucket until they are evaluated.
//! Single inadmissible Workloads (backoff, namespace mismatch) are kept in `inadmissible`. Source: docs/reference/kueue.md §3.1,
//! §3.2, §3.4, §3.5.
//!
//! Invariants: the top of every bucket is live; a bucket is in the heap iff it is active and not empty; a class has at most one
//! detached bucket, which is active.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use crate::admission_fair_sharing::FairSharingUsage;
use crate::dense_table::DenseTable;
use crate::ids::{BucketId, EquivalenceClassId, LocalQueueId, WorkloadId};
use crate::queues::class_bucket::{ClassBucket, QueueTicket, goes_first, is_live, older};
use crate::queues::heap::IndexHeap;
use crate::time::Time;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::{QueuePosition, WorkloadRecord};

/// The pending Workloads of one ClusterQueue.
#[derive(Debug, Default, Clone)]
pub(crate) struct PendingQueue {
    buckets: DenseTable<BucketId, ClassBucket>,
    free: Vec<BucketId>,
    /// The bucket of each class that new Workloads enter.
    by_class: HashMap<EquivalenceClassId, BucketId>,
    /// Further buckets: active Workloads of a class that is or was inadmissible.
    detached: Vec<BucketId>,
    order: IndexHeap<BucketId>,
    inadmissible: Vec<WorkloadId>,
    inadmissible_buckets: Vec<BucketId>,
    /// The head that waits for its preemption targets.
    preemptor: Option<WorkloadId>,
    /// The preemptor stays first, whatever is added (BestEffortFIFO).
    sticky: bool,
    /// The preemptor's requests changed since its targets were found.
    altered: bool,
    /// A refusal was predicted since refusals were forgotten last: messages may show old numbers.
    predicted: bool,
    /// The configuration changed since the last requeue: the placer may be asked for something else.
    reconfigured: bool,
    /// Usage of LocalQueues if the ClusterQueue has admission fair sharing. It goes before every other key.
    shares: Option<BTreeMap<LocalQueueId, FairSharingUsage>>,
}

impl PendingQueue {
    /// Adds a Workload to its class. It is inadmissible if the class is inadmissible for it.
    pub(crate) fn push(&mut self, id: WorkloadId, workloads: &mut WorkloadLayer) {
        let workload = workloads.at(id);
        let (class, priority, time) = (workload.class, workload.priority, workload.queued_at);
        let mut index = self.bucket_of(class, priority);
        let bucket = &self.buckets[index];
        if bucket.inadmissible && !bucket.refuses(time) {
            index = self.detached_of(class, priority);
        }
        self.enter(index, id, workloads);
    }

    /// Adds a Workload as active even if its class is inadmissible.
    pub(crate) fn push_active(&mut self, id: WorkloadId, workloads: &mut WorkloadLayer) {
        let (class, priority) = (workloads.at(id).class, workloads.at(id).priority);
        let mut index = self.bucket_of(class, priority);
        // The class stays inadmissible for its other Workloads.
        if self.buckets[index].inadmissible {
            index = self.detached_of(class, priority);
        }
        self.enter(index, id, workloads);
    }

    fn enter(&mut self, index: BucketId, id: WorkloadId, workloads: &mut WorkloadLayer) {
        let workload =
            workloads.set_position_with_ticket(id, QueuePosition::Pending { bucket: index });
        let (ticket, namespace) = (QueueTicket::new(id, workload), workload.namespace);
        let bucket = &mut self.buckets[index];
        // Requeues check the namespace once for a whole bucket if it has only one.
        let alike = bucket.live == 0 || bucket.namespace == Some(namespace);
        bucket.namespace = alike.then_some(namespace);
        bucket.tickets.push(ticket, |a, b| older(a, b, workloads));
        bucket.live += 1;
        self.settle(index, workloads);
    }

    /// Adds a single inadmissible Workload.
    pub(crate) fn push_inadmissible(&mut self, id: WorkloadId, workloads: &mut WorkloadLayer) {
        let index =
            u32::try_from(self.inadmissible.len()).expect("invariant: fewer than 2^32 Workloads");
        workloads.set_position(id, QueuePosition::Inadmissible { index });
        self.inadmissible.push(id);
    }

    /// Removes a Workload, active or inadmissible.
    pub(crate) fn remove(&mut self, id: WorkloadId, workloads: &mut WorkloadLayer) {
        match workloads.set_position(id, QueuePosition::NotQueued) {
            QueuePosition::Pending { bucket } => {
                self.buckets[bucket].live -= 1;
                self.drop_dead(bucket, workloads);
                self.settle(bucket, workloads);
            }
            QueuePosition::Inadmissible { index } => {
                self.inadmissible.swap_remove(index as usize);
                // The last one was moved to the free position.
                if let Some(&moved) = self.inadmissible.get(index as usize) {
                    workloads.set_position(moved, QueuePosition::Inadmissible { index });
                }
            }
            QueuePosition::NotQueued | QueuePosition::Reserving { .. } => {}
        }
    }

    /// The first active Workload.
    pub(crate) fn head(&self, workloads: &WorkloadLayer) -> Option<WorkloadId> {
        if self.shares.is_some() {
            // Usage may change at any time, so no heap is kept in its order.
            let all = self.live_tickets(false, workloads).into_iter();
            return all.min_by(|&left, &right| self.order(left, right, workloads));
        }
        // Only BestEffortFIFO keeps its preemptor first; under StrictFIFO the queue order decides
        // (§3.4).
        if let Some(sticky) = self.preemptor.filter(|_| self.sticky)
            && let QueuePosition::Pending { bucket } = workloads.at(sticky).position
            && !self.buckets[bucket].inadmissible
        {
            return Some(sticky);
        }
        let first = self.order.peek()?;
        self.buckets[first].tickets.peek().map(|ticket| ticket.workload)
    }

    /// Whether the ClusterQueue has admission fair sharing.
    pub(crate) fn has_fair_sharing(&self) -> bool {
        self.shares.is_some()
    }

    /// Switches admission fair sharing on or off.
    pub(crate) fn use_fair_sharing(&mut self, yes: bool) {
        self.shares = yes.then(BTreeMap::new);
    }

    /// Sets the usage of a LocalQueue.
    pub(crate) fn set_usage(&mut self, id: LocalQueueId, share: FairSharingUsage) {
        if let Some(shares) = &mut self.shares {
            shares.insert(id, share);
        }
    }

    /// The usage of a Workload's LocalQueue; zero without admission fair sharing.
    pub(crate) fn share(&self, workload: &WorkloadRecord) -> FairSharingUsage {
        let known = self.shares.as_ref().zip(workload.local_queue);
        known.and_then(|(shares, id)| shares.get(&id)).copied().unwrap_or_default()
    }

    /// Whether there is an active Workload.
    pub(crate) fn has_head(&self) -> bool {
        self.order.peek().is_some()
    }

    /// Marks the head that waits for its preemption targets. A sticky one stays first.
    pub(crate) fn set_preemptor(&mut self, id: WorkloadId, sticky: bool) {
        (self.preemptor, self.sticky, self.altered) = (Some(id), sticky, false);
    }

    /// Whether a Workload is active: it is evaluated without a requeue.
    pub(crate) fn is_active(&self, workload: &WorkloadRecord) -> bool {
        matches!(workload.position, QueuePosition::Pending { bucket } if !self.buckets[bucket].inadmissible)
    }

    /// Removes the preemptor mark if `id` has it.
    pub(crate) fn clear_preemptor(&mut self, id: WorkloadId) {
        if self.preemptor == Some(id) {
            self.preemptor = None;
        }
    }

    /// Removes the preemptor mark.
    pub(crate) fn forget_preemptor(&mut self) {
        self.preemptor = None;
    }

    /// Notes that the requests of `id` changed, if it is the preemptor.
    pub(crate) fn alter_preemptor(&mut self, id: WorkloadId) {
        self.altered |= self.preemptor == Some(id);
    }

    /// Whether `id` is the preemptor and its requests are those that its targets were found for.
    pub(crate) fn is_unaltered_preemptor(&self, id: WorkloadId) -> bool {
        self.is_preemptor(id) && !self.altered
    }

    /// Whether `id` is the preemptor.
    pub(crate) fn is_preemptor(&self, id: WorkloadId) -> bool {
        self.preemptor == Some(id)
    }

    /// Makes the equivalence class of `id` inadmissible: for Workloads that are queued at `from` or later, or for all.
    pub(crate) fn mark_class_inadmissible(
        &mut self,
        id: WorkloadId,
        from: Option<Time>,
        workloads: &mut WorkloadLayer,
    ) {
        let (class, priority) = (workloads.at(id).class, workloads.at(id).priority);
        let index = self.bucket_of(class, priority);
        self.mark_bucket_inadmissible(index, from, workloads);
        while let Some(older) = self.buckets[index].older_than_refused() {
            self.remove(older, workloads);
            self.push(older, workloads);
        }
        // A refusal concerns the detached Workloads of the class, too (§3.5).
        for refused in self.refused_detached(index, workloads) {
            self.remove(refused, workloads);
            self.push(refused, workloads);
        }
    }

    fn mark_bucket_inadmissible(
        &mut self,
        index: BucketId,
        from: Option<Time>,
        workloads: &mut WorkloadLayer,
    ) {
        let bucket = &mut self.buckets[index];
        bucket.refused = true;
        if std::mem::replace(&mut bucket.inadmissible, true) {
            bucket.refused_from = bucket.refused_from.min(from);
            return;
        }
        bucket.refused_from = from;
        // The bucket outlives its last Workload, and its class must not be reused meanwhile.
        workloads.retain_class(bucket.class);
        self.inadmissible_buckets.push(index);
        self.settle(index, workloads);
    }

    /// Workloads in detached buckets for which their class is inadmissible. `index` is the bucket of the class.
    fn refused_detached(&self, index: BucketId, workloads: &WorkloadLayer) -> Vec<WorkloadId> {
        let of_class = &self.buckets[index];
        let detached = self.detached.iter().map(|&one| &self.buckets[one]);
        let detached = detached.filter(|bucket| bucket.class == of_class.class);
        let tickets = detached.flat_map(|bucket| bucket.tickets.items());
        let live = tickets.filter(|ticket| is_live(ticket, workloads));
        let ids = live.map(|ticket| ticket.workload);
        ids.filter(|&id| of_class.refuses(workloads.at(id).queued_at)).collect()
    }

    /// Notes that a refusal was predicted and not evaluated.
    pub(crate) fn note_prediction(&mut self) {
        self.predicted = true;
    }

    /// Whether a refusal was predicted since refusals were forgotten last.
    pub(crate) fn has_predictions(&self) -> bool {
        self.predicted
    }

    /// Whether the class of an active Workload was refused under the present configuration.
    pub(crate) fn is_refused(&self, workload: &WorkloadRecord) -> bool {
        matches!(workload.position, QueuePosition::Pending { bucket } if self.buckets[bucket].refused)
    }

    /// Forgets refusals after a change of quotas or flavors: all classes are evaluated again.
    pub(crate) fn forget_refused(&mut self) {
        self.predicted = false;
        self.buckets.rows_mut().for_each(|bucket| bucket.refused = false);
    }

    /// Notes a change of the configuration: the next requeue includes Workloads that wait for cluster capacity.
    pub(crate) fn note_configuration(&mut self) {
        self.reconfigured = true;
    }

    /// Whether the configuration changed since the last call.
    pub(crate) fn take_reconfigured(&mut self) -> bool {
        std::mem::take(&mut self.reconfigured)
    }

    /// Requeues inadmissible classes, and single Workloads for which `may` holds. With `selects_namespaces`, Workloads of a
    /// class for which `may` does not hold become single inadmissible ones. Returns the number of classes and single Workloads
    /// visited.
    pub(crate) fn requeue_inadmissible(
        &mut self,
        workloads: &mut WorkloadLayer,
        selects_namespaces: bool,
        may: impl Fn(&WorkloadRecord) -> bool,
    ) -> usize {
        let all = self.inadmissible_buckets.len() + self.inadmissible.len();
        while let Some(index) = self.inadmissible_buckets.pop() {
            let bucket = &mut self.buckets[index];
            bucket.inadmissible = false;
            workloads.release_class(bucket.class);
            self.settle(index, workloads);
            // The labels of a namespace may have changed since its Workloads became inadmissible
            // (§3.6).
            if selects_namespaces {
                self.split_off(index, workloads, &may);
            }
        }
        let mut at = 0;
        while let Some(&id) = self.inadmissible.get(at) {
            // Removing a Workload moves the last one to `at`, which is visited next.
            if may(workloads.at(id)) {
                self.remove(id, workloads);
                self.push(id, workloads);
            } else {
                at += 1;
            }
        }
        all
    }

    /// Makes Workloads of a bucket inadmissible for which `may` does not hold. One check suffices if they share a
    /// namespace.
    fn split_off(
        &mut self,
        index: BucketId,
        workloads: &mut WorkloadLayer,
        may: impl Fn(&WorkloadRecord) -> bool,
    ) {
        let bucket = &self.buckets[index];
        // An empty bucket has no namespace to check.
        let Some(first) = bucket.tickets.peek() else { return };
        if bucket.namespace.is_some() && may(workloads.at(first.workload)) {
            return;
        }
        let tickets = bucket.tickets.items().iter().filter(|ticket| is_live(ticket, workloads));
        let ids = tickets.map(|ticket| ticket.workload);
        let ids: Vec<WorkloadId> = ids.filter(|&id| !may(workloads.at(id))).collect();
        for id in ids {
            self.remove(id, workloads);
            self.push_inadmissible(id, workloads);
        }
    }

    /// Active Workloads in queue order.
    pub(crate) fn active(&self, workloads: &WorkloadLayer) -> Vec<WorkloadId> {
        let mut ids = self.live_tickets(false, workloads);
        self.sort(&mut ids, workloads);
        ids
    }

    /// Inadmissible Workloads in queue order.
    pub(crate) fn inadmissible(&self, workloads: &WorkloadLayer) -> Vec<WorkloadId> {
        let mut ids = self.live_tickets(true, workloads);
        ids.extend(&self.inadmissible);
        self.sort(&mut ids, workloads);
        ids
    }

    fn live_tickets(&self, inadmissible: bool, workloads: &WorkloadLayer) -> Vec<WorkloadId> {
        let buckets = self.buckets.rows().filter(|bucket| bucket.inadmissible == inadmissible);
        let tickets = buckets.flat_map(|bucket| bucket.tickets.items());
        tickets.filter(|ticket| is_live(ticket, workloads)).map(|ticket| ticket.workload).collect()
    }

    fn sort(&self, ids: &mut [WorkloadId], workloads: &WorkloadLayer) {
        ids.sort_by(|&left, &right| self.order(left, right, workloads));
    }

    /// The queue order.
    fn order(&self, left: WorkloadId, right: WorkloadId, workloads: &WorkloadLayer) -> Ordering {
        let stays = |id| self.sticky && self.preemptor == Some(id);
        let sticky = stays(right).cmp(&stays(left));
        let (left, right) = (workloads.at(left), workloads.at(right));
        let used = self.share(left).cmp(&self.share(right));
        // Usage of the LocalQueue precedes even a sticky preemptor (§3.2).
        used.then(sticky)
            .then(right.priority.cmp(&left.priority))
            .then(left.queued_at.cmp(&right.queued_at))
            .then(left.uid.cmp(&right.uid))
    }

    fn bucket_of(&mut self, class: EquivalenceClassId, priority: i64) -> BucketId {
        if let Some(&index) = self.by_class.get(&class) {
            return index;
        }
        let index = self.new_bucket(class, priority);
        self.by_class.insert(class, index);
        index
    }

    /// The bucket of the active Workloads of a class that is inadmissible.
    fn detached_of(&mut self, class: EquivalenceClassId, priority: i64) -> BucketId {
        let mut detached = self.detached.iter();
        if let Some(&index) = detached.find(|&&index| self.buckets[index].class == class) {
            return index;
        }
        let index = self.new_bucket(class, priority);
        self.detached.push(index);
        index
    }

    fn new_bucket(&mut self, class: EquivalenceClassId, priority: i64) -> BucketId {
        if let Some(index) = self.free.pop() {
            let bucket = &mut self.buckets[index];
            (bucket.class, bucket.priority, bucket.refused) = (class, priority, false);
            return index;
        }
        self.buckets.push(ClassBucket::new(class, priority))
    }

    fn drop_dead(&mut self, index: BucketId, workloads: &WorkloadLayer) {
        let tickets = &mut self.buckets[index].tickets;
        while tickets.peek().is_some_and(|top| !is_live(&top, workloads)) {
            tickets.pop(|a, b| older(a, b, workloads));
        }
    }

    /// Restores the invariants after a change of a bucket.
    fn settle(&mut self, index: BucketId, workloads: &WorkloadLayer) {
        let bucket = &mut self.buckets[index];
        if bucket.live > 0 && !bucket.inadmissible {
            let buckets = &self.buckets;
            self.order.settle(index, |a, b| goes_first(buckets, a, b, workloads));
            return;
        }
        let (empty, inadmissible) = (bucket.live == 0, bucket.inadmissible);
        // Only dead tickets are left.
        if empty {
            bucket.tickets.clear();
        }
        let buckets = &self.buckets;
        self.order.remove(index, |a, b| goes_first(buckets, a, b, workloads));
        // An empty inadmissible bucket stays, so that new Workloads of its class become
        // inadmissible (§3.5).
        if empty && !inadmissible && self.forget(index) {
            self.free.push(index);
        }
    }

    /// Unlinks a bucket from its class. Returns false if it was not linked.
    fn forget(&mut self, index: BucketId) -> bool {
        let class = self.buckets[index].class;
        if self.by_class.get(&class) == Some(&index) {
            return self.by_class.remove(&class).is_some();
        }
        let stray = self.detached.iter().position(|&one| one == index);
        stray.map(|at| self.detached.swap_remove(at)).is_some()
    }
}
