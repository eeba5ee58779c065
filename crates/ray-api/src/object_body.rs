//! The body of a write of an object of `ray.io`: JSON or YAML, sent on as JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{compute_template::ComputeTemplate, refusal::RayApiRefusal};

/// The field of a group that names a compute template. The kinds of `ray.io` have no such field.
const FIELD: &str = "computeTemplate";

/// Fields with the cluster in a RayJob and a RayService; a RayCluster has its groups in its spec.
const CLUSTER_SPECS: &[&str] = &["rayClusterSpec", "rayClusterConfig"];

/// The most parts of a YAML that aliases may repeat. Nested aliases grow without end.
const MAX_REPLAYED: usize = 10_000;

/// The most parts that are kept for aliases. A part inside of several anchors is kept for each.
const MAX_RECORDED: usize = 100_000;

/// What the scalars of a value may have more than its text, in bytes: short texts may repeat their parts.
const SPARE_BYTES: usize = 64 << 10;

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectBody(Value);

/// The role of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupRole {
    Head,
    Worker,
}

impl ObjectBody {
    /// Whether a body of this type is JSON. One without a type is.
    #[must_use]
    pub fn is_json(content_type: &str) -> bool {
        content_type.is_empty() || content_type.contains("json")
    }

    /// Decodes a body of this type.
    ///
    /// # Errors
    /// If the type is another one, or the text is not of its type.
    pub fn read(content_type: &str, body: &[u8]) -> Result<Self, RayApiRefusal> {
        if Self::is_json(content_type) {
            let object = serde_json::from_slice(body);
            return object.map(Self).map_err(|_| RayApiRefusal::UnreadableBody("JSON"));
        }
        if content_type.contains("yaml") {
            let text = std::str::from_utf8(body).ok();
            let object = text.and_then(read_yaml);
            return object.map(Self).ok_or(RayApiRefusal::UnreadableBody("YAML"));
        }
        Err(RayApiRefusal::UnknownContentType(content_type.to_owned()))
    }

    /// The names of the compute templates of all groups.
    #[must_use]
    pub fn templates(&self) -> BTreeSet<String> {
        let Some(spec) = cluster_spec(&self.0) else { return BTreeSet::new() };
        let workers = spec["workerGroupSpecs"].as_array().into_iter().flatten();
        let groups = workers.chain([&spec["headGroupSpec"]]);
        groups.filter_map(|group| group[FIELD].as_str()).map(str::to_owned).collect()
    }

    /// Replaces the name of a template in each group by what the template says. All names are those of `templates`.
    pub fn apply(&mut self, templates: &BTreeMap<String, ComputeTemplate>) {
        let Some(spec) = cluster_spec_mut(&mut self.0) else { return };
        if let Some(head) = spec.get_mut("headGroupSpec") {
            apply(templates, head, GroupRole::Head);
        }
        let workers = spec.get_mut("workerGroupSpecs").and_then(Value::as_array_mut);
        for worker in workers.into_iter().flatten() {
            apply(templates, worker, GroupRole::Worker);
        }
    }

    /// The body as JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        self.0.to_string().into_bytes()
    }
}

/// Decodes YAML. Aliases may not make the value much larger than its text, by which the memory for a body is counted.
fn read_yaml(text: &str) -> Option<Value> {
    let most = text.len().saturating_add(SPARE_BYTES);
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED },
        budget: serde_saphyr::budget! {
            max_recorded_anchor_bytes: most.saturating_mul(4),
            max_recorded_anchor_events: MAX_RECORDED,
            max_total_scalar_bytes: most,
        },
    };
    serde_saphyr::from_str_with_options(text, options).ok()
}

fn apply(templates: &BTreeMap<String, ComputeTemplate>, group: &mut Value, role: GroupRole) {
    let Some(fields) = group.as_object_mut() else { return };
    let name = fields.get(FIELD).and_then(Value::as_str).map(str::to_owned);
    let Some((name, template)) = name.and_then(|name| templates.get_key_value(&name)) else {
        return;
    };
    fields.remove(FIELD);
    if let Some(pods) = fields.get_mut("template") {
        template.fill(name, pods, role);
    }
}

