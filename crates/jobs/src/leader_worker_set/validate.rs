//! Validation rules of LeaderWorkerSets only (docs/reference/kueue.md §5.3).

use crds::validation::{Errors, FieldError, immutable};

use super::set::{LEADER, LeaderWorkerSet};
use crate::{JobGates, pods::template_shape};

/// The most replicas. Each has a Workload.
const MOST_REPLICAS: i64 = 1_000_000;

/// Errors of a new set.
pub(super) fn create(set: &LeaderWorkerSet) -> Errors {
    check_replicas(set).into_iter().collect()
}

fn check_replicas(set: &LeaderWorkerSet) -> Option<FieldError> {
    let replicas = set.replicas();
    let detail = match replicas {
        ..0 => "must be greater than or equal to 0".to_owned(),
        0..=MOST_REPLICAS => return None,
        _ => format!("must be less than or equal to {MOST_REPLICAS}"),
    };
    Some(FieldError::invalid("spec.replicas", replicas, detail))
}

/// Errors of an update: what decides about the placement of pods is that of the admitted Workloads.
pub(super) fn update(set: &LeaderWorkerSet, old: &LeaderWorkerSet, gates: JobGates) -> Errors {
    let mut errors = Errors::new();
    // A set that was there before this rule can still be changed in other ways.
    if set.replicas() != old.replicas() {
        errors.extend(check_replicas(set));
    }
    // A set without marks has no Workloads that its pods could differ from: it is not managed, or its owner is.
    if !old.is_marked() {
        return errors;
    }
    let at = "spec.leaderWorkerTemplate";
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
    use serde_json::{Value, json};

    use super::*;
    use crate::{GenericJob, generic_job::SetSize};

    /// A set of replicas with so many pods, which the parent holds.
    fn set(size: i64, parent: &str, replicas: &Value) -> LeaderWorkerSet {
        let annotations = json!({ "kueue.x-k8s.io/pod-suspending-parent": parent });
        let object = json!({
            "metadata": {
                "name": "d", "namespace": "ns", "uid": "u",
                "labels": { "kueue.x-k8s.io/queue-name": "main" },
            },
            "spec": { "replicas": replicas, "leaderWorkerTemplate": {
                "size": size, "workerTemplate": {
                    "metadata": { "annotations": annotations },
                    "spec": { "containers": [{ "name": "c" }] },
                },
            } },
        });
        LeaderWorkerSet::decode(object).expect("a set decodes")
    }

    const HELD: &str = "leaderworkerset.x-k8s.io/leaderworkerset";

    #[test]
    fn the_size_is_immutable_under_its_gate() {
        let set = |size: i64| set(size, HELD, &json!(1));
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
    fn a_set_is_bound_if_its_pods_are_held() {
        let gates = JobGates { immutable_group_size: true, ..JobGates::default() };
        for queue in [true, false] {
            let n_errors = |parent: &str| {
                let [now, before] = [4, 3].map(|size| {
                    let mut set = set(size, parent, &json!(1));
                    if !queue {
                        set.metadata_mut().labels = None;
                    }
                    set
                });
                update(&now, &before, gates).len()
            };
            assert_eq!(n_errors(HELD), 1, "{queue}");
            assert_eq!(n_errors(""), 0, "{queue}: a managed owner resizes it");
        }
    }

    #[test]
    fn replicas_have_bounds() {
        for (replicas, detail) in [
            (json!(-1), Some("must be greater than or equal to 0")),
            (json!(1_000_001), Some("must be less than or equal to 1000000")),
            (json!(0), None),
            (json!(1_000_000), None),
            (Value::Null, None),
        ] {
            let one = set(1, HELD, &replicas);
            let gates = JobGates::default();
            let created = crate::validate::create(&one, gates);
            let changed = crate::validate::update(&one, &set(1, HELD, &json!(2)), false, gates);
            assert_eq!(created, changed, "{replicas}");
            let texts: Vec<String> = created.iter().map(ToString::to_string).collect();
            let expected =
                detail.map(|it| format!("spec.replicas: Invalid value: {replicas}: {it}"));
            assert_eq!(texts, Vec::from_iter(expected));
            assert_eq!(crate::validate::update(&one, &one, false, gates), [], "it stays");
        }
        let negative = set(1, HELD, &json!(-1)).set_size();
        assert!(matches!(negative, Some(SetSize::Replicas { replicas: 0, .. })), "{negative:?}");
    }
}
