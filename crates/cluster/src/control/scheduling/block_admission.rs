//! `waitForPodsReady.blockAdmission`: no Workload is admitted while pods of a Workload that holds quota are not ready.
//!
//! Upstream's scheduler stands still meanwhile, with the Workload that it was about to admit. Here a cycle refuses the
//! Workloads that would be admitted, so that their condition gives the reason, and admits at most one. All of them are requeued
//! when the last pods are ready. The one that was refused first goes first then: the Workload whose pods were not ready may be
//! back in its queue by now, before it in the queue order, and would keep it out for ever.
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

use crate::control::workloads::{PendingMessage, TrackedWorkload, is_set_elsewhere};

/// The wake-up key of Workloads that the gate refuses. The fleet counts its keys from one.
const PODS_READY_KEY: RequeueKey = RequeueKey(u64::MAX);

/// Workloads that hold quota and whose pods are not ready.
#[derive(Debug, Default)]
pub(super) struct PodsReadyGate {
    blocks: bool,
    not_ready: BTreeSet<Key>,
    /// A Workload was refused since the gate opened last.
    refused_any: bool,
    /// The Workload that was refused first since one was admitted.
    next: Option<WorkloadId>,
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
        // No status of a set on a worker comes back, so its pods would never be ready.
        let awaits = |one: &TrackedWorkload| {
            let elsewhere = is_set_elsewhere(one.object(), &one.object().status);
            one.holds_or_reserves() && !one.is(PODS_READY) && !elsewhere
        };
        if record.is_some_and(awaits) {
            self.not_ready.insert(key.clone());
        } else {
            self.not_ready.remove(key);
        }
    }

    /// Ends a run of cycles. If the Workload that goes first was not admitted although the gate is open, it cannot be, and
    /// the others have their turn.
    pub(super) fn end_run(&mut self) {
        if self.not_ready.is_empty() {
            self.next = None;
        }
    }

    /// Whether this Workload is not admitted now.
    fn refuses(&mut self, id: WorkloadId) -> bool {
        if !self.blocks {
            return false;
        }
        if !self.not_ready.is_empty() {
            self.next.get_or_insert(id);
            return true;
        }
        self.next.is_some_and(|next| next != id)
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

    /// Whether an entry waits behind the gate: one that was refused, and every later one of the cycle. Upstream's scheduler evicts nothing
    /// either while it stands still.
    fn holds(&mut self, entry: &CycleEntry) -> bool {
        let holds = !self.refused.is_empty();
        if holds {
            self.refused.insert(entry.workload);
        }
        holds
    }
}

impl Placer for GatedPlacer<'_> {
    fn place(&mut self, entry: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
        // A reservation of this cycle joins `not_ready` with its verdict, after the cycle.
        if self.gate.refuses(entry.workload) || self.gate.blocks && self.admitted {
            self.gate.refused_any = true;
            self.refused.insert(entry.workload);
            return Err(PODS_READY_KEY);
        }
        let placed = self.placing.place(entry);
        if placed.is_ok() {
            self.admitted = true;
            self.gate.next = None;
        }
        placed
    }

    fn fits_after(&mut self, entry: &CycleEntry, gone: &[WorkloadId]) -> bool {
        !self.holds(entry) && self.placing.fits_after(entry, gone)
    }

    fn refuse_after(&mut self, entry: &CycleEntry, gone: &[WorkloadId]) -> RequeueKey {
        // The fleet has no room to wait for: the gate wakes the Workload.
        if self.holds(entry) {
            return PODS_READY_KEY;
        }
        self.placing.refuse_after(entry, gone)
    }

    fn preemptible(&mut self, entry: &CycleEntry) -> Vec<Vec<WorkloadId>> {
        if self.holds(entry) { Vec::new() } else { self.placing.preemptible(entry) }
    }
}

/// Why a Workload that the gate refused is pending.
pub(super) fn pending_message(not_before: Timestamp) -> PendingMessage {
    PendingMessage {
        reason: reasons::WAITING_FOR_PODS_READY.to_owned(),
        message: "waiting for all admitted workloads to be in PodsReady condition".to_owned(),
        gated: false,
        by_cycle: true,
        not_before,
    }
}
