//! Required node affinity to the hosts that a worker's agent has assigned to a pod set (docs/reference/dispatch.md §4).
//!
//! The requirement is the last of each term, since a node has to meet one term as a whole. It is restored to what the template of
//! the Workload has, and only if that and the requirement make up the present affinity: the affinity of others is not touched.

use crds::{names::labels::HOSTNAME, pod::PodSpec};
use serde_json::{Value, json};

const AFFINITY: &str = "affinity";
const NODE_AFFINITY: &str = "nodeAffinity";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const TERMS: &str = "nodeSelectorTerms";
const EXPRESSIONS: &str = "matchExpressions";

/// The affinity of a pod.
pub(crate) fn affinity_of(spec: &PodSpec) -> Option<&Value> {
    spec.rest.get(AFFINITY).filter(|affinity| !affinity.is_null())
}

/// Adds the requirement that a node is one of these hosts.
pub(crate) fn require_hosts(spec: &mut PodSpec, hosts: &[String]) {
    let required = with_hosts(affinity_of(spec), &json!(hosts));
    spec.rest.insert(AFFINITY.to_owned(), required);
}

/// Restores the affinity if it is `original` with a requirement of hosts.
pub(crate) fn restore(spec: &mut PodSpec, original: Option<&Value>) {
    let Some(present) = affinity_of(spec) else {
        return;
    };
    let Some(hosts) = hosts_of(present) else {
        return;
    };
    if with_hosts(original, hosts) != *present {
        return;
    }
    match original {
        Some(original) => spec.rest.insert(AFFINITY.to_owned(), original.clone()),
        None => spec.rest.remove(AFFINITY),
    };
}

/// The hosts of the last requirement of the first term.
fn hosts_of(affinity: &Value) -> Option<&Value> {
    let last = affinity[NODE_AFFINITY][REQUIRED][TERMS][0][EXPRESSIONS].as_array()?.last()?;
    (last["key"] == HOSTNAME && last["operator"] == "In").then_some(&last["values"])
}

fn with_hosts(affinity: Option<&Value>, hosts: &Value) -> Value {
    let requirement = json!({ "key": HOSTNAME, "operator": "In", "values": hosts });
    let mut affinity = affinity.filter(|one| one.is_object()).cloned().unwrap_or_else(|| json!({}));
    let terms = affinity[NODE_AFFINITY][REQUIRED][TERMS].as_array().cloned().unwrap_or_default();
    // A term that asks for nothing matches no node, and a requirement would make it match.
    let asks = |term: &Value| term.as_object().is_some_and(|term| term.values().any(is_filled));
    let limited: Vec<Value> = if terms.is_empty() {
        vec![json!({ EXPRESSIONS: [requirement] })]
    } else {
        terms
            .iter()
            .map(|term| if asks(term) { and(term, &requirement) } else { term.clone() })
            .collect()
    };
    let required = object_at(object_at(&mut affinity, NODE_AFFINITY), REQUIRED);
    required[TERMS] = Value::Array(limited);
    affinity
}

/// The object in a field. What is none, as in the template of an object that no API server has read, becomes one.
fn object_at<'a>(object: &'a mut Value, field: &str) -> &'a mut Value {
    let value = &mut object[field];
    if !value.is_object() {
        *value = json!({});
    }
    value
}

fn and(term: &Value, requirement: &Value) -> Value {
    let mut term = term.clone();
    let mut all = term[EXPRESSIONS].as_array().cloned().unwrap_or_default();
    all.push(requirement.clone());
    term[EXPRESSIONS] = Value::Array(all);
    term
}

fn is_filled(value: &Value) -> bool {
    value.as_array().is_some_and(|all| !all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(affinity: Option<Value>) -> PodSpec {
        let mut spec = PodSpec::default();
        spec.rest.extend(affinity.map(|affinity| (AFFINITY.to_owned(), affinity)));
        spec
    }

    fn terms(terms: &Value) -> Value {
        json!({ NODE_AFFINITY: { REQUIRED: { TERMS: terms } } })
    }

    #[test]
    fn a_pod_without_affinity_gets_one_term() {
        let mut pod = spec(None);
        require_hosts(&mut pod, &["a".to_owned(), "b".to_owned()]);
        let hosts = json!({ "key": HOSTNAME, "operator": "In", "values": ["a", "b"] });
        assert_eq!(affinity_of(&pod), Some(&terms(&json!([{ EXPRESSIONS: [hosts] }]))));
        restore(&mut pod, None);
        assert_eq!(pod, spec(None));
    }

    #[test]
    fn every_term_that_asks_for_something_is_limited_and_restored() {
        let ssd = json!({ "key": "disk", "operator": "In", "values": ["ssd"] });
        let name = json!({ "key": "metadata.name", "operator": "In", "values": ["a"] });
        let mut original = terms(&json!([
            { EXPRESSIONS: [ssd] }, { "matchFields": [name] }, {},
        ]));
        original["podAntiAffinity"] = json!({ "x": 1 });
        original[NODE_AFFINITY]["preferredDuringSchedulingIgnoredDuringExecution"] = json!([]);
        let mut pod = spec(Some(original.clone()));
        require_hosts(&mut pod, &["a".to_owned()]);
        let hosts = json!({ "key": HOSTNAME, "operator": "In", "values": ["a"] });
        let mut expected = original.clone();
        expected[NODE_AFFINITY][REQUIRED][TERMS] = json!([
            { EXPRESSIONS: [ssd, hosts] }, { "matchFields": [name], EXPRESSIONS: [hosts] }, {},
        ]);
        assert_eq!(affinity_of(&pod), Some(&expected));
        restore(&mut pod, Some(&original));
        assert_eq!(pod, spec(Some(original)));
    }

    #[test]
    fn a_template_that_no_api_server_has_read_is_no_reason_to_end() {
        for odd in
            [json!("x"), json!({ NODE_AFFINITY: 1 }), json!({ NODE_AFFINITY: { REQUIRED: [] } })]
        {
            let mut pod = spec(Some(odd));
            require_hosts(&mut pod, &["a".to_owned()]);
            assert!(affinity_of(&pod).and_then(hosts_of).is_some());
        }
        let mut pod = spec(Some(terms(&json!([{ EXPRESSIONS: "x" }, 1]))));
        require_hosts(&mut pod, &["a".to_owned()]);
    }

    #[test]
    fn an_affinity_of_others_stays() {
        let own = terms(&json!([{ EXPRESSIONS: [
            { "key": HOSTNAME, "operator": "In", "values": ["a"] },
        ]}]));
        let other = terms(&json!([{ EXPRESSIONS: [{ "key": "disk", "operator": "Exists" }] }]));
        for (present, original) in [(&own, &own), (&other, &own), (&own, &other)] {
            let mut pod = spec(Some(present.clone()));
            restore(&mut pod, Some(original));
            assert_eq!(affinity_of(&pod), Some(present));
        }
        let mut pod = spec(None);
        restore(&mut pod, Some(&own));
        assert_eq!(pod, spec(None));
    }
}
