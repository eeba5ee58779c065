//! A job and its Workload, made again from their copies on a worker after the manager's cluster was lost
//! (docs/reference/dispatch.md §11).
//!
//! The reverse of [`remote_objects`](super::remote_objects), as far as the copies hold it. What a copy is made without is lost: its
//! owner, and the time to live after its end.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crds::{
    decode::from_value,
    names::{
        MANAGED, MULTI_KUEUE_CONTROLLER, RESOURCE_IN_USE_FINALIZER,
        annotations::{
            ASSIGNMENT, EPOCH, HUB_VERSION, INCARNATION, JOB_OWNER_GVK, LEASE_STAMP,
            MULTI_KUEUE_ORIGIN_UID, REBUILD, STOPPING, TERM, WORKLOAD_UID,
        },
        gates::{ADMISSION, MULTI_KUEUE},
        labels::{JOB_UID, MULTI_KUEUE_ORIGIN, PREBUILT_WORKLOAD_NAME},
    },
    pod::{PodMetadata, PodTemplate},
    v1beta2::{Workload, WorkloadStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use crate::{
    GenericJob, JobGates, JobObject, Pod,
    construct_workload::{owner_reference, uid_label},
    pods::group,
    start::admitted_infos::remove_identity,
    start::pod_set_info::SCHEDULING_GATES,
};

/// Annotations that only a copy has.
const OF_COPIES: [&str; 10] = [
    ASSIGNMENT,
    EPOCH,
    HUB_VERSION,
    INCARNATION,
    JOB_OWNER_GVK,
    LEASE_STAMP,
    MULTI_KUEUE_ORIGIN_UID,
    STOPPING,
    TERM,
    WORKLOAD_UID,
];

/// Fields of a pod that its own cluster sets. The API server refuses a priority that it has not computed itself.
const OF_POD: [&str; 3] = ["priority", "preemptionPolicy", "serviceAccount"];

/// Start of the names of volumes with the token of a pod's account.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// The job that a copy was made from, as it is created: suspended, given to MultiKueue, and marked.
///
/// # Errors
/// If the result does not decode.
pub fn original_job(
    copy: &JobObject,
    clone: &Workload,
    gates: JobGates,
) -> Result<JobObject, String> {
    let mut job = copy.remote_job(&clone.spec.pod_sets, gates);
    let metadata = job.metadata_mut();
    strip(metadata);
    metadata.annotations.get_or_insert_default().extend(mark(clone));
    let kind = job.kind().clone();
    if let JobObject::Pod(pod) = &mut job {
        restore_pod(pod, clone)?;
    }
    let mut object = job.to_create();
    if let Some(managed_by) = kind.managed_by() {
        managed_by.at.set(&mut object, json!(MULTI_KUEUE_CONTROLLER));
    }
    kind.decode(object)
}

/// The Workload that a clone was made from, as it is created: with the present uids of its jobs, at the epoch of the clone, and marked.
#[must_use]
pub fn original_workload(clone: &Workload, jobs: &[JobObject]) -> Workload {
    let epoch = crds::meta::annotation(&clone.metadata, EPOCH).map(str::to_owned);
    let mut metadata = crate::dispatch::remote_objects::metadata_for_creation(&clone.metadata);
    strip(&mut metadata);
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.extend(epoch.map(|epoch| (EPOCH.to_owned(), epoch)));
    annotations.extend(mark(clone));
    metadata.finalizers = Some(vec![RESOURCE_IN_USE_FINALIZER.to_owned()]);
    metadata.owner_references = Some(owners(clone, jobs));
    if let [job] = jobs
        && let Some(uid) = uid_label(job).filter(|_| !group::is_group_workload(clone))
    {
        metadata.labels.get_or_insert_default().insert(JOB_UID.to_owned(), uid.to_owned());
    }
    // The gate keeps a clone from preempting on a worker with queues of its own.
    let mut spec = clone.spec.clone();
    spec.preemption_gates.retain(|gate| gate.name != MULTI_KUEUE);
    Workload { metadata, spec, status: WorkloadStatus::default(), ..Workload::default() }
}

fn owners(clone: &Workload, jobs: &[JobObject]) -> Vec<OwnerReference> {
    if group::is_group_workload(clone) {
        let pods: Vec<&Pod> = jobs.iter().filter_map(JobObject::as_pod).collect();
        return group::owner_references(&pods);
    }
    jobs.iter().map(owner_reference).collect()
}

fn mark(clone: &Workload) -> Option<(String, String)> {
    Some((REBUILD.to_owned(), clone.metadata.uid.clone()?))
}

/// Removes labels and annotations that only copies have.
fn strip(metadata: &mut ObjectMeta) {
    if let Some(labels) = &mut metadata.labels {
        labels.retain(|key, _| {
            ![MULTI_KUEUE_ORIGIN, PREBUILT_WORKLOAD_NAME, JOB_UID].contains(&&**key)
        });
    }
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|key, _| !OF_COPIES.contains(&&**key) && key != PREBUILT_WORKLOAD_NAME);
    }
}

