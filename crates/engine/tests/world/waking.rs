//! Whether anybody who waits should have been woken.

use engine::{Entry, Outcome};
use proptest::test_runner::TestCaseError;

use crate::world::{Step, WORKLOADS, World, moves};

impl World {
    /// Once at rest, looking at everybody afresh gets nobody any further: every wake-up that mattered took place.
    ///
    /// One thing is not missed but never looked for, as in upstream: an admission wakes nobody, although it may give
    /// those who wait somebody to preempt.
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

    /// A holder with another priority wakes its cohort only, as in upstream: who shares its queue may miss that it can be
    /// preempted now.
    pub(crate) fn tells_a_holder_again(&self, step: &Step) -> bool {
        matches!(step, Step::Submit(index, _) | Step::Priority(index, _) if self.holds(*index))
    }

    fn is_a_miss(&self, entry: &Entry) -> bool {
        match entry.outcome {
            Outcome::Reserved { .. } => true,
            Outcome::Preempting | Outcome::Deferred => {
                let name = self.player.engine.names().workloads.name(entry.workload);
                let own = format!(" {name} ");
                let verdict = self.last_cycle(|line| line.contains(&own));
                self.last_cycle(|line| line.contains("  reserve ")) < verdict
            }
            _ => false,
        }
    }

    /// The cycle of the last line of the trace that is such.
    fn last_cycle(&self, is_it: impl Fn(&str) -> bool) -> Option<usize> {
        let mut lines = self.player.trace.lines().rev();
        let line = lines.find(|line| is_it(line))?;
        line.split(' ').next()?.parse().ok()
    }
}
