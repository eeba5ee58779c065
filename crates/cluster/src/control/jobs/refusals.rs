//! Why units of work last got no Workload, or did not start: an Event says so, and again while it lasts.

use ::jobs::{JobObject, reconcile::ReconcileStep};
use jiff::{SignedDuration, Timestamp};

use crate::control::{key_map::KeyMap, time::moved};

/// When a refusal with the same text is reported again: the API server deletes Events after an hour.
const REPEATED_AFTER: SignedDuration = SignedDuration::from_mins(30);

/// The shortest time between two reports about a write that is repeated: its text may vary each time.
const PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// Characters of a text that are compared. An Event has no more.
const COMPARED: usize = 1024;

/// What was reported, and when.
#[derive(Debug)]
struct Reported {
    message: String,
    at: Timestamp,
}

/// The last refusal of each unit of work. A unit is a job or a group of pods.
#[derive(Debug)]
pub(super) struct Refusals<U> {
    by_unit: KeyMap<U, Reported>,
}

impl<U> Default for Refusals<U> {
    fn default() -> Self {
        Self { by_unit: KeyMap::new() }
    }
}

impl<U: Ord + Clone> Refusals<U> {
    /// Removes a refusal from the steps of a unit that was reported already: it follows from every change of the unit.
    pub(super) fn report_once(
        &mut self,
        unit: &U,
        steps: &mut Vec<ReconcileStep<JobObject>>,
        now: Timestamp,
    ) {
        let refused = steps.iter().find_map(|step| match step {
            ReconcileStep::Refuse { message, .. } => Some(message.clone()),
            _ => None,
        });
        let Some(message) = refused else {
            return;
        };
        if !self.record_report(unit, &message, now) {
            steps.retain(|step| !matches!(step, ReconcileStep::Refuse { .. }));
        }
    }

    /// Records why a unit is refused. Returns whether that is to be reported: the last report had another reason, or is old.
    pub(super) fn record_report(&mut self, unit: &U, message: &str, now: Timestamp) -> bool {
        let message: String = message.chars().take(COMPARED).collect();
        let differs = self.by_unit.get(unit).is_none_or(|known| {
            known.message != message || now.duration_since(known.at) >= REPEATED_AFTER
        });
        if differs {
            self.by_unit.insert(unit.clone(), Reported { message, at: now });
        }
        differs
    }

    /// The same of a write that is repeated whatever happens. The next attempt shows what is not reported now.
    pub(super) fn record_due_report(&mut self, unit: &U, message: &str, now: Timestamp) -> bool {
        let known = self.by_unit.get(unit);
        let rests = known.is_some_and(|known| now.duration_since(known.at) < PAUSE);
        !rests && self.record_report(unit, message, now)
    }

    /// Units that were refused.
    pub(super) fn units(&self) -> impl Iterator<Item = &U> {
        self.by_unit.keys()
    }

    /// The clock jumped: a report is as old as before.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        self.by_unit.for_each_mut(|_, known| known.at = moved(known.at, by));
    }

    /// Forgets a unit that is gone.
    pub(super) fn remove(&mut self, unit: &U) {
        self.by_unit.remove(unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_as_old_after_a_jump_of_the_clock_as_before() {
        let now = Timestamp::UNIX_EPOCH;
        for by in [3, -3].map(SignedDuration::from_hours) {
            let mut refusals = Refusals::default();
            assert!(refusals.record_due_report(&1, "a", now));
            refusals.clock_jumped(by);
            assert!(
                !refusals.record_due_report(&1, "b", now + by + SignedDuration::from_secs(299)),
                "{by}"
            );
            assert!(refusals.record_due_report(&1, "b", now + by + PAUSE), "{by}");
        }
    }
}
