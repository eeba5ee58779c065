//! Label selectors, taints and tolerations in the engine's terms.
//!
//! The API server validated the objects. A malformed part never matches more: an invalid requirement matches nothing,
//! an invalid toleration tolerates nothing.

use std::collections::BTreeMap;

use crds::meta::{LabelSelector, LabelSelectorRequirement, Taint, Toleration};
use crds::pod::PodSpec;
use engine::node_selection::{
    self, LabelOperator, LabelRequirement, NodeSelection, NodeSelectorTerm, TaintEffect,
    TolerationOperator, integer,
};
use engine::topology::PreferredTerm;
use serde_json::Value;

/// Labels, sorted by key.
pub(crate) type LabelPairs = Vec<(Box<str>, Box<str>)>;

pub(crate) fn pairs(map: &BTreeMap<String, String>) -> LabelPairs {
    map.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

/// Requirements of a label selector.
pub(crate) fn selector(selector: &LabelSelector) -> Vec<LabelRequirement> {
    let labels = selector.match_labels.iter().map(|(key, value)| LabelRequirement {
        key: key.as_str().into(),
        operator: LabelOperator::In(vec![value.as_str().into()]),
    });
    labels.chain(selector.match_expressions.iter().map(requirement)).collect()
}

fn requirement(one: &LabelSelectorRequirement) -> LabelRequirement {
    let values = one.values.iter().map(|value| value.as_str().into()).collect();
    LabelRequirement { key: one.key.as_str().into(), operator: operator(&one.operator, values) }
}

fn operator(name: &str, values: Vec<Box<str>>) -> LabelOperator {
    // Gt and Lt compare with one integer; without one the requirement matches nothing.
    let bound = || values.first().and_then(|value| value.parse().ok());
    match name {
        "NotIn" => LabelOperator::NotIn(values),
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        "Gt" => bound().map_or(LabelOperator::In(Vec::new()), LabelOperator::Gt),
        "Lt" => bound().map_or(LabelOperator::In(Vec::new()), LabelOperator::Lt),
        "In" => LabelOperator::In(values),
        _ => LabelOperator::In(Vec::new()),
    }
}

fn effect(name: &str) -> Option<TaintEffect> {
    let all = [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];
    all.into_iter().find(|one| one.name() == name)
}

/// Taints; an unknown effect counts as NoSchedule.
pub(crate) fn taints(taints: &[Taint]) -> Vec<node_selection::NodeTaint> {
    let one = |taint: &Taint| node_selection::NodeTaint {
        key: taint.key.as_str().into(),
        value: taint.value.as_str().into(),
        // An unknown effect keeps pods away rather than letting them in.
        effect: effect(&taint.effect).unwrap_or(TaintEffect::NoSchedule),
    };
    taints.iter().map(one).collect()
}

/// Tolerations.
pub(crate) fn tolerations(tolerations: &[Toleration]) -> Vec<node_selection::PodToleration> {
    tolerations.iter().filter_map(toleration).collect()
}

fn toleration(one: &Toleration) -> Option<node_selection::PodToleration> {
    let operator = match one.operator.as_str() {
        // An empty operator is Equal, as in Kubernetes.
        "" | "Equal" => TolerationOperator::Equal(one.value.as_str().into()),
        "Exists" => TolerationOperator::Exists,
        "Gt" => TolerationOperator::Gt(integer(&one.value)?),
        "Lt" => TolerationOperator::Lt(integer(&one.value)?),
        _ => return None,
    };
    let effect = match one.effect.as_str() {
        "" => None,
        // An unknown effect must not widen to all effects.
        name => Some(effect(name)?),
    };
    Some(node_selection::PodToleration { key: one.key.as_str().into(), operator, effect })
}

/// Node selection of a pod template: selector, required affinity, tolerations.
pub(crate) fn selection(pod: &PodSpec) -> NodeSelection {
    NodeSelection {
        node_selector: pairs(&pod.node_selector),
        affinity: terms(pod),
        tolerations: tolerations(&pod.tolerations),
    }
}

fn terms(pod: &PodSpec) -> Option<Vec<NodeSelectorTerm>> {
    let affinity = node_affinity(pod, "requiredDuringSchedulingIgnoredDuringExecution")?;
    let terms = affinity.get("nodeSelectorTerms")?.as_array()?;
    Some(terms.iter().map(node_term).collect())
}

fn node_term(term: &Value) -> NodeSelectorTerm {
    NodeSelectorTerm {
        labels: requirements(term, "matchExpressions"),
        fields: requirements(term, "matchFields"),
    }
}

fn node_affinity<'a>(pod: &'a PodSpec, which: &str) -> Option<&'a Value> {
    pod.rest.get("affinity")?.get("nodeAffinity")?.get(which)
}

fn requirements(term: &Value, which: &str) -> Vec<LabelRequirement> {
    let expressions = term.get(which).and_then(Value::as_array);
    expressions.into_iter().flatten().map(expression).collect()
}

