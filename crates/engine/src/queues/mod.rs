//! ClusterQueues and their pending Workloads. [`layer`] owns the data. Source: docs/reference/kueue.md §3.

mod class_bucket;
pub(crate) mod cluster_queue;
mod head_list;
pub(crate) mod heap;
pub(crate) mod layer;
pub(crate) mod pending_queue;
mod priority_counts;
mod requeue_requests;
mod table;
