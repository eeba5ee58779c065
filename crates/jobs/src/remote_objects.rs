//! A Workload and its job as they are made on a worker (docs/reference/dispatch.md §5, §6).

use std::collections::BTreeMap;

use crds::{
    names::{
        annotations::{ASSIGNMENT, EPOCH},
        labels::{JOB_UID, MULTI_KUEUE_ORIGIN, PREBUILT_WORKLOAD_NAME},
    },
    v1beta2::{PodSet, Workload, WorkloadSpec, WorkloadStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::{
    GenericJob, JobGates,
    pod_sets_info::{FlavorsByName, PodSetsInfoError},
    prebuilt::MAX_LABEL_LENGTH,
};

/// What is written on everything that is made on a worker.
#[derive(Clone, Copy, Debug)]
pub struct RemoteIdentity<'a> {
    /// Which manager it belongs to.
    pub origin: &'a str,
    /// Which copy it is.
    pub epoch: u64,
}

/// The epoch that an object carries; the first where it carries none.
#[must_use]
pub fn epoch(metadata: &ObjectMeta) -> u64 {
    let annotations = metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(EPOCH)).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The clone of an admitted Workload. It asks for what was admitted: pods that partial admission left out are not run.
///
/// # Errors
/// If a flavor is missing, or flavors contradict each other.
pub fn remote_workload(
    workload: &Workload,
    flavors: &FlavorsByName,
    mark: RemoteIdentity<'_>,
) -> Result<Workload, PodSetsInfoError> {
    let mut labels = workload.metadata.labels.clone().unwrap_or_default();
    labels.remove(JOB_UID);
    labels.insert(MULTI_KUEUE_ORIGIN.to_owned(), mark.origin.to_owned());
    let mut annotations = workload.metadata.annotations.clone().unwrap_or_default();
    annotations.insert(EPOCH.to_owned(), mark.epoch.to_string());
    annotations
        .insert(ASSIGNMENT.to_owned(), crate::clone_assignment::annotation(workload, flavors)?);
    let spec = WorkloadSpec { pod_sets: admitted_pod_sets(workload), ..workload.spec.clone() };
    Ok(Workload {
        metadata: metadata(&workload.metadata, labels, annotations),
        spec,
        status: WorkloadStatus::default(),
        ..Workload::default()
    })
}

/// The pod sets with the counts that were admitted.
#[must_use]
pub fn admitted_pod_sets(workload: &Workload) -> Vec<PodSet> {
    let assignments = workload.status.admission.as_ref().map(|one| &one.pod_set_assignments);
    let admitted = |name: &str| {
        let mut assignments = assignments.into_iter().flatten();
        assignments.find(|given| given.name == name).and_then(|given| given.count)
    };
    let sets = workload.spec.pod_sets.iter();
    sets.map(|set| match admitted(&set.name) {
        Some(count) if Some(count) != set.count => {
            PodSet { count: Some(count), min_count: None, ..set.clone() }
        }
        _ => set.clone(),
    })
    .collect()
}

/// The job as it is made beside the clone: held back, and bound to the clone by its name.
pub fn remote_job<J: GenericJob>(
    job: &J,
    workload: &Workload,
    mark: RemoteIdentity<'_>,
    gates: JobGates,
) -> J {
    let mut copy = job.remote_job(&admitted_pod_sets(workload), gates);
    let name = workload.metadata.name.clone().unwrap_or_default();
    let metadata = copy.metadata_mut();
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(MULTI_KUEUE_ORIGIN.to_owned(), mark.origin.to_owned());
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(EPOCH.to_owned(), mark.epoch.to_string());
    let in_annotation = gates.identifier_annotations || name.len() > MAX_LABEL_LENGTH;
    let place = if in_annotation { annotations } else { labels };
    place.insert(PREBUILT_WORKLOAD_NAME.to_owned(), name);
    copy
}

fn metadata(
    of: &ObjectMeta,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
) -> ObjectMeta {
    ObjectMeta {
        name: of.name.clone(),
        namespace: of.namespace.clone(),
        labels: Some(labels),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Job;

    fn workload() -> Workload {
        serde_json::from_value(json!({
            "metadata": {
                "name": "job-train", "namespace": "ns", "uid": "w-1", "finalizers": ["f"],
                "labels": { "kueue.x-k8s.io/job-uid": "u-1", "team": "ml" },
                "ownerReferences": [],
            },
            "spec": { "queueName": "lq", "priority": 5, "podSets": [
                { "name": "main", "count": 4, "minCount": 2 },
            ] },
            "status": { "admission": { "clusterQueue": "cq", "podSetAssignments": [
                { "name": "main", "count": 3, "flavors": { "cpu": "x" } },
            ] } },
        }))
        .expect("a Workload decodes")
    }

    fn flavors() -> FlavorsByName {
        [("x".to_owned(), Default::default())].into()
    }

    #[test]
    fn a_clone_asks_for_what_was_admitted_and_says_whose_it_is() {
        let mark = RemoteIdentity { origin: "hub", epoch: 2 };
        let clone = remote_workload(&workload(), &flavors(), mark).expect("the flavor is there");
        assert_eq!(epoch(&clone.metadata), 2);
        assert_eq!(
            serde_json::to_value(&clone).expect("encodes"),
            json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
                "metadata": {
                    "name": "job-train", "namespace": "ns",
                    "labels": { "team": "ml", "kueue.x-k8s.io/multikueue-origin": "hub" },
                    "annotations": {
                        "sluice.dev/epoch": "2", "sluice.dev/assignment": r#"{"main":{}}"#,
                    },
                },
                "spec": { "queueName": "lq", "priority": 5, "podSets": [
                    { "name": "main", "count": 3, "template": {} },
                ] },
                "status": {},
            })
        );
    }

    #[test]
    fn its_job_is_bound_to_it_by_name() {
        let job: Job = serde_json::from_value(json!({
            "metadata": { "name": "train", "namespace": "ns" },
            "spec": { "parallelism": 4, "template": {} },
        }))
        .expect("a Job decodes");
        let mark = RemoteIdentity { origin: "hub", epoch: 1 };
        let keys = |gates: JobGates| -> (Value, Value) {
            let copy = remote_job(&job, &workload(), mark, gates).metadata;
            (json!(copy.labels), json!(copy.annotations))
        };
        let (labels, annotations) = keys(JobGates::default());
        assert_eq!(labels, json!({ "kueue.x-k8s.io/multikueue-origin": "hub" }));
        let bound = json!({
            "sluice.dev/epoch": "1", "kueue.x-k8s.io/prebuilt-workload-name": "job-train",
        });
        assert_eq!(annotations, bound);
        let (labels, _) = keys(JobGates { identifier_annotations: false, ..JobGates::default() });
        assert_eq!(labels["kueue.x-k8s.io/prebuilt-workload-name"], "job-train");
    }
}