/// Preferred node affinity of a pod template.
pub(crate) fn preferred(pod: &PodSpec) -> Box<[PreferredTerm]> {
    let terms = node_affinity(pod, "preferredDuringSchedulingIgnoredDuringExecution");
    let terms = terms.and_then(Value::as_array).into_iter().flatten();
    terms.filter_map(preferred_term).collect()
}

fn preferred_term(one: &Value) -> Option<PreferredTerm> {
    let weight = i32::try_from(one.get("weight")?.as_i64()?).ok()?;
    Some(PreferredTerm { weight, preference: node_term(one.get("preference")?) })
}

fn expression(one: &Value) -> LabelRequirement {
    let text = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default();
    let values = one.get("values").and_then(Value::as_array).into_iter().flatten();
    let values = values.filter_map(Value::as_str).map(Into::into).collect();
    LabelRequirement { key: text("key").into(), operator: operator(text("operator"), values) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(value: Value) -> PodSpec {
        serde_json::from_value(value).expect("a pod spec")
    }

    fn labels(pairs: &[(&str, &str)]) -> LabelPairs {
        pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
    }

    #[test]
    fn required_node_affinity_is_read_from_the_template() {
        let selection = selection(&pod(json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["a"]},
                    {"key": "gen", "operator": "Gt", "values": ["3"]},
                ]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                 "matchExpressions": [{"key": "disk", "operator": "Exists"}]},
            ]},
        }}})));
        assert!(selection.allows_node("n2", &labels(&[("gen", "4"), ("zone", "a")])));
        assert!(!selection.allows_node("n2", &labels(&[("gen", "3"), ("zone", "a")])));
        assert!(selection.allows_node("n1", &labels(&[("disk", "ssd")])));
        assert!(!selection.allows_node("n2", &labels(&[("disk", "ssd")])));
    }

    #[test]
    fn preferred_node_affinity_is_read_with_weights_labels_and_fields() {
        let name = json!([{"key": "metadata.name", "operator": "In", "values": ["n1"]}]);
        let operators = json!([
            {"key": "zone", "operator": "In", "values": ["a", "b"]},
            {"key": "zone", "operator": "NotIn", "values": ["c"]},
            {"key": "disk", "operator": "Exists"},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "gen", "operator": "Gt", "values": ["3"]},
            {"key": "gen", "operator": "Lt", "values": ["9"]},
        ]);
        let read = preferred(&pod(json!({"affinity": {"nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 70, "preference": {"matchExpressions": operators}},
                {"weight": 1, "preference": {"matchFields": name}},
                {"weight": 3, "preference": {}},
            ],
        }}})));
        let one = |key: &str, operator| LabelRequirement { key: key.into(), operator };
        let labels = vec![
            one("zone", LabelOperator::In(vec!["a".into(), "b".into()])),
            one("zone", LabelOperator::NotIn(vec!["c".into()])),
            one("disk", LabelOperator::Exists),
            one("old", LabelOperator::DoesNotExist),
            one("gen", LabelOperator::Gt(3)),
            one("gen", LabelOperator::Lt(9)),
        ];
        let fields = vec![one("metadata.name", LabelOperator::In(vec!["n1".into()]))];
        let term = |weight, labels, fields| PreferredTerm {
            weight,
            preference: NodeSelectorTerm { labels, fields },
        };
        let expected = [term(70, labels, vec![]), term(1, vec![], fields), term(3, vec![], vec![])];
        assert_eq!(*read, expected);
    }

    #[test]
    fn required_affinity_is_not_preferred_affinity() {
        let pod = pod(json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
            ]},
        }}}));
        assert!(preferred(&pod).is_empty());
        assert!(selection(&pod).affinity.is_some());
    }

    #[test]
    fn malformed_parts_match_nothing() {
        for (operator, values) in [("Gt", json!(["x"])), ("Near", json!(["a"])), ("Lt", json!([]))]
        {
            let one = expression(&json!({"key": "zone", "operator": operator, "values": values}));
            assert!(!one.matches(&labels(&[("zone", "a")])), "{operator}");
        }
        for (operator, value) in [("Near", "a"), ("Gt", "x"), ("Lt", "")] {
            let (operator, value) = (operator.into(), value.into());
            let strange = Toleration { operator, value, ..Toleration::default() };
            assert_eq!(tolerations(&[strange]), []);
        }
    }

    #[test]
    fn a_toleration_may_compare_integers() {
        let one = Toleration { operator: "Lt".into(), value: "-5".into(), ..Toleration::default() };
        let read = tolerations(&[one]);
        assert_eq!(read.first().map(|one| &one.operator), Some(&TolerationOperator::Lt(-5)));
    }

    #[test]
    fn a_toleration_without_operator_compares_the_value() {
        let one = Toleration { key: "team".into(), value: "a".into(), ..Toleration::default() };
        let read = tolerations(&[one]);
        let equal = TolerationOperator::Equal("a".into());
        assert_eq!(read.first().map(|one| &one.operator), Some(&equal));
    }
}
