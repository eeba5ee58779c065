//! What a pod requests beyond the pod set that stands for it (docs/reference/kueue.md §7.9).
//!
//! Quota is that of a pod set. The name of the pod set is only what the pod says of itself.

use std::collections::BTreeMap;

use crds::{
    pod::{Container, PodSpec},
    v1beta2::PodSetAssignment,
};

use crate::{
    amount::{from_nanos, quantity},
    config::IndexConfig,
    namespace::PodDefaultsTable,
    requests::{
        ExactAmounts,
        pod_requests::{PodDefaults, pod_requests},
    },
};

/// What a pod of a namespace requests beyond the quota of its pod set, as text; `None` if nothing. The amount of a resource is what was
/// assigned, or else what the API server would make of the template today.
pub(crate) fn exceeded_requests(
    (config, defaults): (&IndexConfig, &PodDefaultsTable),
    namespace: &str,
    pod: &PodSpec,
    (template, assigned): (&PodSpec, Option<&PodSetAssignment>),
) -> Option<String> {
    // A group has thousands of pods of one template.
    if requests_alike(pod, template) {
        return None;
    }
    let mut quota = pod_requests(template, defaults.of_pod(namespace, Some(template)));
    quota.extend(assigned.map(|one| assigned_to_pod(one, config)).unwrap_or_default());
    let of_role = |name: &str| quota.get(name).copied().unwrap_or_default();
    let text = |name: &str, nanos| quantity(name, from_nanos(name, nanos)).to_string();
    // The API server has completed the pod when it was created.
    let requests = pod_requests(pod, PodDefaults::default());
    let exceeded = requests.iter().filter(|(name, amount)| **amount > of_role(name));
    let named = exceeded.map(|(name, amount)| {
        format!("{name} {} instead of {}", text(name, *amount), text(name, of_role(name)))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Whether two pods have the same requests and limits, container by container.
fn requests_alike(one: &PodSpec, other: &PodSpec) -> bool {
    let alike = |one: &[Container], other: &[Container]| {
        let mut pairs = one.iter().zip(other);
        one.len() == other.len()
            && pairs.all(|(one, other)| {
                one.resources == other.resources && one.restart_policy == other.restart_policy
            })
    };
    alike(&one.containers, &other.containers)
        && alike(&one.init_containers, &other.init_containers)
        && one.resources == other.resources
        && one.overhead == other.overhead
}

/// Assigned amounts of one pod, of resources that count as the pod requests them.
fn assigned_to_pod<'a>(assigned: &'a PodSetAssignment, config: &IndexConfig) -> ExactAmounts<'a> {
    let count = i128::from(assigned.count.unwrap_or(1)).max(1);
    let is_transformed = |name: &str| {
        let mut all = config.transformations.iter();
        all.any(|one| one.input == name || one.outputs.iter().any(|(output, _)| output == name))
    };
    let amounts = assigned.resource_usage.iter().filter(|(name, _)| !is_transformed(name));
    amounts.map(|(name, usage)| (name.as_str(), usage.nanos() / count)).collect::<BTreeMap<_, _>>()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{config::ResourceTransformation, index::Index};

    fn spec(fields: &Value) -> PodSpec {
        serde_json::from_value(fields.clone()).expect("a pod spec")
    }

    fn container(resources: &Value) -> Value {
        json!({"containers": [{"name": "c", "resources": resources}]})
    }

    /// Namespace `ns` with a default request of one CPU, and a RuntimeClass with half a CPU of overhead.
    fn index() -> Index {
        let mut index = Index::new(IndexConfig::default());
        let limits = json!([{"type": "Container", "defaultRequest": {"cpu": "1"}}]);
        let range = serde_json::from_value(json!({"spec": {"limits": limits}})).expect("a range");
        index.limit_range("ns", "defaults", Some(&range));
        let class = json!({"handler": "kata", "overhead": {"podFixed": {"cpu": "500m"}}});
        let class = serde_json::from_value(class).expect("a class");
        index.runtime_class("kata", Some(&class));
        index
    }

    #[test]
    fn a_pod_that_requests_more_than_its_template_is_named_with_both_amounts() {
        let template = container(&json!({"requests": {"cpu": "1", "example.com/gpu": "1"}}));
        let pod = container(
            &json!({"requests": {"cpu": "500m", "example.com/gpu": "8", "memory": "1Gi"}}),
        );
        let exceeded = index().exceeded_requests("ns", &spec(&pod), (&spec(&template), None));
        assert_eq!(
            exceeded.as_deref(),
            Some("example.com/gpu 8 instead of 1, memory 1Gi instead of 0")
        );
        assert_eq!(
            index().exceeded_requests("ns", &spec(&template), (&spec(&template), None)),
            None
        );
    }

    #[test]
    fn a_template_counts_as_the_api_server_completes_its_pods() {
        let kata = |mut pod: Value, overhead: Value| {
            pod["runtimeClassName"] = json!("kata");
            pod["overhead"] = overhead;
            pod
        };
        let requests = |cpu: &str| container(&json!({"requests": {"cpu": cpu}}));
        let bare = container(&json!({}));
        let limit =
            |cpu: &str| container(&json!({"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}));
        let half = json!({"cpu": "500m"});
        let pod_level = |cpu: &str| {
            let mut pod = requests("1");
            pod["resources"] = json!({"requests": {"cpu": cpu}});
            pod
        };
        for (template, pod, exceeds) in [
            (container(&json!({"limits": {"cpu": "3"}})), limit("3"), false),
            (container(&json!({"limits": {"cpu": "3"}})), limit("4"), true),
            (bare.clone(), requests("1"), false),
            (bare, requests("2"), true),
            (kata(requests("1"), json!({})), kata(requests("1"), half.clone()), false),
            (kata(requests("1"), json!({})), kata(requests("2"), half), true),
            (pod_level("2"), pod_level("2"), false),
            (pod_level("2"), pod_level("3"), true),
        ] {
            let exceeded = index().exceeded_requests("ns", &spec(&pod), (&spec(&template), None));
            assert_eq!(exceeded.is_some(), exceeds, "{pod} of {template}: {exceeded:?}");
        }
    }

    #[test]
    fn a_pod_may_request_what_was_assigned_to_its_pod_set() {
        let assigned = |cpu: &str, count: i32| -> PodSetAssignment {
            let fields = json!({"name": "main", "count": count, "resourceUsage": {"cpu": cpu}});
            serde_json::from_value(fields).expect("an assignment")
        };
        let bare = container(&json!({}));
        let cpu = |amount: &str| container(&json!({"requests": {"cpu": amount}}));
        let exceeded = |index: &Index, pod: &Value, assigned: &PodSetAssignment| {
            index.exceeded_requests("ns", &spec(pod), (&spec(&bare), Some(assigned)))
        };
        // The default was lowered to one CPU since, and raised to it.
        assert_eq!(exceeded(&index(), &cpu("2"), &assigned("6", 3)), None);
        let raised = exceeded(&index(), &cpu("1"), &assigned("1500m", 3));
        assert_eq!(raised.as_deref(), Some("cpu 1 instead of 500m"));
        assert_eq!(exceeded(&index(), &bare, &assigned("1500m", 3)), None, "it has no request");
        let memory = container(&json!({"requests": {"cpu": "1", "memory": "1Gi"}}));
        let other = exceeded(&index(), &memory, &assigned("3", 3));
        assert_eq!(other.as_deref(), Some("memory 1Gi instead of 0"));
        let mut transformed = index();
        let doubled = ResourceTransformation {
            input: "cpu".to_owned(),
            outputs: vec![("cpu".to_owned(), "1".parse().expect("a quantity"))],
            ..ResourceTransformation::default()
        };
        transformed.config.transformations.push(doubled);
        let exceeded = exceeded(&transformed, &cpu("2"), &assigned("6", 3));
        assert_eq!(exceeded.as_deref(), Some("cpu 2 instead of 1"));
    }
}
