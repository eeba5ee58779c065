//! `sluice.dev/v1alpha1`: the capacity reports of workers, and dispatch policies (docs/reference/dispatch.md §2–3).

mod cluster_capacity;
mod dispatch_policy;

pub use self::{cluster_capacity::*, dispatch_policy::*};
