//! The waiting Workloads of a ClusterQueue. Source: spec/kueue-core.md §3.

pub(crate) mod heap;
pub(crate) mod line;
pub(crate) mod table;
