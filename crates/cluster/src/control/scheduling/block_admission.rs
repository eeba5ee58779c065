//! `waitForPodsReady.blockAdmission`: no Workload is admitted while pods of a Workload that holds quota are not ready.
//!
//! Upstream's scheduler stands still meanwhile. Here a cycle refuses the Workloads that would be admitted, so that their
//! condition gives the reason, and admits at most one. All of them are requeued when the last pods are ready.
//! Source: docs/reference/kueue.md §4.8, step 11.

use std::collections::BTreeSet;

use crds::names::{conditions::PODS_READY, reasons};
use dispatch::FleetPlacer;
use engine::{
    CycleEntry, Placer, RequeueKey,
    ids::{ClusterId, WorkloadId},
};
use jiff::Timestamp;
use runtime::watch::Key;

use crate::control::workloads::{PendingMessage, TrackedWorkload};

/// The wake-up key of Workloads that the gate refuses. The fleet counts its keys from one.
const PODS_READY_KEY: RequeueKey = RequeueKey(u64::MAX);

/// Workloads that hold quota and whose pods are not ready.
#[derive(Debug, Default)]
pub(super) struct PodsReadyGate {
    blocks: bool,
    not_ready: BTreeSet<Key>,
    /// A Workload was refused since the gate opened last.
    refused_any: bool,
}

impl PodsReadyGate {
    /// A gate that never closes unless `blocks`.
    pub(super) fn new(blocks: bool) -> Self {
        Self { blocks, ..Self::default() }
    }

    /// Records whether a Workload holds quota and its pods are not ready; `None` if it is gone.
    pub(super) fn watch(&mut self, key: &Key, record: Option<&TrackedWorkload>) {
        if !self.blocks {
            return;
        }
        if record.is_some_and(|one| one.holds_or_reserves() && !one.is(PODS_READY)) {
            self.not_ready.insert(key.clone());
        } else {
            self.not_ready.remove(key);
        }
    }

    /// The wake-up key of refused Workloads, once, when the gate has opened.
    pub(super) fn take_opened(&mut self) -> Option<RequeueKey> {
        let opened = self.not_ready.is_empty() && std::mem::take(&mut self.refused_any);
        opened.then_some(PODS_READY_KEY)
    }
}

/// The placer of one cycle, behind the gate.
pub(super) struct GatedPlacer<'a> {
    pub(super) placing: FleetPlacer<'a>,
    gate: &'a mut PodsReadyGate,
    admitted: bool,
    /// Workloads that the gate refused in this cycle.
    pub(super) refused: BTreeSet<WorkloadId>,
}

impl<'a> GatedPlacer<'a> {
    pub(super) fn new(placing: FleetPlacer<'a>, gate: &'a mut PodsReadyGate) -> Self {
        Self { placing, gate, admitted: false, refused: BTreeSet::new() }
    }
}

impl Placer for GatedPlacer<'_> {
    fn place(&mut self, entry: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
        if self.gate.blocks && (self.admitted || !self.gate.not_ready.is_empty()) {
            self.gate.refused_any = true;
            self.refused.insert(entry.workload);
            return Err(PODS_READY_KEY);
        }
        let placed = self.placing.place(entry);
        self.admitted |= placed.is_ok();
        placed
    }
}

/// Why a Workload that the gate refused is pending.
pub(super) fn pending_message(not_before: Timestamp) -> PendingMessage {
    PendingMessage {
        reason: reasons::WAITING_FOR_PODS_READY.to_owned(),
        message: "waiting for all admitted workloads to be in PodsReady condition".to_owned(),
        gated: false,
        not_before,
    }
}
