//! Remote objects: the clone of a Workload and the copy of its job on a worker (docs/reference/dispatch.md §5, §6).

use std::collections::BTreeMap;

use crds::{
    names::{
        annotations::{
            ASSIGNMENT, EPOCH, HUB_VERSION, INCARNATION, JOB_OWNER_GVK, LEASE_STAMP, TERM,
            WORKLOAD_UID,
        },
        labels::{JOB_UID, MULTI_KUEUE_ORIGIN, PREBUILT_WORKLOAD_NAME},
    },
    v1beta2::{PodSet, Workload, WorkloadSpec, WorkloadStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::{
    GenericJob, Gvk, JobGates,
    dispatch::set_copies,
    integrations::controller,
    prebuilt::MAX_LABEL_LENGTH,
    start::admitted_infos::{AdmittedInfosError, FlavorsByName},
};

/// Labels and annotations that identify every remote object.
#[derive(Clone, Copy, Debug)]
pub struct RemoteIdentity<'a> {
    /// Origin of the manager.
    pub origin: &'a str,
    /// Epoch of the copy.
    pub epoch: u64,
    /// Incarnation of the manager.
    pub incarnation: u64,
    /// Term of its leader.
    pub term: u64,
    /// Session and term of its lease, under ExactlyOnce.
    pub lease: Option<&'a str>,
}

impl RemoteIdentity<'_> {
    /// Writes the annotations that tell copies of one Workload apart (docs/reference/dispatch.md §6).
    fn stamp(self, annotations: &mut BTreeMap<String, String>, workload: &Workload) {
        self.stamp_hub(annotations, workload);
        annotations.insert(EPOCH.to_owned(), self.epoch.to_string());
        let uid = workload.metadata.uid.clone();
        annotations.extend(uid.map(|uid| (WORKLOAD_UID.to_owned(), uid)));
        annotations.extend(self.lease.map(|stamp| (LEASE_STAMP.to_owned(), stamp.to_owned())));
    }

    /// The part that tells which hub made a copy, and when.
    fn stamp_hub(self, annotations: &mut BTreeMap<String, String>, workload: &Workload) {
        for (name, number) in [(INCARNATION, self.incarnation), (TERM, self.term)] {
            annotations.insert(name.to_owned(), number.to_string());
        }
        let version = workload.metadata.resource_version.clone();
        annotations.extend(version.map(|version| (HUB_VERSION.to_owned(), version)));
    }
}

/// Epoch of an object; 1 without the annotation. A text that is no number of a hub is above all of them.
#[must_use]
pub fn epoch(metadata: &ObjectMeta) -> u64 {
    let annotations = metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(EPOCH));
    text.map_or(1, |text| text.parse().unwrap_or(u64::MAX))
}

/// The clone of an admitted Workload, with the admitted counts.
///
/// # Errors
/// If a flavor is missing, or flavors contradict each other.
pub fn remote_workload(
    workload: &Workload,
    flavors: &FlavorsByName,
    identity: RemoteIdentity<'_>,
) -> Result<Workload, AdmittedInfosError> {
    let mut labels = workload.metadata.labels.clone().unwrap_or_default();
    // The copy of the job has another uid (docs/reference/multikueue.md §1.6).
    labels.remove(JOB_UID);
    labels.insert(MULTI_KUEUE_ORIGIN.to_owned(), identity.origin.to_owned());
    let mut annotations = workload.metadata.annotations.clone().unwrap_or_default();
    identity.stamp(&mut annotations, workload);
    // A clone has no owner. A worker that refuses a kind learns it from here before the job comes.
    if let Some(owner) = controller(&workload.metadata) {
        let gvk = Gvk::of(&owner.api_version, &owner.kind);
        annotations.entry(JOB_OWNER_GVK.to_owned()).or_insert_with(|| gvk.to_string());
    }
    // Only agents read it. A worker with queues of its own assigns its own flavors.
    let assignment = crate::dispatch::clone_assignment::annotation(workload, flavors)?;
    annotations.insert(ASSIGNMENT.to_owned(), assignment);
    let spec = WorkloadSpec { pod_sets: admitted_pod_sets(workload), ..workload.spec.clone() };
    Ok(Workload {
        metadata: metadata(&workload.metadata, labels, annotations),
        spec,
        status: WorkloadStatus::default(),
        ..Workload::default()
    })
}

/// Pod sets with the counts of a partial admission. After some pods have ended, quota is reserved for the others alone; the work is the
/// same then, and so is its clone.
#[must_use]
pub fn admitted_pod_sets(workload: &Workload) -> Vec<PodSet> {
    let assignments = workload.status.admission.as_ref().map(|one| &one.pod_set_assignments);
    let admitted = |name: &str| {
        let mut assignments = assignments.into_iter().flatten();
        assignments
            .find(|assignment| assignment.name == name)
            .and_then(|assignment| assignment.count)
    };
    let sets = workload.spec.pod_sets.iter();
    sets.map(|set| match admitted(&set.name).filter(|_| set.min_count.is_some()) {
        Some(count) if count < set.count.unwrap_or(1) => {
            // Without minCount the worker admits as many pods as the hub has reserved quota for.
            PodSet { count: Some(count), min_count: None, ..set.clone() }
        }
        _ => set.clone(),
    })
    .collect()
}

