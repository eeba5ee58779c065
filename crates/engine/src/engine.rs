//! The front door: events in, decisions out.

use crate::cycle::Cycle;
use crate::cycle::entry::CycleEntry;
use crate::event::Event;
use crate::names::Names;
use crate::placer::Placer;
use crate::settings::EngineSettings;
use crate::state::State;
use crate::time::Time;

/// The scheduling core. See the crate's page.
#[derive(Debug)]
pub struct Engine {
    pub(crate) state: State,
    pub(crate) cycle: Cycle,
}

impl Engine {
    /// An engine that knows nothing yet.
    pub fn new(settings: EngineSettings) -> Self {
        Self { state: State::new(settings), cycle: Cycle::default() }
    }

    /// The tables of names, for interning what events refer to.
    pub fn names_mut(&mut self) -> &mut Names {
        &mut self.state.names
    }

    /// The tables of names.
    pub fn names(&self) -> &Names {
        &self.state.names
    }

    /// Keeps the books. Decides nothing.
    pub fn apply(&mut self, event: Event) {
        crate::apply::apply(&mut self.state, event);
    }

    /// Runs one scheduling cycle: at most one decision per queue. Empty when no queue has anybody to evaluate; whoever
    /// is still in line then ([`Engine::has_pending_heads`]) gets a turn in one of the next cycles.
    pub fn cycle(&mut self, now: Time, placer: &mut dyn Placer) -> &[CycleEntry] {
        let mut ongoing = self.begin(now);
        while !ongoing.advance(placer, usize::MAX) {}
        drop(ongoing);
        self.entries()
    }

    /// Begins a cycle that is run in parts.
    pub fn begin(&mut self, now: Time) -> CycleInProgress<'_> {
        self.cycle.begin(&mut self.state, now);
        CycleInProgress { engine: self }
    }

    /// What the last cycle decided.
    pub fn entries(&self) -> &[CycleEntry] {
        self.cycle.entries()
    }

    /// Whether any active queue has somebody in line for the next cycle, or a machine is to be replaced. The head of a
    /// strict queue that cannot be admitted stays in line.
    pub fn has_pending_heads(&self) -> bool {
        let queue = |id| self.state.queue(id);
        let State { requeue_requests, changes, node_failures, .. } = &self.state;
        let waiting = !requeue_requests.is_empty()
            || changes.need_rebuild()
            || node_failures.need_replacement();
        waiting
            || self.state.heads.iter().map(queue).any(|one| one.active && one.pending.has_head())
    }
}

/// A cycle that has begun: between its parts the caller can do anything, except tell the engine events, of which the
/// cycle knows nothing yet. When it is complete, [`Engine::entries`] has what it decided.
///
/// If it is dropped before, what was processed counts; entries that are still [`CycleOutcome::Nominated`](crate::Outcome::Nominated)
/// and heads that have none yet are in line for the next cycle.
#[derive(Debug)]
pub struct CycleInProgress<'a> {
    engine: &'a mut Engine,
}

impl CycleInProgress<'_> {
    /// Goes on for about so many queues or heads. Returns true when the cycle is complete.
    pub fn advance(&mut self, placer: &mut dyn Placer, heads: usize) -> bool {
        let Engine { state, cycle } = &mut *self.engine;
        cycle.advance(state, placer, heads)
    }
}

impl Drop for CycleInProgress<'_> {
    fn drop(&mut self) {
        let Engine { state, cycle } = &mut *self.engine;
        cycle.cut_short(state);
    }
}
