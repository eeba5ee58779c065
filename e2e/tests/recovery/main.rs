//! `sluicectl dr rebuild`: the manager cluster is lost, and a new one takes the running work over (docs/reference/dispatch.md §11).

mod lost_hub;
mod other_kinds;
