//! What [`Control`](super::Control) wants done, and how it recognises the answer.

use kube::Resource;
use runtime::{
    watch::Key,
    write::{Write, WriteError, difference},
};
use serde::Serialize;
use serde_json::json;

use super::Purpose;

/// Where a write goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The cluster that the process belongs to.
    Home,
    /// A worker.
    Worker(Box<str>),
}

/// Which kind of object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A Workload.
    Workload,
    /// A Job.
    Job,
    /// A ClusterQueue.
    ClusterQueue,
    /// A ResourceFlavor.
    ResourceFlavor,
    /// A LocalQueue's status.
    LocalQueue,
    /// A MultiKueueCluster's status.
    MultiKueueCluster,
    /// An AdmissionCheck's status.
    AdmissionCheck,
    /// A ClusterCapacity.
    Capacity,
}

/// Recognises the answer to an order. At most one write of an object is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Where it went.
    pub to: Destination,
    /// What it is about.
    pub subject: Subject,
    /// Which object.
    pub key: Key,
    /// What it was for.
    pub purpose: Purpose,
    /// Of a write on a worker: the Workload that it is for.
    pub workload: Option<Key>,
}

/// A write to be sent.
#[derive(Debug)]
pub struct Order {
    /// Comes back with the answer.
    pub ticket: Ticket,
    /// The write.
    pub write: Write,
}

impl Ticket {
    /// For a write at home.
    pub(super) fn home(subject: Subject, key: &Key, purpose: Purpose) -> Self {
        Self { to: Destination::Home, subject, key: key.clone(), purpose, workload: None }
    }
}

impl Order {
    /// An order for a write; none, with a line in the log, if the write cannot be made.
    pub(super) fn of(
        ticket: Ticket,
        write: impl FnOnce(&'static str, &Key) -> Result<Write, WriteError>,
    ) -> Option<Self> {
        match write(ticket.purpose.name(), &ticket.key) {
            Ok(write) => Some(Self { ticket, write }),
            Err(error) => {
                tracing::error!(%error, "a decision cannot be written");
                None
            }
        }
    }

    /// Changes what differs between two states of a status; none if nothing does.
    pub(super) fn status<K, S>(ticket: Ticket, before: &S, after: &S) -> Option<Self>
    where
        K: Resource<DynamicType = ()>,
        S: Serialize,
    {
        let (before, after) = (json!({ "status": before }), json!({ "status": after }));
        let patch = difference(&before, &after)?;
        Self::of(ticket, |purpose, key| Write::merge::<K>(purpose, key, Some("status"), &patch))
    }
}
