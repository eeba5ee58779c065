//! Workloads that ask for ExactlyOnce themselves, whatever their policy says: workers need leases for them
//! (docs/reference/dispatch.md §3, §7).

use std::collections::BTreeSet;

use crds::{
    meta::annotation,
    names::{EXACTLY_ONCE, annotations::EXECUTION},
};
use runtime::watch::Key;

use super::FleetRegistry;
use crate::control::workloads::{WorkloadChange, WorkloadPhase};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct WantedGuarantees(BTreeSet<Key>);

impl FleetRegistry {
    /// Records whether a Workload asks for ExactlyOnce. One that has finished asks for nothing.
    pub(crate) fn observe_guarantee(&mut self, change: &WorkloadChange) {
        let open = change.after.as_ref().filter(|_| change.phase != Some(WorkloadPhase::Finished));
        let asks = open.is_some_and(|workload| {
            annotation(&workload.metadata, EXECUTION) == Some(EXACTLY_ONCE)
        });
        let all = &mut self.guarantees.0;
        let changed = if asks { all.insert(change.key.clone()) } else { all.remove(&change.key) };
        if changed {
            let wants = !all.is_empty();
            self.fleet.set_wants_leases(wants);
        }
    }
}
