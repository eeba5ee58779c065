//! `sluice.dev/v1alpha1`: what a worker reports and how the manager chooses among workers (docs/reference/dispatch.md §2–3).

mod cluster_capacity;
mod dispatch_policy;

pub use self::{cluster_capacity::*, dispatch_policy::*};
