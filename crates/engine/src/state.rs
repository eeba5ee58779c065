//! The state of the engine: four layers, each with private data and the methods that change it.
//!
//! ```text
//! queues -----+--> workloads     (positions of Workloads)
//!             +--> quota         (nodes of the cohort tree)
//! topology ---+--> workloads     (admissions to charge)
//!             +--> quota         (flavors)
//! ```
//! A lower layer never knows a higher one. Code that decides takes the layers that it needs; the whole state only where
//! quota, topology and Workloads change together: reservations and simulations. A what-if is an operation of every layer.

use std::sync::Arc;

use crate::ids::{PODS, WorkloadId};
use crate::names::Names;
use crate::preemption::scratch::PreemptionScratch;
use crate::preemption::tables::CandidateTables;
use crate::queues::layer::QueueLayer;
use crate::quota::layer::QuotaLayer;
use crate::settings::EngineSettings;
use crate::topology::layer::TopologyLayer;
use crate::workloads::equivalence_class::EquivalenceClass;
use crate::workloads::layer::WorkloadLayer;

/// The composition of all layers.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) names: Names,
    pub(crate) settings: EngineSettings,
    pub(crate) quota: QuotaLayer,
    pub(crate) workloads: WorkloadLayer,
    pub(crate) topology: TopologyLayer,
    pub(crate) queues: QueueLayer,
    /// Buffers of preemption searches.
    pub(crate) scratch: PreemptionScratch,
}

impl State {
    pub(crate) fn new(settings: EngineSettings) -> Self {
        let mut names = Names::default();
        // Interned first, so that its id is a constant.
        let pods = names.resources.intern("pods");
        debug_assert_eq!(pods, PODS);
        Self {
            names,
            settings,
            quota: QuotaLayer::default(),
            workloads: WorkloadLayer::default(),
            topology: TopologyLayer::default(),
            queues: QueueLayer::default(),
            scratch: PreemptionScratch::default(),
        }
    }

    pub(crate) fn class_of(&self, workload: WorkloadId) -> Arc<EquivalenceClass> {
        Arc::clone(self.workloads.class(workload))
    }

    /// Rebuilds stale domain trees.
    pub(crate) fn rebuild_topologies(&mut self) {
        self.topology.rebuild(&self.names, &self.settings, &self.quota, &self.workloads);
    }

    /// Whether a closed preemption gate prevents a Workload from preempting.
    pub(crate) fn is_preemption_gated(&self, workload: WorkloadId) -> bool {
        self.settings.respects_preemption_gates() && self.workloads.at(workload).preemption_gated
    }

    /// What the choice of preemption candidates reads.
    pub(crate) fn candidate_tables(&self) -> CandidateTables<'_> {
        CandidateTables { quota: &self.quota, workloads: &self.workloads, queues: &self.queues }
    }

    /// Begins a what-if.
    pub(crate) fn begin_what_if(&mut self) {
        // The pattern names every layer, so that a new one cannot be left out. Names stay interned, and settings and
        // buffers do not change decisions.
        let Self { names: _, settings: _, quota, workloads, topology, queues, scratch: _ } = self;
        quota.begin_what_if();
        workloads.begin_what_if();
        topology.begin_what_if();
        queues.begin_what_if();
    }

    /// Ends the what-if: restores all layers.
    pub(crate) fn undo_what_if(&mut self) {
        let Self { names: _, settings: _, quota, workloads, topology, queues, scratch: _ } = self;
        quota.undo_what_if();
        workloads.undo_what_if();
        topology.undo_what_if();
        queues.undo_what_if();
    }
}