/// The job beside the clone: suspended, with the clone as its prebuilt Workload.
pub fn remote_job<J: GenericJob>(
    job: &J,
    workload: &Workload,
    identity: RemoteIdentity<'_>,
    gates: JobGates,
) -> J {
    let mut copy = job.remote_job(&admitted_pod_sets(workload), gates);
    if job.set_size().is_some() {
        set_copies::mark(&mut copy, job);
    }
    let name = workload.metadata.name.clone().unwrap_or_default();
    let metadata = copy.metadata_mut();
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(MULTI_KUEUE_ORIGIN.to_owned(), identity.origin.to_owned());
    let annotations = metadata.annotations.get_or_insert_default();
    if set_copies::is_shared(job) {
        // Several Workloads have this copy, each with an epoch of its own. It names none of them.
        identity.stamp_hub(annotations, workload);
        return copy;
    }
    identity.stamp(annotations, workload);
    let map = if names_in_annotation(&name, gates) { annotations } else { labels };
    map.insert(PREBUILT_WORKLOAD_NAME.to_owned(), name);
    copy
}

/// A label value has at most 63 characters (docs/reference/multikueue.md §1.6).
fn names_in_annotation(workload: &str, gates: JobGates) -> bool {
    gates.identifier_annotations || workload.len() > MAX_LABEL_LENGTH
}

/// Labels and annotations by which the copy of an elastic job names the clone of a later slice of it, as fields of a merge patch.
#[must_use]
pub fn named_slice(workload: &Workload, identity: RemoteIdentity<'_>, gates: JobGates) -> Value {
    let mut stamps = BTreeMap::new();
    identity.stamp(&mut stamps, workload);
    let (mut annotations, mut labels) = (json!(stamps), json!({}));
    let name = workload.metadata.name.as_deref().unwrap_or_default();
    let (map, other) = if names_in_annotation(name, gates) {
        (&mut annotations, &mut labels)
    } else {
        (&mut labels, &mut annotations)
    };
    map[PREBUILT_WORKLOAD_NAME] = json!(name);
    // The earlier slice may have been named under another setting.
    other[PREBUILT_WORKLOAD_NAME] = Value::Null;
    json!({ "labels": labels, "annotations": annotations })
}

/// The metadata of a copy, as the source has it.
pub(crate) fn metadata_for_creation(of: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: of.name.clone(),
        namespace: of.namespace.clone(),
        labels: of.labels.clone(),
        annotations: of.annotations.clone(),
        ..ObjectMeta::default()
    }
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
    use super::*;
    use crate::Job;

    fn workload() -> Workload {
        serde_json::from_value(json!({
            "metadata": {
                "name": "job-train", "namespace": "ns", "uid": "w-1", "resourceVersion": "77",
                "finalizers": ["f"],
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
    fn a_clone_requests_the_admitted_counts_and_carries_origin_and_stamps() {
        let identity =
            RemoteIdentity { origin: "hub", epoch: 2, incarnation: 3, term: 4, lease: None };
        let clone =
            remote_workload(&workload(), &flavors(), identity).expect("the flavor is there");
        assert_eq!(epoch(&clone.metadata), 2);
        assert_eq!(
            serde_json::to_value(&clone).expect("encodes"),
            json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
                "metadata": {
                    "name": "job-train", "namespace": "ns",
                    "labels": { "team": "ml", "kueue.x-k8s.io/multikueue-origin": "hub" },
                    "annotations": {
                        "sluice.dev/epoch": "2", "sluice.dev/incarnation": "3", "sluice.dev/term": "4",
                        "sluice.dev/hub-version": "77", "sluice.dev/workload-uid": "w-1",
                        "sluice.dev/assignment": r#"{"main":{}}"#,
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
    fn a_copy_is_given_the_name_of_a_later_slice_in_place_of_the_earlier_one() {
        let identity =
            RemoteIdentity { origin: "hub", epoch: 1, incarnation: 3, term: 4, lease: None };
        let named = |gates: JobGates| named_slice(&workload(), identity, gates);
        let name = "kueue.x-k8s.io/prebuilt-workload-name";
        let mut stamps = json!({
            "sluice.dev/epoch": "1", "sluice.dev/incarnation": "3", "sluice.dev/term": "4",
            "sluice.dev/hub-version": "77", "sluice.dev/workload-uid": "w-1",
        });
        stamps[name] = json!("job-train");
        let expected = json!({ "labels": { name: null }, "annotations": stamps });
        assert_eq!(named(JobGates::default()), expected);
        stamps[name] = Value::Null;
        let expected = json!({ "labels": { name: "job-train" }, "annotations": stamps });
        let in_label = JobGates { identifier_annotations: false, ..JobGates::default() };
        assert_eq!(named(in_label), expected);
    }

    #[test]
    fn a_remote_job_names_the_clone_as_its_prebuilt_workload() {
        let job: Job = serde_json::from_value(json!({
            "metadata": { "name": "train", "namespace": "ns" },
            "spec": { "parallelism": 4, "template": {} },
        }))
        .expect("a Job decodes");
        let identity =
            RemoteIdentity { origin: "hub", epoch: 1, incarnation: 3, term: 4, lease: None };
        let keys = |gates: JobGates| -> (Value, Value) {
            let copy = remote_job(&job, &workload(), identity, gates).metadata;
            (json!(copy.labels), json!(copy.annotations))
        };
        let (labels, annotations) = keys(JobGates::default());
        assert_eq!(labels, json!({ "kueue.x-k8s.io/multikueue-origin": "hub" }));
        let expected_annotations = json!({
            "sluice.dev/epoch": "1", "sluice.dev/incarnation": "3", "sluice.dev/term": "4",
            "sluice.dev/hub-version": "77", "sluice.dev/workload-uid": "w-1",
            "kueue.x-k8s.io/prebuilt-workload-name": "job-train",
        });
        assert_eq!(annotations, expected_annotations);
        let (labels, _) = keys(JobGates { identifier_annotations: false, ..JobGates::default() });
        assert_eq!(labels["kueue.x-k8s.io/prebuilt-workload-name"], "job-train");
    }
}
