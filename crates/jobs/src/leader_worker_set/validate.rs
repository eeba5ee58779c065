//! Validation rules of LeaderWorkerSets only (docs/reference/kueue.md §5.3).

use crds::validation::{Errors, immutable};

use super::set::{LEADER, LeaderWorkerSet};
use crate::{GenericJob, JobGates, pods::template_shape};

/// Errors of an update: what decides about the placement of pods is that of the admitted Workloads.
pub(super) fn update(set: &LeaderWorkerSet, old: &LeaderWorkerSet, gates: JobGates) -> Errors {
    // A set without a queue has no Workloads that its pods could differ from, unless every job is managed.
    if set.queue_name().is_empty() && !old.is_marked() {
        return Errors::new();
    }
    let at = "spec.leaderWorkerTemplate";
    let mut errors = Errors::new();
    if gates.immutable_group_size && set.size() != old.size() {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_is_immutable_under_its_gate() {
        let set = |size: i64| -> LeaderWorkerSet {
            let object = json!({
                "metadata": {
                    "name": "d", "namespace": "ns", "uid": "u",
                    "labels": { "kueue.x-k8s.io/queue-name": "main" },
                },
                "spec": { "leaderWorkerTemplate": {
                    "size": size, "workerTemplate": { "spec": { "containers": [{ "name": "c" }] } },
                } },
            });
            LeaderWorkerSet::decode(object).expect("a set decodes")
        };
        let refused = |immutable_group_size: bool| {
            let gates = JobGates { immutable_group_size, ..JobGates::default() };
            let errors = update(&set(4), &set(3), gates);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let [refusal] = &refused(true)[..] else { panic!("{:?}", refused(true)) };
        assert!(
            refusal.starts_with("spec.leaderWorkerTemplate.size: Invalid value: 4"),
            "{refusal}"
        );
        assert_eq!(refused(false), [""; 0]);
    }

    #[test]
    fn a_set_without_a_queue_is_bound_if_its_pods_are_held() {
        let set = |size: i64, parent: &str| -> LeaderWorkerSet {
            let annotations = json!({ "kueue.x-k8s.io/pod-suspending-parent": parent });
            let object = json!({
                "metadata": { "name": "d", "namespace": "ns", "uid": "u" },
                "spec": { "leaderWorkerTemplate": { "size": size, "workerTemplate": {
                    "metadata": { "annotations": annotations },
                    "spec": { "containers": [{ "name": "c" }] },
                } } },
            });
            LeaderWorkerSet::decode(object).expect("a set decodes")
        };
        let gates = JobGates { immutable_group_size: true, ..JobGates::default() };
        let n_errors = |parent: &str| update(&set(4, parent), &set(3, parent), gates).len();
        assert_eq!(n_errors("leaderworkerset.x-k8s.io/leaderworkerset"), 1);
        assert_eq!(n_errors(""), 0);
    }
}
