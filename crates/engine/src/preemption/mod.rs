//! Preemption: whom to evict so that a Workload fits.
//!
//! [`classical`] follows priorities and ownership of quota, [`fair`] follows shares; [`candidates`] knows the policies
//! and the order. Both remove candidates until the request fits and then put back whoever was not needed. Everything
//! happens inside a what-if. Source: docs/reference/kueue.md §4.9, §4.10.

pub(crate) mod candidate_pool;
pub(crate) mod candidates;
pub(crate) mod classical;
pub(crate) mod fair;
pub(crate) mod fit;
pub(crate) mod request;
pub(crate) mod scratch;
pub(crate) mod search;
pub(crate) mod simulation;
pub(crate) mod target;
