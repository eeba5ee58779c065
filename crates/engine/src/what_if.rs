//! What-if: hypothetical events and cycles on the live tables, undone exactly afterwards.
//!
//! Large tables are copied only as far as they change: rows of Workloads and ClusterQueues when they first change,
//! usage and equivalence classes as journals, the quota tree before its first structural change. Specs and marks are
//! small and copied; topologies are copied as a whole if there are any. Interned names stay.
//!
//! Invariant: after a what-if the engine decides as without it, and [`Engine::debug_dump`] is equal byte by byte.

use std::ops::Deref;

use crate::admission_fair_sharing::ledger::ConsumptionLedger;
use crate::cycle::Cycle;
use crate::cycle::entry::CycleEntry;
use crate::engine::Engine;
use crate::event::Event;
use crate::ids::NodeId;
use crate::names::Names;
use crate::node_failures::NodeFailures;
use crate::placer::Placer;
use crate::queues::head_list::HeadList;
use crate::queues::requeue_requests::RequeueRequests;
use crate::quota::changes::ConfigurationChanges;
use crate::second_pass::SecondPass;
use crate::spec::{CheckSpec, FlavorSpec, Labels, LocalQueueSpec};
use crate::state::State;
use crate::time::Time;
use crate::topology::Topologies;
use crate::workloads::second_passes::SecondPasses;
use crate::workloads::slice_replacements::SliceReplacements;
use crate::workloads::variant_groups::VariantGroups;

/// An engine in a what-if. Dropping it undoes all changes.
#[derive(Debug)]
pub struct WhatIf<'a> {
    engine: &'a mut Engine,
    before: Checkpoint,
    cycle: Cycle,
}

impl Engine {
    /// Begins a what-if.
    pub fn what_if(&mut self) -> WhatIf<'_> {
        let before = Checkpoint::begin(&mut self.state);
        let cycle = std::mem::take(&mut self.cycle);
        WhatIf { engine: self, before, cycle }
    }
}

impl WhatIf<'_> {
    /// The name tables. Interned names stay.
    pub fn names_mut(&mut self) -> &mut Names {
        self.engine.names_mut()
    }

    /// Applies a hypothetical event.
    pub fn apply(&mut self, event: Event) {
        self.engine.apply(event);
    }

    /// Runs a hypothetical cycle. The caller undoes the placer's side effects.
    pub fn cycle(&mut self, now: Time, placer: &mut dyn Placer) -> &[CycleEntry] {
        self.engine.cycle(now, placer)
    }

    /// Makes hypothetical second passes.
    pub fn second_pass(&mut self, now: Time) -> Vec<SecondPass> {
        self.engine.second_pass(now)
    }
}

impl Deref for WhatIf<'_> {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.engine
    }
}

impl Drop for WhatIf<'_> {
    fn drop(&mut self) {
        std::mem::take(&mut self.before).undo(&mut self.engine.state);
        self.engine.cycle = std::mem::take(&mut self.cycle);
    }
}

/// The small tables before the what-if.
#[derive(Debug, Default)]
struct Checkpoint {
    /// Position of the usage journal.
    mark: usize,
    changes: ConfigurationChanges,
    cohorts: Vec<Option<NodeId>>,
    local_queues: Vec<Option<LocalQueueSpec>>,
    namespaces: Vec<Option<Labels>>,
    flavors: Vec<Option<FlavorSpec>>,
    checks: Vec<Option<CheckSpec>>,
    topologies: Option<Topologies>,
    node_failures: NodeFailures,
    second_passes: SecondPasses,
    slices: SliceReplacements,
    variant_groups: VariantGroups,
    ledger: ConsumptionLedger,
    heads: HeadList,
    requeue_requests: RequeueRequests,
    cycle: u64,
}

impl Checkpoint {
    fn begin(state: &mut State) -> Self {
        // The pattern names every table, so that a new one cannot be left out.
        let State {
            names: _,
            settings: _,
            pods: _,
            scratch: _,
            topology_search: _,
            tree,
            changes,
            cohorts,
            queues,
            local_queues,
            namespaces,
            flavors,
            checks,
            topologies,
            node_failures,
            workloads,
            classes,
            second_passes,
            slices,
            variant_groups,
            ledger,
            heads,
            requeue_requests,
            cycle,
        } = state;
        queues.begin();
        workloads.begin();
        classes.begin();
        Self {
            mark: tree.begin(),
            changes: changes.clone(),
            cohorts: cohorts.clone(),
            local_queues: local_queues.clone(),
            namespaces: namespaces.clone(),
            flavors: flavors.clone(),
            checks: checks.clone(),
            topologies: topologies.matter().then(|| topologies.clone()),
            node_failures: node_failures.clone(),
            second_passes: second_passes.clone(),
            slices: slices.clone(),
            variant_groups: variant_groups.clone(),
            ledger: ledger.clone(),
            heads: heads.clone(),
            requeue_requests: requeue_requests.clone(),
            cycle: *cycle,
        }
    }

    fn undo(self, state: &mut State) {
        state.queues.undo();
        state.workloads.undo();
        state.classes.undo();
        state.tree.undo(self.mark);
        state.changes = self.changes;
        state.cohorts = self.cohorts;
        (state.local_queues, state.namespaces) = (self.local_queues, self.namespaces);
        (state.flavors, state.checks) = (self.flavors, self.checks);
        state.topologies = self.topologies.unwrap_or_default();
        state.node_failures = self.node_failures;
        state.second_passes = self.second_passes;
        (state.slices, state.variant_groups) = (self.slices, self.variant_groups);
        state.ledger = self.ledger;
        (state.heads, state.requeue_requests) = (self.heads, self.requeue_requests);
        state.cycle = self.cycle;
    }
}
