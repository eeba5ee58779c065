//! The engine: applies events, runs scheduling cycles, answers queries.

use crate::cycle::Cycle;
use crate::cycle::entry::CycleEntry;
use crate::cycle::preparation;
use crate::event::Event;
use crate::names::Names;
use crate::placer::Placer;
use crate::settings::EngineSettings;
use crate::state::State;
use crate::time::Time;

/// The scheduling core. Not thread-safe by design: one owner applies events and runs cycles.
#[derive(Debug)]
pub struct Engine {
    pub(crate) state: State,
    pub(crate) cycle: Cycle,
}

impl Engine {
    /// An engine without objects.
    pub fn new(settings: EngineSettings) -> Self {
        Self { state: State::new(settings), cycle: Cycle::default() }
    }

    /// The name tables, to intern what events refer to. A name that is added changes no decision, and only the engine gives
    /// ids back; so objects are converted with the tables themselves, before their events are applied.
    pub fn names_mut(&mut self) -> &mut Names {
        &mut self.state.names
    }

    /// The name tables.
    pub fn names(&self) -> &Names {
        &self.state.names
    }

    /// Applies one event. Decides nothing.
    pub fn apply(&mut self, event: Event) {
        crate::apply::apply(&mut self.state, event);
    }

    /// Runs a whole scheduling cycle: [`Engine::begin`], then [`CycleInProgress::advance`] until it is complete.
    /// Returns at most one entry per ClusterQueue; none if there is no head. Convenient for tests and small
    /// installations.
    pub fn cycle(&mut self, now: Time, placer: &mut dyn Placer) -> &[CycleEntry] {
        let mut ongoing = self.begin(now);
        while !ongoing.advance(placer, usize::MAX) {}
        drop(ongoing);
        self.entries()
    }

    /// Begins a cycle that is advanced in parts. Ends one that is still open.
    pub fn begin(&mut self, now: Time) -> CycleInProgress<'_> {
        self.cycle.begin(&mut self.state, now);
        CycleInProgress { engine: self }
    }

    /// The decisions of the last cycle.
    pub fn entries(&self) -> &[CycleEntry] {
        self.cycle.entries()
    }

    /// Recomputes what follows from changes of the configuration, as the begin of a cycle does: for a composition that runs no cycles.
    pub fn apply_configuration(&mut self) {
        preparation::apply_changes(&mut self.state);
    }

    /// Whether a Workload's message may have old numbers, because its refusal was predicted and not evaluated.
    /// [`Event::RefreshMessages`] has it evaluated.
    pub fn has_stale_messages(&self) -> bool {
        self.state.queues.has_predictions()
    }

    /// Whether the next cycle may decide something: an active ClusterQueue has a head, the configuration changed, a
    /// requeue is requested, or a node replacement is pending. The head of a StrictFIFO ClusterQueue stays active if
    /// it cannot be admitted.
    pub fn has_pending_heads(&self) -> bool {
        let State { quota, topology, queues, .. } = &self.state;
        queues.has_requeue_requests()
            || quota.needs_rebuild()
            || topology.node_failures().need_replacement()
            || queues.has_active_head()
    }
}

/// A cycle in progress. Between its parts the caller may do other work, but cannot apply events: the cycle holds the
/// engine. When it is complete, [`Engine::entries`] has its decisions.
///
/// If it is dropped earlier, processed entries count. Entries with
/// [`CycleOutcome::Nominated`](crate::CycleOutcome::Nominated) and heads without an entry stay active for the next
/// cycle.
#[derive(Debug)]
pub struct CycleInProgress<'a> {
    engine: &'a mut Engine,
}

impl CycleInProgress<'_> {
    /// Continues for about `heads` ClusterQueues or heads. Returns true when the cycle is complete.
    pub fn advance(&mut self, placer: &mut dyn Placer, heads: usize) -> bool {
        let Engine { state, cycle } = &mut *self.engine;
        cycle.advance(state, placer, heads)
    }
}

impl Drop for CycleInProgress<'_> {
    fn drop(&mut self) {
        let Engine { state, cycle } = &mut *self.engine;
        cycle.finish_early(state);
    }
}
