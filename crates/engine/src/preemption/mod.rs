//! Preemption: which Workloads to evict so that a request fits.
//!
//! [`classical`] goes by priority and ownership of quota, [`fair`] by shares; [`candidates`] applies the policies.
//! Both remove candidates until the request fits, and then put back those that are not needed. Usage is restored
//! afterwards. Source: docs/reference/kueue.md §4.9, §4.10.

pub(crate) mod candidate_pool;
pub(crate) mod candidates;
pub(crate) mod classical;
pub(crate) mod fair;
pub(crate) mod fit;
pub(crate) mod request;
pub(crate) mod scratch;
pub(crate) mod search;
pub(crate) mod simulation;
pub(crate) mod tables;
pub(crate) mod target;
