//! Defaults of the API in pod templates.
//!
//! The API server sets the defaults of a kind's schema, and not every kind with pods has those of a Workload: of a template and its
//! stored copy, one may have a field that the other lacks. Both mean the same pods.

use serde_json::{Map, Value, json};

use crate::{
    pod::{PodTemplate, SharedFields},
    schema::POD_TEMPLATE_SCHEMA,
    v1beta2::PodSet,
};

/// Whether two templates are equal once they have their defaults.
#[must_use]
pub fn same_template(one: &PodTemplate, other: &PodTemplate) -> bool {
    let full = |template: &PodTemplate| with_defaults(json!(template), &POD_TEMPLATE_SCHEMA);
    one == other || full(one) == full(other)
}

/// Whether two pod sets are equal once their templates have their defaults.
#[must_use]
pub fn same_pod_set(one: &PodSet, other: &PodSet) -> bool {
    let rest = |set: &PodSet| PodSet { template: PodTemplate::default(), ..set.clone() };
    one == other || (rest(one) == rest(other) && same_template(&one.template, &other.template))
}

/// Whether two lists of pod sets are equal once their templates have their defaults.
#[must_use]
pub fn same_pod_sets(one: &[PodSet], other: &[PodSet]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_pod_set(one, other))
}

/// Whether fields of two containers are equal once they have their defaults.
#[must_use]
pub fn same_container_fields(one: &SharedFields, other: &SharedFields) -> bool {
    let container = &POD_TEMPLATE_SCHEMA["properties"]["spec"]["properties"]["containers"]["items"];
    let full = |fields: &SharedFields| with_defaults(json!(fields), container);
    one == other || full(one) == full(other)
}

fn with_defaults(mut value: Value, schema: &Value) -> Value {
    set_defaults(&mut value, schema);
    value
}

fn set_defaults(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(object) => match &schema["properties"] {
            Value::Object(properties) => set_in_struct(object, properties),
            _ => {
                let values = &schema["additionalProperties"];
                object.values_mut().for_each(|value| set_defaults(value, values));
            }
        },
        Value::Array(items) => {
            items.iter_mut().for_each(|item| set_defaults(item, &schema["items"]));
        }
        _ => {}
    }
}

fn set_in_struct(object: &mut Map<String, Value>, properties: &Map<String, Value>) {
    for (name, schema) in properties {
        // An explicit null is an unset field.
        if let Some(default) = schema.get("x-default")
            && object.get(name).is_none_or(Value::is_null)
        {
            object.insert(name.clone(), default.clone());
        }
        if let Some(value) = object.get_mut(name) {
            set_defaults(value, schema);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(container: &Value) -> PodTemplate {
        let template = json!({"spec": {"containers": [container]}});
        serde_json::from_value(template).expect("a template decodes")
    }

    /// The service of a gRPC probe has a default in the API of Kubernetes.
    #[test]
    fn a_service_of_a_probe_is_empty_by_default() {
        let probe = |action: Value| json!({"livenessProbe": {"grpc": action}});
        let absent = template(&probe(json!({"port": 80})));
        let null = template(&probe(json!({"port": 80, "service": null})));
        let empty = template(&probe(json!({"port": 80, "service": ""})));
        let other = template(&probe(json!({"port": 80, "service": "s"})));
        assert!(same_template(&absent, &empty) && same_template(&null, &empty));
        assert!(!same_template(&other, &empty));
        let fields = |template: &PodTemplate| {
            template.spec.as_deref().expect("a spec").containers[0].rest.clone()
        };
        assert!(same_container_fields(&fields(&absent), &fields(&empty)));
        assert!(!same_container_fields(&fields(&other), &fields(&empty)));
    }

    #[test]
    fn no_struct_appears_for_a_default_in_it() {
        let (none, probe) = (template(&json!({})), template(&json!({"livenessProbe": {}})));
        assert!(!same_template(&none, &probe));
    }
}
