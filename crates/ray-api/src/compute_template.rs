//! Compute templates: resources of the pods of a group under a name, as ConfigMaps of KubeRay's API server hold them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{object_body::GroupRole, refusal::RayApiRefusal};

/// The annotation of a pod with the name of its template.
const ANNOTATION: &str = "ray.io/compute-template";

/// The resource of GPUs if a template names no other one.
const GPU: &str = "nvidia.com/gpu";

/// What a template says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComputeTemplate {
    /// CPUs of each container.
    cpu: u32,
    /// GiB of each container.
    memory: u32,
    /// Resources of the container of Ray only: GPUs and others.
    of_ray: BTreeMap<String, u32>,
    tolerations: Vec<Value>,
}

impl ComputeTemplate {
    /// Reads the data of the ConfigMap of this name.
    ///
    /// # Errors
    /// If a value is not what its key says.
    pub fn read(name: &str, data: &BTreeMap<String, String>) -> Result<Self, RayApiRefusal> {
        let invalid = |field| RayApiRefusal::InvalidTemplate { name: name.to_owned(), field };
        let text =
            |field: &str| data.get(field).map(|text| text.trim()).filter(|it| !it.is_empty());
        let number = |field: &'static str| match text(field) {
            Some(text) => text.parse::<u32>().map_err(|_| invalid(field)),
            None => Ok(0),
        };
        let mut of_ray: BTreeMap<String, u32> = match text("extended_resources") {
            // Go writes an empty map as `null`.
            None | Some("null") => BTreeMap::new(),
            Some(text) => serde_json::from_str(text).map_err(|_| invalid("extended_resources"))?,
        };
        let gpus = number("gpu")?;
        if gpus > 0 {
            // As upstream, an extended resource of the same name counts.
            of_ray.entry(text("gpu_accelerator").unwrap_or(GPU).to_owned()).or_insert(gpus);
        }
        let tolerations: Option<Vec<Value>> = match text("tolerations") {
            None => None,
            Some(text) => serde_json::from_str(text).map_err(|_| invalid("tolerations"))?,
        };
        let tolerations = tolerations.unwrap_or_default().iter().map(toleration).collect();
        Ok(Self { cpu: number("cpu")?, memory: number("memory")?, of_ray, tolerations })
    }

    /// Fills the template of a group's pods. Other fields stay.
    pub(crate) fn fill(&self, name: &str, pods: &mut Value, role: GroupRole) {
        let Some(pods) = pods.as_object_mut() else { return };
        let annotations = object_at(object_at(pods, "metadata"), "annotations");
        annotations.insert(ANNOTATION.to_owned(), json!(name));
        let Some(spec) = pods.get_mut("spec").and_then(Value::as_object_mut) else { return };
        let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            self.fill_container(container, role);
        }
        if !self.tolerations.is_empty() {
            let tolerations = spec.entry("tolerations").or_insert(Value::Null);
            let mut all = tolerations.as_array().cloned().unwrap_or_default();
            all.extend(self.tolerations.iter().cloned());
            *tolerations = Value::Array(all);
        }
    }

    fn fill_container(&self, container: &mut Map<String, Value>, role: GroupRole) {
        let of_ray = match role {
            GroupRole::Head => "ray-head",
            GroupRole::Worker => "ray-worker",
        };
        let runs_ray = container.get("name").is_some_and(|name| name == of_ray);
        let resources = object_at(container, "resources");
        for field in ["limits", "requests"] {
            let amounts = object_at(resources, field);
            amounts.insert("cpu".to_owned(), json!(self.cpu.to_string()));
            amounts.insert("memory".to_owned(), json!(format!("{}Gi", self.memory)));
            // A sidecar uses no GPU.
            for (resource, amount) in self.of_ray.iter().filter(|_| runs_ray) {
                amounts.insert(resource.clone(), json!(amount));
            }
        }
    }
}

/// The fields of a toleration that a template may have.
fn toleration(given: &Value) -> Value {
    let text = |field: &str| given[field].as_str().unwrap_or_default();
    json!({
        "key": text("key"), "operator": text("operator"),
        "value": text("value"), "effect": text("effect"),
    })
}

/// The object in a field, which replaces anything else.
fn object_at<'a>(fields: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let value = fields.entry(field).or_insert(Value::Null);
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("invariant: the value was made an object")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(data: &[(&str, &str)]) -> Result<ComputeTemplate, RayApiRefusal> {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        ComputeTemplate::read("big", &data.collect())
    }

    #[test]
    fn all_containers_get_cores_and_memory_and_that_of_ray_the_rest() {
        let template = template(&[
            ("cpu", "4"),
            ("memory", "8"),
            ("gpu", "2"),
            ("extended_resources", "{\"vpc.amazonaws.com/efa\":1}"),
            (
                "tolerations",
                "[{\"key\":\"gpu\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}]",
            ),
        ]);
        let kept = json!({"key": "kept"});
        let mut pods = json!({
            "metadata": {"annotations": {"a": "b"}},
            "spec": {
                "tolerations": [kept],
                "containers": [
                    {"name": "ray-worker", "resources": {"limits": {"cpu": "1", "disk": "1"}}},
                    {"name": "sidecar"},
                ],
            },
        });
        template.expect("a template").fill("big", &mut pods, GroupRole::Worker);
        let all = json!({"cpu": "4", "memory": "8Gi"});
        let requests = json!({
            "cpu": "4", "memory": "8Gi", "nvidia.com/gpu": 2, "vpc.amazonaws.com/efa": 1,
        });
        let mut limits = requests.clone();
        limits["disk"] = json!("1");
        let added =
            json!({"key": "gpu", "operator": "Exists", "value": "", "effect": "NoSchedule"});
        assert_eq!(
            pods,
            json!({
                "metadata": {"annotations": {"a": "b", "ray.io/compute-template": "big"}},
                "spec": {
                    "tolerations": [kept, added],
                    "containers": [
                        {"name": "ray-worker", "resources": {"limits": limits, "requests": requests}},
                        {"name": "sidecar", "resources": {"limits": all, "requests": all}},
                    ],
                },
            })
        );
    }

    #[test]
    fn the_container_of_ray_depends_on_the_group() {
        let template = template(&[("gpu", "1"), ("gpu_accelerator", "amd.com/gpu")]);
        let template = template.expect("a template");
        for (role, has_gpu) in [(GroupRole::Head, true), (GroupRole::Worker, false)] {
            let mut pods = json!({"spec": {"containers": [{"name": "ray-head"}]}});
            template.fill("big", &mut pods, role);
            let limits = &pods["spec"]["containers"][0]["resources"]["limits"];
            assert_eq!(limits.get("amd.com/gpu").is_some(), has_gpu, "{role:?}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_named() {
        for (data, field) in [
            (&[("cpu", "four")][..], "cpu"),
            (&[("memory", "8Gi")], "memory"),
            (&[("gpu", "-1")], "gpu"),
            (&[("extended_resources", "[]")], "extended_resources"),
            (&[("tolerations", "{}")], "tolerations"),
        ] {
            let name = "big".to_owned();
            assert_eq!(template(data), Err(RayApiRefusal::InvalidTemplate { name, field }));
        }
        let empty = template(&[("extended_resources", "null"), ("tolerations", "null")]);
        assert_eq!(empty, Ok(ComputeTemplate::default()));
    }

    #[test]
    fn a_body_without_pods_is_left_alone() {
        let template = ComputeTemplate::default();
        for pods in [json!(null), json!(7), json!([])] {
            let mut filled = pods.clone();
            template.fill("big", &mut filled, GroupRole::Head);
            assert_eq!(filled, pods);
        }
    }
}
