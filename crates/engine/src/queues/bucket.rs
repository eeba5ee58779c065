//! A bucket: Workloads of one shape in the line of a queue, oldest first.
//!
//! Whoever leaves it before its turn leaves its ticket behind, which is dropped when it comes to the top.

use crate::ids::{NamespaceId, ShapeId, WorkloadId};
use crate::queues::heap::Heap;
use crate::time::Time;
use crate::workload::{Place, Workloads};

/// A place in a bucket. It is dead once the Workload's own ticket number has moved on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    pub(super) time: Time,
    pub(super) workload: WorkloadId,
    pub(super) number: u32,
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    pub(super) shape: ShapeId,
    pub(super) priority: i64,
    pub(super) tickets: Heap<Ticket>,
    pub(super) live: u32,
    pub(super) parked: bool,
    /// Somebody of the shape was evaluated and refused, under the present configuration.
    pub(super) refused: bool,
    /// The namespace of all who came since nobody was here; `None` if they came from several.
    pub(super) namespace: Option<NamespaceId>,
}

impl Bucket {
    /// An empty one.
    pub(super) fn new(shape: ShapeId, priority: i64) -> Self {
        let (tickets, live) = (Heap::default(), 0);
        Self { shape, priority, tickets, live, parked: false, refused: false, namespace: None }
    }
}

pub(super) fn is_live(ticket: &Ticket, workloads: &Workloads) -> bool {
    workloads.get(ticket.workload).is_some_and(|workload| {
        workload.ticket == ticket.number && matches!(workload.place, Place::InLine { .. })
    })
}

pub(super) fn older(left: Ticket, right: Ticket, workloads: &Workloads) -> bool {
    let uid = |ticket: Ticket| workloads.get(ticket.workload).map(|workload| &workload.uid);
    left.time.cmp(&right.time).then_with(|| uid(left).cmp(&uid(right))).is_lt()
}

pub(super) fn goes_first(buckets: &[Bucket], left: u32, right: u32, workloads: &Workloads) -> bool {
    let (left, right) = (&buckets[left as usize], &buckets[right as usize]);
    if left.priority != right.priority {
        return left.priority > right.priority;
    }
    match (left.tickets.peek(), right.tickets.peek()) {
        (Some(left), Some(right)) => older(left, right, workloads),
        (left, _) => left.is_some(),
    }
}
