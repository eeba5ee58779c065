//! Invariants of every random world.

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::{CohortId, QueueId, WorkloadId};
use engine::spec::QueueEligibility;
use engine::{CycleEntry, CycleOutcome, Event, explain};
use proptest::test_runner::TestCaseError;

use crate::world::model::{Model, amounts, slot, taken};
use crate::world::{World, makes_progress};

pub(crate) type Verdict = Result<(), TestCaseError>;

/// Cycles after which a world counts as having no fixed point.
const MAX_CYCLES: usize = 60;

impl World {
    /// A test failure with the lines that led to it.
    pub(crate) fn failure(&self, why: &str) -> TestCaseError {
        TestCaseError::fail(format!("{why}\n{}\n--\n{}", self.lines.join("\n"), self.player.trace))
    }

    /// Every Workload has an explanation, and it says `HoldsQuota` exactly for Workloads with a reservation.
    pub(crate) fn every_workload_has_an_explanation(&self) -> Verdict {
        let engine = &self.player.engine;
        for event in self.player.known.values() {
            let Event::Workload(id, _) = event else { continue };
            let Some(why) = engine.explain_pending(*id) else {
                return Err(self.failure("a Workload is unknown"));
            };
            let words = explain::explanation_text(engine, &why);
            let holds = why.status == explain::QueueingStatus::HoldsQuota;
            if holds != engine.admission(*id).is_some() || words.is_empty() {
                return Err(self.failure(&words));
            }
        }
        Ok(())
    }

    /// Usage of every queue and cohort equals the definitions applied to the reservations.
    pub(crate) fn usage_is_the_sum_of_reservations(&self) -> Verdict {
        let model = Model::of(&self.player);
        if model.is_cyclic() {
            return Ok(());
        }
        let engine = &self.player.engine;
        let names = engine.names();
        for name in model.nodes.keys() {
            let (kind, own) = name.split_once(' ').expect("kind and name");
            let usage = match kind {
                "queue" => names.queues.get(own).map(|id: QueueId| engine.queue_usage(id)),
                _ => names.cohorts.get(own).map(|id: CohortId| engine.cohort_usage(id)),
            };
            let usage = usage.unwrap_or_default().into_iter();
            let usage: BTreeMap<_, _> =
                usage.map(|(f, r, amount)| (slot(names, r, f), amount.0)).collect();
            let wanted = model.slots().into_iter().map(|slot| {
                let amount = model.usage(name, &slot);
                (slot, amount)
            });
            let wanted: BTreeMap<_, _> = wanted.filter(|(_, amount)| *amount != 0).collect();
            if usage != wanted {
                return Err(self.failure(&format!("{name} uses {usage:?} and not {wanted:?}")));
            }
        }
        Ok(())
    }

    /// Every Workload reserves quota, is pending or inadmissible in exactly one queue, or has a reason to be in
    /// none.
    pub(crate) fn every_workload_is_in_exactly_one_place(&self) -> Verdict {
        let engine = &self.player.engine;
        let mut places: BTreeMap<WorkloadId, usize> = BTreeMap::new();
        for queue in 0..engine.names().queues.len() {
            let queue = QueueId::from(queue);
            let all = [
                engine.reserving_workloads(queue),
                engine.active_workloads(queue),
                engine.inadmissible_workloads(queue),
            ];
            for id in all.concat() {
                *places.entry(id).or_default() += 1;
            }
        }
        for ((kind, name), event) in &self.player.known {
            let Event::Workload(id, spec) = event else { continue };
            let line = spec.local_queue.map(|one| engine.names().local_queues.name(one).to_owned());
            let line = line.and_then(|one| self.player.known.get(&("lq", one)));
            let stopped = !matches!(line, Some(Event::LocalQueue(_, Some(one))) if !one.stopped);
            let nowhere = engine.admission(*id).is_none()
                && (stopped || spec.eligibility == QueueEligibility::Excluded);
            let found = places.remove(id).unwrap_or_default();
            if found != usize::from(!nowhere) {
                return Err(self.failure(&format!("{kind} {name} is in {found} places")));
            }
        }
        if places.is_empty() {
            Ok(())
        } else {
            Err(self.failure("an unknown Workload is in a queue"))
        }
    }

