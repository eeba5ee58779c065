//! Workloads that ask for ExactlyOnce themselves, whatever their policy says: workers need leases for them
//! (docs/reference/dispatch.md §3, §7).

use std::collections::BTreeSet;

use crds::{
    meta::annotation,
    names::{EXACTLY_ONCE, annotations::EXECUTION},
};
use runtime::watch::Key;

use crate::control::workloads::{WorkloadChange, WorkloadPhase};

/// The Workloads that ask for ExactlyOnce themselves.
#[derive(Debug, Default)]
pub(super) struct ExactlyOnceWorkloads(BTreeSet<Key>);

impl ExactlyOnceWorkloads {
    /// Records whether a Workload asks for ExactlyOnce. One that has finished asks for nothing. Returns whether that changes
    /// anything.
    pub(super) fn observe(&mut self, change: &WorkloadChange) -> bool {
        let open = change.after.as_ref().filter(|_| change.phase != Some(WorkloadPhase::Finished));
        let asks = open.is_some_and(|workload| {
            annotation(&workload.metadata, EXECUTION) == Some(EXACTLY_ONCE)
        });
        if asks { self.0.insert(change.key.clone()) } else { self.0.remove(&change.key) }
    }

    /// Whether any Workload asks for it.
    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }
}
