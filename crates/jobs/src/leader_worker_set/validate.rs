//! Validation rules of LeaderWorkerSets only (docs/reference/kueue.md §5.3).

use crds::validation::{Errors, immutable};

use super::set::{LEADER, LeaderWorkerSet};
use crate::{GenericJob, pods::template_shape};

/// Errors of an update: what decides about the placement of pods is that of the admitted Workloads.
pub(super) fn update(set: &LeaderWorkerSet, old: &LeaderWorkerSet) -> Errors {
    // A set without a queue has no Workloads that its pods could differ from.
    if set.queue_name().is_empty() {
        return Errors::new();
    }
    let at = "spec.leaderWorkerTemplate";
    let mut errors = Errors::new();
    if set.size() != old.size() {
        errors.push(immutable(format!("{at}.size"), set.size()));
    }
    if set.has_leader_template() != old.has_leader_template() {
        let template = set.stored_template(LEADER).cloned().unwrap_or_default();
        errors.push(immutable(format!("{at}.{LEADER}"), template));
    }
    for (name, template) in set.pod_templates() {
        let mut before = old.pod_templates();
        let Some((_, before)) = before.find(|(before, _)| *before == name) else { continue };
        let [now, before] = [template, before].map(|one| one.spec.clone().unwrap_or_default());
        errors.extend(template_shape::changes(&format!("{at}.{name}.spec"), &now, &before));
    }
    errors
}
