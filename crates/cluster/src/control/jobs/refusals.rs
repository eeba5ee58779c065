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
        let known = self.by_unit.insert(unit.clone(), message.clone());
        if known.as_ref() == Some(&message) {
            steps.retain(|step| !matches!(step, ReconcileStep::Refuse { .. }));
        }
    }

    /// Forgets a unit that is gone.
    pub(super) fn remove(&mut self, unit: &U) {
        self.by_unit.remove(unit);
    }
}
