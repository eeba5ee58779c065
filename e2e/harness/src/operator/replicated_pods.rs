//! Pod sets of a job as its operator reads them, and the pods that they ask for.

use std::collections::BTreeMap;

use jobs::Kind;
use jobs::declared::{PodSetName, PodSetRule};
use serde_json::{Value, json};

use super::PLAYED;

/// Label of a pod with the name of its pod set.
const POD_SET: &str = "lab.sluice.dev/pod-set";

/// Label of a pod with the index of its replica.
pub(super) const REPLICA: &str = "lab.sluice.dev/replica";

/// Other objects with pod templates, by the name of the lookup rule.
pub(super) type TemplateObjects = BTreeMap<String, Value>;

/// Replicas of a pod set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReplicatedPods {
    pub(super) name: String,
    pub(super) replicas: i32,
    pub(super) pods_per_replica: i32,
    template: Value,
}

impl ReplicatedPods {
    /// The pod sets of a job.
    pub(super) fn of((kind, sources): (&Kind, &TemplateObjects), job: &Value) -> Vec<Self> {
        let rules = kind.fields().map(|fields| fields.pod_sets.as_slice()).unwrap_or_default();
        rules.iter().flat_map(|rule| Self::of_rule(rule, sources, job)).collect()
    }

    fn of_rule(rule: &PodSetRule, sources: &TemplateObjects, job: &Value) -> Vec<Self> {
        let within = match &rule.within {
            Some(within) => within.get(job),
            None => Some(job),
        };
        let entry = rule.entry.as_deref();
        let within = within.and_then(|map| entry.map_or(Some(map), |key| map.get(key)));
        let Some(within) = within else { return Vec::new() };
        let entries = match &rule.each {
            Some(each) => each.get(within).and_then(Value::as_array).cloned().unwrap_or_default(),
            None => vec![within.clone()],
        };
        entries.iter().filter_map(|entry| Self::of_entry(rule, sources, entry)).collect()
    }

    fn of_entry(rule: &PodSetRule, sources: &TemplateObjects, entry: &Value) -> Option<Self> {
        let name = match &rule.name {
            PodSetName::Fixed(name) => name.clone(),
            PodSetName::At(at) => at.text(entry)?.to_owned(),
            PodSetName::Lowered(at) => at.text(entry)?.to_lowercase(),
        };
        Some(Self {
            name,
            replicas: rule.replicas.pods(entry).ok()?,
            pods_per_replica: rule.pods_per_replica.pods(entry).ok()?,
            template: template(rule, sources, entry)?,
        })
    }

    /// The pods of the pod set, with their labels and the job as their controller.
    pub(super) fn pods(&self, kind: &Kind, job: &Value) -> Vec<Value> {
        let indices = (0..self.replicas)
            .flat_map(|replica| (0..self.pods_per_replica).map(move |pod| (replica, pod)));
        indices.map(|(replica, pod)| self.pod(kind, job, replica, pod)).collect()
    }

    fn pod(&self, kind: &Kind, job: &Value, replica: i32, pod: i32) -> Value {
        let metadata = &job["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let mut labels = json!({});
        if let Some(own) = self.template.pointer("/metadata/labels").filter(|own| own.is_object()) {
            labels = own.clone();
        }
        labels[PLAYED] = json!(kind.plural());
        labels[POD_SET] = json!(self.name);
        labels[REPLICA] = json!(replica.to_string());
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("{name}-{}-{replica}-{pod}", self.name),
                "labels": labels,
                "annotations": self.template.pointer("/metadata/annotations"),
                "ownerReferences": [{
                    "apiVersion": kind.api_version(), "kind": kind.name(),
                    "name": name, "uid": metadata["uid"], "controller": true,
                }],
            },
            "spec": self.template["spec"],
        })
    }

    /// Whether a pod with these labels is of this pod set.
    pub(super) fn has(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.get(POD_SET) == Some(&self.name)
    }
}

/// The template of a pod set: in the job, or in another object with the additions of the job.
fn template(rule: &PodSetRule, sources: &TemplateObjects, entry: &Value) -> Option<Value> {
    let Some(from) = &rule.from else {
        return rule.template.get(entry).cloned();
    };
    let mut template = rule.template.get(sources.get(&from.lookup)?)?.clone();
    if let Some(additions) = from.additions.get(entry) {
        add(&mut template, additions);
    }
    Some(template)
}

/// Adds entries of maps and elements of lists.
fn add(target: &mut Value, additions: &Value) {
    match (target, additions) {
        (Value::Object(target), Value::Object(additions)) => {
            for (key, value) in additions {
                add(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(target), Value::Array(additions)) => target.extend(additions.iter().cloned()),
        (target, additions) => *target = additions.clone(),
    }
}
