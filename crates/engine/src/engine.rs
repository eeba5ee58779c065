//! The front door: events in, decisions out.

use crate::cycle::{self, Cycle, Entry};
use crate::event::Event;
use crate::names::Names;
use crate::placer::Placer;
use crate::settings::Settings;
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
    pub fn new(settings: Settings) -> Self {
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

    /// Runs one scheduling cycle: at most one decision per queue. Empty when no queue has anybody to evaluate.
    pub fn cycle(&mut self, now: Time, placer: &mut dyn Placer) -> &[Entry] {
        crate::backoff::end(&mut self.state, now);
        cycle::run(&mut self.state, &mut self.cycle, now, placer);
        &self.cycle.entries
    }
}
