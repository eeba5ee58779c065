//! The line of one ClusterQueue: who is next, and who has stepped aside.
//!
//! Workloads of one shape (same requests, same priority) stand in one [`Bucket`], oldest first; a heap orders the
//! buckets by their heads. One verdict about a shape parks its whole bucket in O(log shapes), and a newcomer of a
//! parked shape lands in the parked bucket by itself. Workloads that step aside alone (backoff, wrong namespace) are
//! `aside`. Source: spec/kueue-core.md §3.1, §3.2, §3.4, §3.5.
//!
//! Invariants: the top of every bucket is live; a bucket is in the heap iff it is not parked and not empty.

use std::collections::HashMap;

use crate::ids::{ShapeId, WorkloadId};
use crate::queues::heap::{Heap, IndexHeap};
use crate::time::Time;
use crate::workload::{Place, Workload, Workloads};

/// A place in a bucket. It is dead once the Workload's own ticket number has moved on.
#[derive(Debug, Clone, Copy)]
struct Ticket {
    time: Time,
    workload: WorkloadId,
    number: u32,
}

#[derive(Debug, Clone)]
struct Bucket {
    shape: ShapeId,
    priority: i64,
    tickets: Heap<Ticket>,
    live: u32,
    parked: bool,
}

/// See the module.
#[derive(Debug, Default, Clone)]
pub(crate) struct Line {
    buckets: Vec<Bucket>,
    free: Vec<u32>,
    by_shape: HashMap<ShapeId, u32>,
    order: IndexHeap,
    aside: Vec<WorkloadId>,
    parked_buckets: Vec<u32>,
    /// The head that waits for its victims.
    preemptor: Option<WorkloadId>,
    /// It stays first, whoever comes.
    sticky: bool,
}

impl Line {
    /// Queues a Workload behind its equals. It waits inadmissible if its shape is parked.
    pub(crate) fn push(&mut self, id: WorkloadId, workloads: &mut Workloads) {
        let number = workloads.stamp();
        let workload = workloads.at_mut(id);
        let (shape, priority, time) = (workload.shape, workload.priority, workload.queued_at);
        let index = self.bucket_of(shape, priority);
        workload.place = Place::InLine { bucket: index };
        workload.ticket = number;
        let ticket = Ticket { time, workload: id, number };
        let bucket = &mut self.buckets[index as usize];
        bucket.tickets.push(ticket, |a, b| older(a, b, workloads));
        bucket.live += 1;
        self.settle(index, workloads);
    }

    /// Sets a Workload aside, alone.
    pub(crate) fn set_aside(&mut self, id: WorkloadId, workloads: &mut Workloads) {
        let place = u32::try_from(self.aside.len()).expect("invariant: fewer than 2^32 Workloads");
        workloads.at_mut(id).place = Place::Aside { place };
        self.aside.push(id);
    }

    /// Takes a Workload out, wherever it stands.
    pub(crate) fn remove(&mut self, id: WorkloadId, workloads: &mut Workloads) {
        let workload = workloads.at_mut(id);
        let place = std::mem::replace(&mut workload.place, Place::Out);
        match place {
            Place::InLine { bucket } => {
                self.buckets[bucket as usize].live -= 1;
                self.drop_dead(bucket, workloads);
                self.settle(bucket, workloads);
            }
            Place::Aside { place } => {
                self.aside.swap_remove(place as usize);
                if let Some(&moved) = self.aside.get(place as usize) {
                    workloads.at_mut(moved).place = Place::Aside { place };
                }
            }
            Place::Out | Place::Holding { .. } => {}
        }
    }

    /// The Workload that is next.
    pub(crate) fn head(&self, workloads: &Workloads) -> Option<WorkloadId> {
        if let Some(sticky) = self.preemptor.filter(|_| self.sticky)
            && let Place::InLine { bucket } = workloads.at(sticky).place
            && !self.buckets[bucket as usize].parked
        {
            return Some(sticky);
        }
        let first = self.order.peek()?;
        self.buckets[first as usize].tickets.peek().map(|ticket| ticket.workload)
    }

    /// True when somebody is next.
    pub(crate) fn has_head(&self) -> bool {
        self.order.peek().is_some()
    }

    /// Marks the head that waits for its victims; a sticky one stays first meanwhile.
    pub(crate) fn set_preemptor(&mut self, id: WorkloadId, sticky: bool) {
        (self.preemptor, self.sticky) = (Some(id), sticky);
    }

    /// Ends the privilege of `id`, if it has one.
    pub(crate) fn clear_preemptor(&mut self, id: WorkloadId) {
        if self.preemptor == Some(id) {
            self.preemptor = None;
        }
    }

    /// Whether `id` waits for its victims.
    pub(crate) fn is_preemptor(&self, id: WorkloadId) -> bool {
        self.preemptor == Some(id)
    }

    /// Parks a whole shape. Returns false if it was parked already.
    pub(crate) fn park_shape(
        &mut self,
        shape: ShapeId,
        priority: i64,
        workloads: &Workloads,
    ) -> bool {
        let index = self.bucket_of(shape, priority);
        let bucket = &mut self.buckets[index as usize];
        if std::mem::replace(&mut bucket.parked, true) {
            return false;
        }
        self.parked_buckets.push(index);
        self.settle(index, workloads);
        true
    }

