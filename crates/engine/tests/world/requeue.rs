//! Requeueing never misses an inadmissible Workload that could make progress.

use engine::{CycleEntry, CycleOutcome, Event};
use proptest::test_runner::TestCaseError;

use crate::world::{WORKLOADS, World, WorldStep, makes_progress};

impl World {
    /// At a fixed point, nominating every Workload again makes no progress.
    ///
    /// Two cases are exempt, as in upstream: an admission requeues nothing, although it may create preemption
    /// targets; nor does an admitted Workload whose timestamp becomes younger.
    pub(crate) fn requeueing_never_misses(&mut self) -> Result<(), TestCaseError> {
        if !self.reaches_a_fixed_point() {
            return Ok(());
        }
        let mut fresh = self.fresh(true);
        for _ in 0..WORKLOADS {
            let entries = fresh.cycle();
            if entries.iter().any(|entry| self.is_missed(entry)) {
                return Err(self.failure(&format!("missed:\n{}", fresh.trace)));
            }
            if makes_progress(&entries) {
                break;
            }
        }
        Ok(())
    }

    /// An admitted Workload whose priority changes without a priority class requeues nothing, as in upstream.
    pub(crate) fn updates_an_admitted_workload(&self, step: &WorldStep) -> bool {
        matches!(step, WorldStep::Submit(index, _) if self.holds(*index))
    }

    fn is_missed(&self, entry: &CycleEntry) -> bool {
        match entry.outcome {
            CycleOutcome::Reserved { .. } => true,
            CycleOutcome::Preempting | CycleOutcome::Deferred if self.has_new_targets(entry) => {
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

    /// A target may have been older before, or of higher priority before a change without a priority class.
    fn has_new_targets(&self, entry: &CycleEntry) -> bool {
        let names = self.player.engine.names();
        let known = |kind, name: &str| self.player.known.get(&(kind, name.to_owned()));
        let priority = |id| match known("wl", names.workloads.name(id)) {
            Some(Event::Workload(_, spec)) => Some(spec.priority),
            _ => None,
        };
        let has_class = |line: &str| line.split(' ').any(|word| word == "class");
        let mut targets = entry.targets.iter().map(|target| target.workload);
        targets.any(|id| {
            let mut changes = self.lines_of(names.workloads.name(id)).skip(1).peekable();
            let is_younger = changes.peek().is_some() && priority(id) == priority(entry.workload);
            is_younger || changes.any(|line| !has_class(line))
        })
    }

    /// The cycle of the last trace line that matches.
    fn last_cycle(&self, is_it: impl Fn(&str) -> bool) -> Option<usize> {
        let mut lines = self.player.trace.lines().rev();
        let line = lines.find(|line| is_it(line))?;
        line.split(' ').next()?.parse().ok()
    }
}
