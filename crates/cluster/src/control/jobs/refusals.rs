//! Why units of work last got no Workload, or did not start: an Event says so once.

use ::jobs::{JobObject, reconcile::ReconcileStep};

use crate::control::key_map::KeyMap;

/// See the module. A unit is a job or a group of pods.
#[derive(Debug)]
pub(super) struct Refusals<U> {
    by_unit: KeyMap<U, String>,
}

impl<U> Default for Refusals<U> {
    fn default() -> Self {
        Self { by_unit: KeyMap::new() }
    }
}

impl<U: Ord + Clone> Refusals<U> {
    /// Removes a refusal from the steps of a unit that was reported already: it follows from every change of the unit.
    pub(super) fn report_once(&mut self, unit: &U, steps: &mut Vec<ReconcileStep<JobObject>>) {
        let refused = steps.iter().find_map(|step| match step {
            ReconcileStep::Refuse { message, .. } => Some(message.clone()),
            _ => None,
        });
        let Some(message) = refused else {
            return;
        };
        if !self.is_news(unit, &message) {
            steps.retain(|step| !matches!(step, ReconcileStep::Refuse { .. }));
        }
    }

    /// Records why a unit is refused. Returns whether the last refusal had another reason.
    pub(super) fn is_news(&mut self, unit: &U, message: &str) -> bool {
        let known = self.by_unit.insert(unit.clone(), message.to_owned());
        known.is_none_or(|known| known != message)
    }

    /// Units that were refused.
    pub(super) fn units(&self) -> impl Iterator<Item = &U> {
        self.by_unit.keys()
    }

    /// Forgets a unit that is gone.
    pub(super) fn remove(&mut self, unit: &U) {
        self.by_unit.remove(unit);
    }
}
