//! Typed, dense ids. Every table of the engine is an array indexed by one of these.
//!
//! Ids are handed out by [`crate::Names`] and are stable for the life of the engine. They carry no order of meaning:
//! whenever an order leaves the engine it is the order of names, times or uids, never of ids.

/// Declares a newtype index with conversions to and from `usize`.
macro_rules! dense_id {
    ($(#[$doc:meta])* $visibility:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility struct $name(pub u32);

        impl From<usize> for $name {
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).expect("invariant: fewer than 2^32 objects of a kind"))
            }
        }

        impl From<$name> for usize {
            fn from(id: $name) -> Self {
                id.0 as Self
            }
        }
    };
}

/// Declares a public id.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        dense_id!($(#[$doc])* pub $name);

        impl $name {
            /// The position in the table of this kind.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A resource name, such as `cpu`.
    ResourceId
);
id!(
    /// A ResourceFlavor.
    FlavorId
);
id!(
    /// A (flavor, resource) pair: the unit of quota.
    Slot
);
id!(
    /// A ClusterQueue.
    QueueId
);
id!(
    /// A node of the quota tree: the leaf of a ClusterQueue, or a cohort.
    NodeId
);
id!(
    /// A cohort, as [`crate::Names::cohorts`] numbers them.
    CohortId
);
id!(
    /// A LocalQueue.
    LocalQueueId
);
id!(
    /// A namespace.
    NamespaceId
);
id!(
    /// A Workload.
    WorkloadId
);
id!(
    /// An equivalence class: what a Workload requests, and its priority.
    EquivalenceClassId
);
dense_id!(
    /// A bucket of one pending queue.
    pub(crate) BucketId
);
id!(
    /// A Topology.
    TopologyId
);
id!(
    /// A Kubernetes node.
    TopologyNodeId
);
id!(
    /// A domain of one tree of a topology.
    DomainId
);
id!(
    /// An AdmissionCheck.
    CheckId
);
id!(
    /// A worker cluster, as the placer numbers them.
    ClusterId
);

/// What a refused Workload waits for; named by the placer, meaningless to the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequeueKey(pub u64);

/// The implicit resource of which every pod takes one. It is interned first.
pub(crate) const PODS: ResourceId = ResourceId(0);
