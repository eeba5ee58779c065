//! What holds whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::{CohortId, QueueId, WorkloadId};
use engine::spec::QueueEligibility;
use engine::{CycleEntry, CycleOutcome, Event, explain};
use proptest::test_runner::TestCaseError;

use crate::world::model::{Model, amounts, slot, taken};
use crate::world::{World, moves};

pub(crate) type Verdict = Result<(), TestCaseError>;

/// Cycles after which a world that still moves is believed never to rest.
const PATIENCE: usize = 60;

impl World {
    /// Says no, with the lines that led here.
    pub(crate) fn refute(&self, why: &str) -> TestCaseError {
        TestCaseError::fail(format!("{why}\n{}\n--\n{}", self.lines.join("\n"), self.player.trace))
    }

    /// Whoever exists can be told why it waits, and whoever holds quota does not wait.
    pub(crate) fn everybody_can_be_told_why(&self) -> Verdict {
        let engine = &self.player.engine;
        for event in self.player.known.values() {
            let Event::Workload(id, _) = event else { continue };
            let Some(why) = engine.explain_pending(*id) else {
                return Err(self.refute("somebody is unknown"));
            };
            let words = explain::explanation_text(engine, &why);
            let holds = why.status == explain::QueueingStatus::HoldsQuota;
            if holds != engine.admission(*id).is_some() || words.is_empty() {
                return Err(self.refute(&words));
            }
        }
        Ok(())
    }

    /// Usage of every queue and cohort is what the definitions make of what is held.
    pub(crate) fn usage_is_the_sum_of_what_is_held(&self) -> Verdict {
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
                return Err(self.refute(&format!("{name} uses {usage:?} and not {wanted:?}")));
            }
        }
        Ok(())
    }

    /// Everybody is in exactly one place, or nowhere for a reason.
    pub(crate) fn nobody_is_lost_or_in_two_places(&self) -> Verdict {
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
                return Err(self.refute(&format!("{kind} {name} is in {found} places")));
            }
        }
        if places.is_empty() { Ok(()) } else { Err(self.refute("somebody unknown is there")) }
    }

    /// What a cycle said is what it did: who got quota holds it, who did not holds nothing, one head per queue.
    pub(crate) fn a_cycle_keeps_its_word(&self, entries: &[CycleEntry]) -> Verdict {
        let engine = &self.player.engine;
        let heads = || entries.iter().filter(|entry| !entry.outcome.concerns_reserving_workload());
        let queues: BTreeSet<QueueId> = heads().map(|entry| entry.queue).collect();
        if queues.len() != heads().count() {
            return Err(self.refute("a queue had two heads"));
        }
        let mut victims = BTreeSet::new();
        for entry in heads() {
            let reserved = matches!(entry.outcome, CycleOutcome::Reserved { .. });
            if entry.outcome == CycleOutcome::Nominated
                || engine.admission(entry.workload).is_some() != reserved
            {
                return Err(self.refute("a head did not get what was said"));
            }
            if let CycleOutcome::Migrating { from } = entry.outcome
                && !engine.is_evicted(from)
            {
                return Err(self.refute("a sibling is not on its way out"));
            }
            for target in &entry.targets {
                let announced = entry.outcome == CycleOutcome::Preempting;
                if announced
                    && (!victims.insert(target.workload) || !engine.is_evicted(target.workload))
                {
                    return Err(self.refute("a victim is claimed twice or not on its way out"));
                }
                if announced && engine.replacement_slice(target.workload).is_some() {
                    return Err(self.refute("a victim was taken over, so that it frees nothing"));
                }
            }
        }
        Ok(())
    }

    /// No limit is exceeded where somebody was admitted, once the victims of the cycle are gone.
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
                    return Err(self.refute(&format!("{queue} has {left} of {slot:?}")));
                }
            }
        }
        Ok(())
    }

    /// The books are those of an engine that was told everything at once. True after a cycle.
    pub(crate) fn nothing_of_a_what_if_stays_in_the_books(&self) -> Verdict {
        if Model::of(&self.player).is_cyclic() {
            return Ok(());
        }
        let mut fresh = self.fresh(false);
        fresh.cycle();
        let (own, other) = (self.player.engine.debug_dump(), fresh.engine.debug_dump());
        if own == other {
            return Ok(());
        }
        Err(self.refute(&format!("books\n{own}and not\n{other}")))
    }

    /// Runs cycles, and lets victims go, until nobody gets any further. False if that does not happen.
    pub(crate) fn comes_to_rest(&mut self) -> bool {
        let mut quiet = 0;
        for _ in 0..PATIENCE {
            self.lines.push("cycle".to_owned());
            let moved = moves(&self.player.cycle());
            let released = self.release(false);
            quiet = if moved || released { 0 } else { quiet + 1 };
            if quiet > super::WORKLOADS + 2 {
                return true;
            }
        }
        false
    }
}
