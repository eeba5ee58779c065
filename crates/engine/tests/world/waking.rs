//! Whether anybody who waits should have been woken.

use engine::{CycleEntry, CycleOutcome, Event};
use proptest::test_runner::TestCaseError;

use crate::world::{Step, WORKLOADS, World, moves};

impl World {
    /// Once at rest, looking at everybody afresh gets nobody any further: every wake-up that mattered took place.
    ///
    /// Two things are not missed but never looked for, as in upstream: an admission wakes nobody, although it may give
    /// those who wait somebody to preempt; nor does a holder that is younger than it was.
    pub(crate) fn wake_ups_never_miss(&mut self) -> Result<(), TestCaseError> {
        if !self.comes_to_rest() {
            return Ok(());
        }
        let mut fresh = self.fresh(true);
        for _ in 0..WORKLOADS {
            let entries = fresh.cycle();
            if entries.iter().any(|entry| self.is_a_miss(entry)) {
                return Err(self.refute(&format!("missed:\n{}", fresh.trace)));
            }
            if moves(&entries) {
                break;
            }
        }
        Ok(())
    }

    /// A holder with another priority wakes nobody, as in upstream, if that is not the priority of a class.
    pub(crate) fn tells_a_holder_again(&self, step: &Step) -> bool {
        matches!(step, Step::Submit(index, _) if self.holds(*index))
    }

    fn is_a_miss(&self, entry: &CycleEntry) -> bool {
        match entry.outcome {
            CycleOutcome::Reserved { .. } => true,
            CycleOutcome::Preempting | CycleOutcome::Deferred if self.has_new_victims(entry) => {
                false
            }
            CycleOutcome::Preempting | CycleOutcome::Deferred => {
                let name = self.player.engine.names().workloads.name(entry.workload);
                let own = format!(" {name} ");
                let verdict = self.last_cycle(|line| line.contains(&own));
                self.last_cycle(|line| line.contains("  reserve ")) < verdict
            }
            _ => false,
        }
    }

    /// It would go for somebody who may have been older before, or more urgent without being of a class.
    fn has_new_victims(&self, entry: &CycleEntry) -> bool {
        let names = self.player.engine.names();
        let known = |kind, name: &str| self.player.known.get(&(kind, name.to_owned()));
        let priority = |id| match known("wl", names.workloads.name(id)) {
            Some(Event::Workload(_, spec)) => Some(spec.priority),
            _ => None,
        };
        let said_again = |id| {
            let prefix = format!("wl {} ", names.workloads.name(id));
            self.lines.iter().filter(|line| line.starts_with(&prefix)).count() > 1
        };
        let classless = |id| match known("wl", names.workloads.name(id)) {
            Some(Event::Workload(_, spec)) => !spec.has_priority_class,
            _ => true,
        };
        let equal = |id| priority(id) == priority(entry.workload);
        let mut victims = entry.targets.iter().map(|target| target.workload);
        victims.any(|id| (equal(id) || classless(id)) && said_again(id))
    }

    /// The cycle of the last line of the trace that is such.
    fn last_cycle(&self, is_it: impl Fn(&str) -> bool) -> Option<usize> {
        let mut lines = self.player.trace.lines().rev();
        let line = lines.find(|line| is_it(line))?;
        line.split(' ').next()?.parse().ok()
    }
}