    /// Outcomes match the state: a head has quota exactly if it was reserved, a queue has one head, a target is
    /// evicted.
    pub(crate) fn outcomes_match_the_state(&self, entries: &[CycleEntry]) -> Verdict {
        let engine = &self.player.engine;
        let heads = || entries.iter().filter(|entry| !entry.outcome.concerns_reserving_workload());
        let queues: BTreeSet<QueueId> = heads().map(|entry| entry.queue).collect();
        if queues.len() != heads().count() {
            return Err(self.failure("a queue had two heads"));
        }
        let mut targets = BTreeSet::new();
        for entry in heads() {
            let reserved = matches!(entry.outcome, CycleOutcome::Reserved { .. });
            if entry.outcome == CycleOutcome::Nominated
                || engine.admission(entry.workload).is_some() != reserved
            {
                return Err(self.failure("a head did not get what was said"));
            }
            if let CycleOutcome::Migrating { from } = entry.outcome
                && !engine.is_evicted(from)
            {
                return Err(self.failure("a sibling is not on its way out"));
            }
            for target in &entry.targets {
                let announced = entry.outcome == CycleOutcome::Preempting;
                if announced
                    && (!targets.insert(target.workload) || !engine.is_evicted(target.workload))
                {
                    return Err(self.failure("a victim is claimed twice or not on its way out"));
                }
                if announced && self.was_taken_over(entries, target.workload) {
                    return Err(self.failure("a victim was taken over, so that it frees nothing"));
                }
            }
        }
        Ok(())
    }

    /// Whether a slice got the quota of a target. One that was evicted before keeps it, also beside a slice that replaces it.
    fn was_taken_over(&self, entries: &[CycleEntry], target: WorkloadId) -> bool {
        if self.evicted.contains(&target) {
            let takes = |entry: &CycleEntry| {
                let reserved = matches!(entry.outcome, CycleOutcome::Reserved { .. });
                reserved && entry.replaced_slice == Some(target)
            };
            return entries.iter().any(takes);
        }
        self.player.engine.replacement_slice(target).is_some()
    }

    /// Queues with a new reservation stay within their available quota once the targets of the cycle are released.
    pub(crate) fn no_admission_exceeds_a_limit(&self, entries: &[CycleEntry]) -> Verdict {
        let names = self.player.engine.names();
        let mut model = Model::of(&self.player);
        if model.is_cyclic() {
            return Ok(());
        }
        let preempting = entries.iter().filter(|entry| entry.outcome == CycleOutcome::Preempting);
        for target in preempting.flat_map(|entry| &entry.targets) {
            let held = self.player.engine.admission_spec(target.workload).expect("victims hold");
            let queue = format!("queue {}", names.queues.name(held.queue));
            for (slot, amount) in amounts(&held.pod_sets, names) {
                let node = model.nodes.get_mut(&queue).expect("queues of holders are known");
                *node.held.entry(slot).or_default() -= amount;
            }
        }
        for entry in
            entries.iter().filter(|one| matches!(one.outcome, CycleOutcome::Reserved { .. }))
        {
            let queue = format!("queue {}", names.queues.name(entry.queue));
            for (slot, amount) in taken(&self.player, entry) {
                let left = model.available(&queue, &slot);
                if left < 0 && amount > 0 {
                    return Err(self.failure(&format!("{queue} has {left} of {slot:?}")));
                }
            }
        }
        Ok(())
    }

    /// The state equals that of an engine that received all objects at once. Holds after a cycle.
    pub(crate) fn the_state_equals_a_rebuilt_one(&self) -> Verdict {
        if Model::of(&self.player).is_cyclic() {
            return Ok(());
        }
        let mut fresh = self.fresh(false);
        fresh.cycle();
        let (own, other) = (self.player.engine.debug_dump(), fresh.engine.debug_dump());
        if own == other {
            return Ok(());
        }
        Err(self.failure(&format!("state\n{own}and not\n{other}")))
    }

    /// Runs cycles and releases evicted Workloads until no Workload makes progress. False if that does not happen.
    pub(crate) fn reaches_a_fixed_point(&mut self) -> bool {
        let mut quiet = 0;
        for _ in 0..MAX_CYCLES {
            self.lines.push("cycle".to_owned());
            let moved = makes_progress(&self.player.cycle());
            let released = self.release(false);
            quiet = if moved || released { 0 } else { quiet + 1 };
            if quiet > super::WORKLOADS + 2 {
                return true;
            }
        }
        false
    }
}