    /// Forgets all verdicts and lets everybody back in line for whom `may` holds. Returns the shapes that were parked.
    pub(crate) fn wake(
        &mut self,
        workloads: &mut Workloads,
        may: impl Fn(&Workload) -> bool,
        mut unparked: impl FnMut(ShapeId),
    ) {
        while let Some(index) = self.parked_buckets.pop() {
            let bucket = &mut self.buckets[index as usize];
            bucket.parked = false;
            unparked(bucket.shape);
            self.settle(index, workloads);
        }
        let mut at = 0;
        while let Some(&id) = self.aside.get(at) {
            if may(workloads.at(id)) {
                self.remove(id, workloads);
                self.push(id, workloads);
            } else {
                at += 1;
            }
        }
    }

    /// Active Workloads, in queue order.
    pub(crate) fn active(&self, workloads: &Workloads) -> Vec<WorkloadId> {
        let mut ids = self.live_tickets(false, workloads);
        self.sort(&mut ids, workloads);
        ids
    }

    /// Inadmissible Workloads, in queue order.
    pub(crate) fn inadmissible(&self, workloads: &Workloads) -> Vec<WorkloadId> {
        let mut ids = self.live_tickets(true, workloads);
        ids.extend(&self.aside);
        self.sort(&mut ids, workloads);
        ids
    }

    fn live_tickets(&self, parked: bool, workloads: &Workloads) -> Vec<WorkloadId> {
        let buckets = self.buckets.iter().filter(|bucket| bucket.parked == parked);
        let tickets = buckets.flat_map(|bucket| bucket.tickets.items());
        tickets.filter(|ticket| is_live(ticket, workloads)).map(|ticket| ticket.workload).collect()
    }

    fn sort(&self, ids: &mut [WorkloadId], workloads: &Workloads) {
        ids.sort_by(|&left, &right| {
            let stays = |id| self.sticky && self.preemptor == Some(id);
            let sticky = stays(right).cmp(&stays(left));
            let (left, right) = (workloads.at(left), workloads.at(right));
            sticky
                .then(right.priority.cmp(&left.priority))
                .then(left.queued_at.cmp(&right.queued_at))
                .then(left.uid.cmp(&right.uid))
        });
    }

    fn bucket_of(&mut self, shape: ShapeId, priority: i64) -> u32 {
        if let Some(&index) = self.by_shape.get(&shape) {
            return index;
        }
        let index = match self.free.pop() {
            Some(index) => {
                let bucket = &mut self.buckets[index as usize];
                (bucket.shape, bucket.priority) = (shape, priority);
                index
            }
            None => {
                let tickets = Heap::default();
                self.buckets.push(Bucket { shape, priority, tickets, live: 0, parked: false });
                u32::try_from(self.buckets.len() - 1).expect("invariant: fewer than 2^32 shapes")
            }
        };
        self.by_shape.insert(shape, index);
        index
    }

    fn drop_dead(&mut self, index: u32, workloads: &Workloads) {
        let tickets = &mut self.buckets[index as usize].tickets;
        while tickets.peek().is_some_and(|top| !is_live(&top, workloads)) {
            tickets.pop(|a, b| older(a, b, workloads));
        }
    }

    /// Restores the invariants of one bucket after a change.
    fn settle(&mut self, index: u32, workloads: &Workloads) {
        let bucket = &mut self.buckets[index as usize];
        if bucket.live > 0 && !bucket.parked {
            let buckets = &self.buckets;
            self.order.settle(index, |a, b| goes_first(buckets, a, b, workloads));
            return;
        }
        let (empty, parked) = (bucket.live == 0, bucket.parked);
        if empty {
            bucket.tickets.clear();
        }
        let buckets = &self.buckets;
        self.order.remove(index, |a, b| goes_first(buckets, a, b, workloads));
        if empty && !parked && self.by_shape.remove(&self.buckets[index as usize].shape).is_some() {
            self.free.push(index);
        }
    }
}

fn is_live(ticket: &Ticket, workloads: &Workloads) -> bool {
    workloads.get(ticket.workload).is_some_and(|workload| {
        workload.ticket == ticket.number && matches!(workload.place, Place::InLine { .. })
    })
}

fn older(left: Ticket, right: Ticket, workloads: &Workloads) -> bool {
    let uid = |ticket: Ticket| workloads.get(ticket.workload).map(|workload| &workload.uid);
    left.time.cmp(&right.time).then_with(|| uid(left).cmp(&uid(right))).is_lt()
}

fn goes_first(buckets: &[Bucket], left: u32, right: u32, workloads: &Workloads) -> bool {
    let (left, right) = (&buckets[left as usize], &buckets[right as usize]);
    if left.priority != right.priority {
        return left.priority > right.priority;
    }
    match (left.tickets.peek(), right.tickets.peek()) {
        (Some(left), Some(right)) => older(left, right, workloads),
        (left, _) => left.is_some(),
    }
}
