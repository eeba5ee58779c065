//! What-if: hypothetical events and cycles on the live tables, undone exactly afterwards.
//!
//! Large tables are copied only as far as they change: rows of Workloads and ClusterQueues when they first change,
//! usage and equivalence classes as journals, the quota tree before its first structural change. Specs and marks are
//! small and copied; topologies are copied as a whole if there are any. Interned names stay.
//!
//! Invariant: after a what-if the engine decides as without it, and [`Engine::debug_dump`] is equal byte by byte.

use std::ops::Deref;

use crate::cycle::Cycle;
use crate::cycle::entry::CycleEntry;
use crate::engine::Engine;
use crate::event::Event;
use crate::placer::Placer;
use crate::second_pass::SecondPass;
use crate::state::State;
use crate::time::Time;

/// An engine in a what-if. Dropping it undoes all changes.
#[derive(Debug)]
pub struct WhatIf<'a> {
    engine: &'a mut Engine,
    cycle: Cycle,
}

impl Engine {
    /// Begins a what-if.
    pub fn what_if(&mut self) -> WhatIf<'_> {
        self.state.begin_what_if();
        // Entries of the last cycle stay readable after the what-if.
        let cycle = std::mem::take(&mut self.cycle);
        WhatIf { engine: self, cycle }
    }
}

impl WhatIf<'_> {
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

    /// The tables, for changes that no event makes.
    pub(crate) fn state_mut(&mut self) -> &mut State {
        &mut self.engine.state
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
        self.engine.state.undo_what_if();
        self.engine.cycle = std::mem::take(&mut self.cycle);
    }
}