/// Takes from a pod what its start and its cluster have added, and holds it again. The pod set of its role says what it had before.
fn restore_pod(pod: &mut Pod, clone: &Workload) -> Result<(), String> {
    let mut sets = clone.spec.pod_sets.iter();
    let sets = match sets.len() {
        1 => sets.next(),
        _ => sets.find(|set| set.name == pod.role()),
    };
    let before = sets.and_then(|set| set.template.spec.as_deref());
    let before = before.map_or_else(|| json!({}), |spec| json!(spec));
    let mut spec = json!(pod.spec);
    for field in ["nodeSelector", "affinity", "tolerations"] {
        put(&mut spec, field, before.get(field).cloned());
    }
    OF_POD.iter().for_each(|field| put(&mut spec, field, None));
    without_token(&mut spec);
    hold(&mut spec);
    pod.spec = from_value(&spec).map_err(|error| error.to_string())?;
    forget_identity(&mut pod.metadata);
    pod.metadata.finalizers = Some(vec![MANAGED.to_owned()]);
    Ok(())
}

fn put(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => fields.insert(field.to_owned(), value),
        None => fields.remove(field),
    };
}

/// Removes the volume of the token, which names an object of the worker, and where it is mounted.
fn without_token(spec: &mut Value) {
    retain(spec, "volumes", |volume| !is_token(&volume["name"]));
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            retain(container, "volumeMounts", |mount| !is_token(&mount["name"]));
        }
    }
}

fn is_token(name: &Value) -> bool {
    name.as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME))
}

/// Keeps the elements of a list; an empty list is removed.
fn retain(object: &mut Value, list: &str, keeps: impl Fn(&Value) -> bool) {
    let Some(elements) = object.get_mut(list).and_then(Value::as_array_mut) else { return };
    elements.retain(keeps);
    if elements.is_empty() {
        put(object, list, None);
    }
}

fn hold(spec: &mut Value) {
    let mut gates = spec[SCHEDULING_GATES].as_array().cloned().unwrap_or_default();
    if gates.iter().all(|gate| gate["name"] != ADMISSION) {
        gates.push(json!({ "name": ADMISSION }));
    }
    put(spec, SCHEDULING_GATES, Some(json!(gates)));
}

fn forget_identity(metadata: &mut ObjectMeta) {
    let text = |map: &Option<BTreeMap<String, String>>| map.clone().unwrap_or_default();
    let of_pod = PodMetadata {
        labels: text(&metadata.labels).into(),
        annotations: text(&metadata.annotations).into(),
        ..PodMetadata::default()
    };
    let mut template = PodTemplate { metadata: Some(of_pod.into()), spec: None };
    remove_identity(&mut template);
    let rest = template.metadata.unwrap_or_default().into_owned();
    metadata.labels = Some(rest.labels.into());
    metadata.annotations = Some(rest.annotations.into_owned());
}
