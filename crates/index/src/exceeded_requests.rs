//! What a pod requests beyond the pod set that stands for it (docs/reference/kueue.md §7.9).
//!
//! Quota is that of the template of a pod set. The name of the pod set is only what the pod says of itself.

use crds::pod::PodSpec;

use crate::{
    amount::{from_nanos, quantity},
    index::Index,
    requests::pod_requests::pod_requests,
    workload::pod_defaults,
};

impl Index {
    /// What a pod of a namespace requests beyond the template of its pod set, as text; `None` if nothing. Both are completed alike, so
    /// that a pod made from the template never requests more.
    #[must_use]
    pub fn exceeded_requests(
        &self,
        namespace: &str,
        pod: &PodSpec,
        template: &PodSpec,
    ) -> Option<String> {
        let requests = |spec| pod_requests(spec, pod_defaults(self, namespace, Some(spec)));
        let (pod, role) = (requests(pod), requests(template));
        let of_role = |name: &str| role.get(name).copied().unwrap_or_default();
        let text = |name: &str, nanos| quantity(name, from_nanos(name, nanos)).to_string();
        let exceeded = pod.iter().filter(|(name, amount)| **amount > of_role(name));
        let named = exceeded.map(|(name, amount)| {
            format!("{name} {} instead of {}", text(name, *amount), text(name, of_role(name)))
        });
        let named: Vec<String> = named.collect();
        (!named.is_empty()).then(|| named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::IndexConfig;

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
        let exceeded = index().exceeded_requests("ns", &spec(&pod), &spec(&template));
        assert_eq!(
            exceeded.as_deref(),
            Some("example.com/gpu 8 instead of 1, memory 1Gi instead of 0")
        );
        assert_eq!(index().exceeded_requests("ns", &spec(&template), &spec(&template)), None);
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
            let exceeded = index().exceeded_requests("ns", &spec(&pod), &spec(&template));
            assert_eq!(exceeded.is_some(), exceeds, "{pod} of {template}: {exceeded:?}");
        }
    }
}
