//! ClusterQueues and their pending Workloads. Source: docs/reference/kueue.md §3.

pub(crate) mod class_bucket;
pub(crate) mod cluster_queue;
pub(crate) mod head_list;
pub(crate) mod heap;
pub(crate) mod pending_queue;
pub(crate) mod priority_counts;
pub(crate) mod requeue_requests;
pub(crate) mod table;
