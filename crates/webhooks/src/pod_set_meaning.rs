//! Comparison of pod sets by what they mean, as Go compares decoded objects.
//!
//! A written form does not survive a Go program: it drops empty lists and fields with the value of an absent one, and writes
//! quantities in another unit. Fields that are pointers in Go keep both forms apart: `runAsNonRoot: false` is not an absent field.

use crds::{quantity::Quantity, v1beta2::PodSet};
use serde_json::{Map, Value, json};

/// Fields that are absent when false.
const FLAGS: [&str; 10] = [
    "chapAuthDiscovery",
    "chapAuthSession",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "readOnly",
    "sslEnabled",
    "stdin",
    "stdinOnce",
    "tty",
];
/// Fields that are absent when zero.
const NUMBERS: [&str; 7] = [
    "failureThreshold",
    "hostPort",
    "initialDelaySeconds",
    "partition",
    "periodSeconds",
    "successThreshold",
    "timeoutSeconds",
];
/// Fields of which an empty text is a value.
const TEXTS: [&str; 5] = [
    "apiGroup",
    "hostnameOverride",
    "runtimeClassName",
    "storageClassName",
    "volumeAttributesClassName",
];
/// Structs that are absent when empty.
const STRUCTS: [&str; 2] = ["metadata", "resources"];
/// Maps with keys and values of the user.
const MAPS: [&str; 6] =
    ["annotations", "labels", "matchLabels", "nodeSelector", "options", "volumeAttributes"];
/// Maps of quantities.
const AMOUNTS: [&str; 3] = ["limits", "overhead", "requests"];
/// A quantity that is absent when zero.
const DIVISOR: &str = "divisor";
/// A quantity that is a pointer.
const SIZE_LIMIT: &str = "sizeLimit";

/// Whether two pod sets mean the same.
pub(super) fn mean_the_same(one: &PodSet, other: &PodSet) -> bool {
    one == other || {
        let fields = |pod_set: &PodSet| PodSet { template: <_>::default(), ..pod_set.clone() };
        fields(one) == fields(other) && template(one) == template(other)
    }
}

fn template(pod_set: &PodSet) -> Option<Value> {
    meaning("", &json!(pod_set.template))
}

/// The value of a field without what an absent field means; none if the field is as good as absent.
fn meaning(field: &str, value: &Value) -> Option<Value> {
    let absent = match value {
        Value::Null => true,
        Value::Bool(flag) => !flag && FLAGS.contains(&field),
        Value::Number(number) => number.as_i64() == Some(0) && NUMBERS.contains(&field),
        Value::String(text) => text.is_empty() && !TEXTS.contains(&field),
        Value::Array(list) => list.is_empty(),
        Value::Object(_) => false,
    };
    if absent {
        return None;
    }
    match value {
        _ if field == SIZE_LIMIT => Some(amount(value)),
        _ if field == DIVISOR => Some(amount(value)).filter(|amount| amount != "0"),
        Value::Array(list) => Some(list.iter().map(element).collect()),
        Value::Object(map) => object(field, map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

/// An element of a list stays, whatever it means.
fn element(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields_of(fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value.clone()
        }
    }
}

fn object(field: &str, map: &Map<String, Value>) -> Option<Value> {
    let user = MAPS.contains(&field);
    let amounts = AMOUNTS.contains(&field);
    let kept = if user {
        map.clone()
    } else if amounts {
        map.iter().map(|(name, value)| (name.clone(), amount(value))).collect()
    } else {
        fields_of(map)
    };
    let optional = user || amounts || STRUCTS.contains(&field);
    (!optional || !kept.is_empty()).then_some(Value::Object(kept))
}

fn fields_of(map: &Map<String, Value>) -> Map<String, Value> {
    let kept = map.iter().filter_map(|(name, value)| Some((name.clone(), meaning(name, value)?)));
    kept.collect()
}

/// A quantity in the unit of all; any other value as it is.
fn amount(value: &Value) -> Value {
    let written = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return value.clone(),
    };
    written
        .parse()
        .map_or_else(|_| value.clone(), |parsed: Quantity| json!(parsed.nanos().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(target: &mut Value, fields: &Value) {
        for (name, value) in fields.as_object().expect("fields") {
            target[name] = value.clone();
        }
    }

    fn pod_set(container: &Value, pod: &Value) -> PodSet {
        let mut spec = json!({"restartPolicy": "Never", "containers": [{"name": "c"}]});
        add(&mut spec["containers"][0], container);
        add(&mut spec, pod);
        let written = json!({"name": "main", "count": 3, "template": {"spec": spec}});
        serde_json::from_value(written).expect("a pod set")
    }

    #[test]
    fn forms_of_one_meaning_are_equal() {
        let none = json!({});
        let cpu = |cpu: Value| json!({"resources": {"requests": {"cpu": cpu}}});
        let divisor = |divisor: &str| json!({"env": [{"valueFrom": {"resourceFieldRef": {"divisor": divisor}}}]});
        let volume =
            |limit: &str| json!({"volumes": [{"name": "v", "emptyDir": {"sizeLimit": limit}}]});
        for (one, other) in [
            (pod_set(&none, &json!({"hostNetwork": false})), pod_set(&none, &none)),
            (pod_set(&none, &json!({"hostAliases": [], "volumes": []})), pod_set(&none, &none)),
            (
                pod_set(&none, &json!({"nodeSelector": {}, "schedulerName": ""})),
                pod_set(&none, &none),
            ),
            (pod_set(&json!({"resources": {}, "args": []}), &none), pod_set(&none, &none)),
            (
                pod_set(&json!({"env": [{"name": "e", "value": ""}]}), &none),
                pod_set(&json!({"env": [{"name": "e"}]}), &none),
            ),
            (pod_set(&cpu(json!("1000m")), &none), pod_set(&cpu(json!(1)), &none)),
            (
                pod_set(&divisor("0"), &none),
                pod_set(&json!({"env": [{"valueFrom": {"resourceFieldRef": {}}}]}), &none),
            ),
            (pod_set(&none, &volume("1Gi")), pod_set(&none, &volume("1024Mi"))),
        ] {
            assert!(mean_the_same(&one, &other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn other_meanings_differ() {
        let none = json!({});
        let bare = pod_set(&none, &none);
        for other in [
            pod_set(&none, &json!({"hostNetwork": true})),
            pod_set(&none, &json!({"automountServiceAccountToken": false})),
            pod_set(&none, &json!({"terminationGracePeriodSeconds": 0})),
            pod_set(&none, &json!({"nodeSelector": {"a": ""}})),
            pod_set(&none, &json!({"volumes": [{"name": "v", "emptyDir": {}}]})),
            pod_set(&none, &json!({"securityContext": {}})),
            pod_set(&json!({"args": [""]}), &none),
            pod_set(&json!({"resources": {"requests": {"cpu": "0"}}}), &none),
            pod_set(&json!({"securityContext": {"runAsNonRoot": false}}), &none),
            PodSet { count: Some(2), ..bare.clone() },
        ] {
            assert!(!mean_the_same(&bare, &other), "{other:?}");
        }
    }
}
