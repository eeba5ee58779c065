//! Copies of Workloads that the hub does not have, and the incarnation by which the hub knows its own.
//!
//! | file | concept |
//! |---|---|
//! | `incarnation` | the hub's incarnation and the term of its leader |
//! | `orphan_cleanup` | copies on workers without a Workload on the hub |
//! | `breaker` | when their deletion waits for a user |
//! | `disputed_copies` | what the check of a Workload says about that |

pub(super) mod breaker;
pub(super) mod disputed_copies;
pub(super) mod incarnation;
pub(super) mod orphan_cleanup;