fn cluster_spec(object: &Value) -> Option<&Value> {
    let spec = object.get("spec")?;
    let inner = CLUSTER_SPECS.iter().find_map(|field| spec.get(field));
    Some(inner.unwrap_or(spec))
}

fn cluster_spec_mut(object: &mut Value) -> Option<&mut Value> {
    let spec = object.get_mut("spec")?;
    match CLUSTER_SPECS.iter().find(|field| spec.get(field).is_some()) {
        Some(field) => spec.get_mut(field),
        None => Some(spec),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(object: &Value) -> ObjectBody {
        ObjectBody::read("application/json", object.to_string().as_bytes()).expect("a body")
    }

    #[test]
    fn a_body_is_json_or_yaml() {
        let expected = body(&json!({"spec": {"a": 1}}));
        for (content_type, text) in [
            ("", "{\"spec\": {\"a\": 1}}"),
            ("application/json; charset=utf-8", "{\"spec\": {\"a\": 1}}"),
            ("application/yaml", "spec:\n  a: 1\n"),
            ("application/x-yaml", "spec: {a: 1}"),
        ] {
            assert_eq!(ObjectBody::read(content_type, text.as_bytes()), Ok(expected.clone()));
        }
        let read = |content_type: &str, text: &[u8]| {
            ObjectBody::read(content_type, text).expect_err("refused").code().as_u16()
        };
        assert_eq!(read("application/json", b"spec: 1"), 400);
        assert_eq!(read("application/yaml", b"a: [1"), 400);
        assert_eq!(read("application/yaml", &[0xff]), 400);
        assert_eq!(read("application/vnd.kubernetes.protobuf", b""), 400);
    }

    #[test]
    fn aliases_do_not_multiply_a_body() {
        let text = format!("a: &a \"{}\"\nb: [{}]", "x".repeat(10_000), "*a, ".repeat(98) + "*a");
        let refused = ObjectBody::read("application/yaml", text.as_bytes());
        assert!(refused == Err(RayApiRefusal::UnreadableBody("YAML")));
        let repeated = ObjectBody::read("application/yaml", b"a: &a {b: 1}\nc: *a");
        assert_eq!(repeated, Ok(body(&json!({"a": {"b": 1}, "c": {"b": 1}}))));
    }

    #[test]
    fn templates_are_named_by_the_groups_of_every_kind() {
        let groups = json!({
            "headGroupSpec": {"computeTemplate": "small"},
            "workerGroupSpecs": [{"computeTemplate": "big"}, {}, 7],
        });
        for object in [
            json!({"spec": groups}),
            json!({"spec": {"rayClusterSpec": groups}}),
            json!({"spec": {"rayClusterConfig": groups}}),
        ] {
            let names: Vec<String> = body(&object).templates().into_iter().collect();
            assert_eq!(names, ["big", "small"]);
        }
        for object in [json!({}), json!([]), json!({"spec": 1}), json!({"spec": {"a": "b"}})] {
            let mut body = body(&object);
            assert!(body.templates().is_empty());
            body.apply(&BTreeMap::new());
            assert_eq!(body.0, object);
        }
    }

    #[test]
    fn a_group_gets_its_template_and_loses_the_name() {
        let pods = json!({"spec": {"containers": [{"name": "ray-worker"}]}});
        let object = json!({"spec": {
            "headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray-head"}]}}},
            "workerGroupSpecs": [{"computeTemplate": "big", "template": pods}],
        }});
        let data = [("cpu", "2"), ("memory", "4")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let template = ComputeTemplate::read("big", &data.into()).expect("a template");
        let mut filled = body(&object);
        filled.apply(&[("big".to_owned(), template)].into());
        let json: Value = serde_json::from_slice(&filled.to_json()).expect("JSON");
        assert_eq!(json["spec"]["headGroupSpec"], object["spec"]["headGroupSpec"]);
        let worker = &json["spec"]["workerGroupSpecs"][0];
        assert!(worker.get("computeTemplate").is_none());
        let limits = &worker["template"]["spec"]["containers"][0]["resources"]["limits"];
        assert_eq!(*limits, json!({"cpu": "2", "memory": "4Gi"}));
    }
}
