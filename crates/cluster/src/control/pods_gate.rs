//! `waitForPodsReady.blockAdmission`: nobody is admitted while the pods of somebody who holds quota are waited for.
//!
//! Upstream's scheduler stands still meanwhile. Here a cycle refuses whoever would be admitted, so that it can be told why,
//! and admits at most one; they are woken together when the last pods are ready. Source: docs/reference/kueue.md §4.8, step 11.

use std::collections::BTreeSet;

use ::dispatch::FleetPlacer;
use crds::names::{conditions::PODS_READY, reasons};
use engine::{
    CycleEntry, Placer, RequeueKey,
    ids::{ClusterId, WorkloadId},
};
use jiff::Timestamp;
use runtime::watch::Key;

use super::{
    Control,
    record::{Pending, has_quota, is},
};

/// What those wait for who are kept out. The fleet counts its keys from one.
const PODS: RequeueKey = RequeueKey(u64::MAX);

/// Whose pods are waited for.
#[derive(Debug, Default)]
pub(crate) struct PodsGate {
    awaited: BTreeSet<Key>,
    /// Somebody was kept out.
    knocked: bool,
}

impl PodsGate {
    /// The key of those who were kept out, if nobody's pods are waited for any more.
    pub(crate) fn opened(&mut self) -> Option<RequeueKey> {
        (self.awaited.is_empty() && std::mem::take(&mut self.knocked)).then_some(PODS)
    }
}

/// The placer of one cycle, behind the gate.
pub(crate) struct Guarded<'a> {
    pub(crate) placing: FleetPlacer<'a>,
    gate: &'a mut PodsGate,
    blocks: bool,
    admitted: bool,
    /// Who was kept out.
    pub(crate) waiting: BTreeSet<WorkloadId>,
}

impl<'a> Guarded<'a> {
    pub(crate) fn new(placing: FleetPlacer<'a>, gate: &'a mut PodsGate, blocks: bool) -> Self {
        Self { placing, gate, blocks, admitted: false, waiting: BTreeSet::new() }
    }
}

impl Placer for Guarded<'_> {
    fn place(&mut self, entry: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
        if self.blocks && (self.admitted || !self.gate.awaited.is_empty()) {
            self.gate.knocked = true;
            self.waiting.insert(entry.workload);
            return Err(PODS);
        }
        let placed = self.placing.place(entry);
        self.admitted |= placed.is_ok();
        placed
    }
}

/// Why those wait who are kept out.
pub(crate) fn for_pods(not_before: Timestamp) -> Pending {
    Pending {
        reason: reasons::WAITING_FOR_PODS_READY.to_owned(),
        message: "waiting for all admitted workloads to be in PodsReady condition".to_owned(),
        gated: false,
        not_before,
    }
}

impl Control {
    /// Notes whether the pods of a Workload are waited for.
    pub(super) fn note_at_gate(&mut self, key: &Key) {
        if !self.settings.patience.is_some_and(|patience| patience.blocks) {
            return;
        }
        let waits = self.workloads.get(key).is_some_and(|record| {
            let workload = record.object();
            let holds = has_quota(workload) || record.wants.reserve.is_some();
            holds && !is(workload, PODS_READY)
        });
        if waits {
            self.pods_gate.awaited.insert(key.clone());
        } else {
            self.pods_gate.awaited.remove(key);
        }
    }
}
