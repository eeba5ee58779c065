//! The pod sets of a component: declared in the spec, or inferred from a known kind.
//!
//! Source: docs/reference/appwrapper.md §3.

use serde_json::Value;

use crate::{
    json::{items, text},
    names::ANNOTATION_PREFIX,
    v1beta2::{AppWrapperComponent, AppWrapperPodSet},
};

/// The pod sets of a component. A component may have none.
///
/// A declared pod set of a known kind has no fewer pods than the object runs at its path: the others would run without quota.
#[must_use]
pub fn pod_sets(component: &AppWrapperComponent) -> Vec<AppWrapperPodSet> {
    let known = inferred(&component.template).unwrap_or_default();
    if component.pod_sets.is_empty() {
        return known;
    }
    component.pod_sets.iter().map(|declared| with_all_pods(declared, &known)).collect()
}

/// A declared pod set with at least the pods that are inferred for its path.
fn with_all_pods(declared: &AppWrapperPodSet, known: &[AppWrapperPodSet]) -> AppWrapperPodSet {
    let mut pod_set = declared.clone();
    let runs = known.iter().find(|known| known.path == declared.path);
    if let Some(runs) = runs.filter(|runs| replicas(runs) > replicas(declared)) {
        pod_set.replicas = runs.replicas;
    }
    pod_set
}

/// The pod sets of a component as the official controller has them: a declared one has the number that it says, and a group of Ray counts
/// its `replicas`, whatever its bounds.
#[must_use]
pub fn pod_sets_as_written(component: &AppWrapperComponent) -> Vec<AppWrapperPodSet> {
    if component.pod_sets.is_empty() {
        inferred_as_written(&component.template).unwrap_or_default()
    } else {
        component.pod_sets.clone()
    }
}

/// The pod sets of an object of a known kind; none for other kinds.
#[must_use]
pub fn inferred(template: &Value) -> Option<Vec<AppWrapperPodSet>> {
    infer(template, bounded)
}

/// The pod sets that the official controller infers.
#[must_use]
pub fn inferred_as_written(template: &Value) -> Option<Vec<AppWrapperPodSet>> {
    infer(template, |group| count(&group["replicas"]))
}

/// The pod sets of an object of a known kind, with this size of a group of Ray.
fn infer(template: &Value, group_size: fn(&Value) -> i32) -> Option<Vec<AppWrapperPodSet>> {
    let spec = &template["spec"];
    let kind = (text(&template["apiVersion"]), text(&template["kind"]));
    Some(match kind {
        ("v1", "Pod") => vec![pod_set("template".to_owned(), 1, &[])],
        ("apps/v1", "Deployment" | "StatefulSet") => {
            let pods = pod_set("template.spec.template".to_owned(), count(&spec["replicas"]), &[]);
            has_template(spec).then_some(pods).into_iter().collect()
        }
        ("batch/v1", "Job") => {
            vec![pod_set("template.spec.template".to_owned(), job_pods(spec), &[job_index()])]
        }
        ("jobset.x-k8s.io/v1alpha2", "JobSet") => job_set(spec),
        ("kubeflow.org/v1", "PyTorchJob") => pytorch_job(spec),
        ("ray.io/v1", "RayCluster") => ray_cluster(spec, "template.spec", group_size),
        ("ray.io/v1", "RayJob") => {
            ray_cluster(&spec["rayClusterSpec"], "template.spec.rayClusterSpec", group_size)
        }
        _ => return None,
    })
}

/// Whether a part of an object has a template. One without it has no pod set.
fn has_template(part: &Value) -> bool {
    part.get("template").is_some()
}

fn pod_set(path: String, replicas: i32, annotations: &[(&str, String)]) -> AppWrapperPodSet {
    let annotations = annotations.iter();
    let annotations =
        annotations.map(|(name, value)| (format!("{ANNOTATION_PREFIX}{name}"), value.clone()));
    AppWrapperPodSet { annotations: annotations.collect(), path, replicas: Some(replicas) }
}

/// A number of pods, 1 if unset.
fn count(value: &Value) -> i32 {
    value.as_i64().map_or(1, |count| i32::try_from(count).unwrap_or(i32::MAX))
}

fn job_index() -> (&'static str, String) {
    ("tas-pod-index-label", "batch.kubernetes.io/job-completion-index".to_owned())
}

/// Pods of a Job at a time.
fn job_pods(spec: &Value) -> i32 {
    let parallelism = count(&spec["parallelism"]);
    let completions = &spec["completions"];
    if completions.is_null() { parallelism } else { parallelism.min(count(completions)) }
}

fn job_set(spec: &Value) -> Vec<AppWrapperPodSet> {
    let jobs = items(&spec["replicatedJobs"]).iter().enumerate();
    let jobs = jobs.filter(|(_, job)| has_template(job));
    jobs.map(|(index, job)| {
        let replicas = count(&job["replicas"]);
        let pods = replicas.saturating_mul(job_pods(&job["template"]["spec"]));
        let annotations = [
            job_index(),
            ("tas-sub-group-index-label", "jobset.sigs.k8s.io/job-index".to_owned()),
            ("tas-sub-group-count", replicas.to_string()),
        ];
        let path = format!("template.spec.replicatedJobs[{index}].template.spec.template");
        pod_set(path, pods, &annotations)
    })
    .collect()
}

fn pytorch_job(spec: &Value) -> Vec<AppWrapperPodSet> {
    let roles = ["Master", "Worker"].into_iter();
    let roles = roles.filter(|role| has_template(&spec["pytorchReplicaSpecs"][role]));
    let index = [("tas-pod-index-label", "training.kubeflow.org/replica-index".to_owned())];
    roles
        .map(|role| {
            let replicas = count(&spec["pytorchReplicaSpecs"][role]["replicas"]);
            let path = format!("template.spec.pytorchReplicaSpecs.{role}.template");
            pod_set(path, replicas, &index)
        })
        .collect()
}

/// The head and one pod set per group. The pods of a replica are not multiplied by its hosts, as in the official controller.
fn ray_cluster(spec: &Value, path: &str, group_size: fn(&Value) -> i32) -> Vec<AppWrapperPodSet> {
    let head = pod_set(format!("{path}.headGroupSpec.template"), 1, &[]);
    let groups = items(&spec["workerGroupSpecs"]).iter().enumerate();
    let groups = groups.filter(|(_, group)| has_template(group));
    let groups = groups.map(|(index, group)| {
        let path = format!("{path}.workerGroupSpecs[{index}].template");
        pod_set(path, group_size(group), &[])
    });
    std::iter::once(head).chain(groups).collect()
}

/// Replicas of a group of Ray. Unlike in the official controller, they count within the bounds of the group, as the operator of Ray runs
/// it: more pods than that would have no quota.
fn bounded(group: &Value) -> i32 {
    let bound = |name: &str| group[name].as_i64().and_then(|bound| i32::try_from(bound).ok());
    let replicas = count(&group["replicas"]).max(bound("minReplicas").unwrap_or(0));
    replicas.min(bound("maxReplicas").unwrap_or(i32::MAX))
}

/// How many pods a list of pod sets has.
pub(crate) fn total<'a>(pod_sets: impl Iterator<Item = &'a AppWrapperPodSet>) -> i64 {
    pod_sets.map(replicas).sum()
}

/// How many pods a pod set has.
pub(crate) fn replicas(pod_set: &AppWrapperPodSet) -> i64 {
    i64::from(pod_set.replicas.unwrap_or(1))
}
