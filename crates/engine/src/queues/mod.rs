//! The waiting Workloads of a ClusterQueue. Source: docs/reference/kueue.md §3.

mod bucket;
pub(crate) mod heap;
pub(crate) mod line;
pub(crate) mod priorities;
pub(crate) mod table;
