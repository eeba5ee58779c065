//! A bucket: the pending Workloads of one equivalence class in one ClusterQueue, oldest first.
//!
//! A Workload that leaves the bucket leaves its ticket behind; the ticket is dropped when it reaches the top. Until
//! then it is compared with others, so a ticket carries its own sort key, independent of its Workload.

use crate::dense_table::DenseTable;
use crate::ids::{BucketId, EquivalenceClassId, NamespaceId, WorkloadId};
use crate::queues::heap::Heap;
use crate::time::Time;
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::{QueuePosition, WorkloadRecord};

/// The position of a Workload in a bucket. It is dead if the Workload has another ticket number or is not pending.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueTicket {
    time: Time,
    /// The first bytes of the uid: enough to tell apart all uids that the API server creates.
    uid: u128,
    pub(super) workload: WorkloadId,
    number: u32,
}

impl QueueTicket {
    pub(super) fn new(workload: WorkloadId, one: &WorkloadRecord) -> Self {
        let (time, uid, number) = (one.queued_at, beginning(&one.uid), one.ticket);
        Self { time, uid, workload, number }
    }
}

/// The first 16 bytes of a text as a number with the same order.
fn beginning(text: &str) -> u128 {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    u128::from_be_bytes(bytes)
}

/// The bucket of one equivalence class.
#[derive(Debug, Clone)]
pub(super) struct ClassBucket {
    pub(super) class: EquivalenceClassId,
    pub(super) priority: i64,
    pub(super) tickets: Heap<QueueTicket>,
    pub(super) live: u32,
    pub(super) inadmissible: bool,
    /// The class is inadmissible for Workloads that are queued at this time or later; `None` for all.
    pub(super) refused_from: Option<Time>,
    /// A Workload of the class was evaluated and refused under the present configuration.
    pub(super) refused: bool,
    /// The namespace of all Workloads added since the bucket was empty; `None` if there are several.
    pub(super) namespace: Option<NamespaceId>,
}

impl ClassBucket {
    /// An empty bucket.
    pub(super) fn new(class: EquivalenceClassId, priority: i64) -> Self {
        let (tickets, live) = (Heap::default(), 0);
        Self {
            class,
            priority,
            tickets,
            live,
            inadmissible: false,
            refused_from: None,
            refused: false,
            namespace: None,
        }
    }

    /// Whether the class is inadmissible for a Workload that is queued at `time`.
    pub(super) fn refuses(&self, time: Time) -> bool {
        // `None` is less than any time.
        self.inadmissible && self.refused_from <= Some(time)
    }

    /// The oldest Workload if the class is inadmissible, but not for this one.
    pub(super) fn older_than_refused(&self) -> Option<WorkloadId> {
        let top = self.tickets.peek().filter(|_| self.inadmissible)?;
        (!self.refuses(top.time)).then_some(top.workload)
    }
}

pub(super) fn is_live(ticket: &QueueTicket, workloads: &WorkloadLayer) -> bool {
    workloads.get(ticket.workload).is_some_and(|workload| {
        workload.ticket == ticket.number
            && matches!(workload.position, QueuePosition::Pending { .. })
    })
}

pub(super) fn older(left: QueueTicket, right: QueueTicket, workloads: &WorkloadLayer) -> bool {
    let rest = |ticket: QueueTicket| workloads.get(ticket.workload).map(|workload| &workload.uid);
    let order = (left.time, left.uid).cmp(&(right.time, right.uid));
    // Longer uids may share the bytes that a ticket carries.
    order.then_with(|| rest(left).cmp(&rest(right))).is_lt()
}

pub(super) fn goes_first(
    buckets: &DenseTable<BucketId, ClassBucket>,
    left: BucketId,
    right: BucketId,
    workloads: &WorkloadLayer,
) -> bool {
    let (left, right) = (&buckets[left], &buckets[right]);
    // Priority is the same for a whole class, so it is compared before any ticket is read.
    if left.priority != right.priority {
        return left.priority > right.priority;
    }
    match (left.tickets.peek(), right.tickets.peek()) {
        (Some(left), Some(right)) => older(left, right, workloads),
        (left, _) => left.is_some(),
    }
}
