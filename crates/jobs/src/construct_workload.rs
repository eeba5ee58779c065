//! Construction of the Workload of a job (docs/reference/kueue.md §7.5).

use std::collections::BTreeMap;

use crds::{
    names::{
        KUEUE_GROUP, RESOURCE_IN_USE_FINALIZER,
        annotations::{
            ADMISSION_GATED_BY, AFFINITY, CHECKPOINT, ELASTIC_JOB, EXECUTION, LAST_CLUSTER,
            PREFERRED_AFFINITY, PROVISIONING_PREFIX, WORKLOAD_SLICE_NAME,
            WORKLOAD_SLICE_REPLACEMENT_FOR,
        },
        labels::{JOB_UID, MAX_EXEC_TIME_SECONDS, PRIORITY_CLASS},
    },
    v1beta2::{PodSet, PriorityClassRef, Workload, WorkloadSpec},
    validation::labels::value_problems,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::{
    GenericJob, JobGates,
    dispatch::set_copies,
    go_parse,
    reserved_keys::is_reserved,
    workload_name::{WorkloadOwner, workload_name},
};

/// The source of a Workload's priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrioritySource {
    /// The WorkloadPriorityClass that the job names.
    WorkloadPriorityClass(String),
    /// The PriorityClass of the job, or of the first pod template that names one.
    PriorityClass(String),
    /// The cluster's default PriorityClass; priority 0 without one.
    ClusterDefault,
}

/// A resolved priority.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadPriority {
    /// Priority value.
    pub value: i32,
    /// The class, if any.
    pub class: Option<Box<PriorityClassRef>>,
}

/// Label and annotation keys that are copied from jobs to Workloads (`labelKeysToCopy`, `annotationsToCopy`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeysToCopy {
    /// Label keys.
    pub labels: Vec<String>,
    /// Annotation keys.
    pub annotations: Vec<String>,
    /// Those of both that only metrics ask for: members of a group may have different values.
    pub measured: Vec<String>,
}

impl KeysToCopy {
    /// Keys of labels, without those that only controllers write.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &String> {
        self.labels.iter().filter(|key| !is_reserved(key))
    }

    /// The same of annotations.
    pub(crate) fn annotations(&self) -> impl Iterator<Item = &String> {
        self.annotations.iter().filter(|key| !is_reserved(key))
    }
}

/// Source of the priority of a job.
pub fn priority_source<J: GenericJob>(job: &J, gates: JobGates) -> PrioritySource {
    priority_source_among(job, || job.pod_sets(gates))
}

/// The same of a job with these pod sets, which are made only if they decide.
pub(crate) fn priority_source_among<J: GenericJob>(
    job: &J,
    pod_sets: impl FnOnce() -> Vec<PodSet>,
) -> PrioritySource {
    // In upstream's order (docs/reference/kueue.md §7.5).
    if let Some(class) = job.label(PRIORITY_CLASS).filter(|class| !class.is_empty()) {
        return PrioritySource::WorkloadPriorityClass(class.to_owned());
    }
    if let Some(class) = job.priority_class() {
        return PrioritySource::PriorityClass(class.to_owned());
    }
    let classes = pod_sets().into_iter().filter_map(|set| set.template.spec);
    let mut classes = classes.filter(|pod| !pod.priority_class_name.is_empty());
    match classes.next() {
        Some(pod) => PrioritySource::PriorityClass(pod.priority_class_name.clone()),
        None => PrioritySource::ClusterDefault,
    }
}

/// Maximum execution time of a job in seconds, at most `i32::MAX`.
pub fn max_exec_time<J: GenericJob>(job: &J) -> Option<i32> {
    // A value that the webhook would refuse counts as absent: the job may be older than the webhook.
    let seconds = go_parse::integer(job.label(MAX_EXEC_TIME_SECONDS)?).ok()?;
    (seconds > 0).then(|| i32::try_from(seconds).unwrap_or(i32::MAX))
}

/// Constructs the Workload of a job (Kueue: `ConstructWorkload`).
pub fn construct_workload<J: GenericJob>(
    job: &J,
    priority: WorkloadPriority,
    copied: &KeysToCopy,
    gates: JobGates,
) -> Workload {
    let spec = workload_spec(job, job.pod_sets(gates), priority);
    let mut metadata = metadata(job, copied, gates);
    if job.is_elastic(gates) {
        // The first slice of a chain gives it its name.
        let chain = metadata.name.clone().unwrap_or_default();
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(WORKLOAD_SLICE_NAME.to_owned(), chain);
    }
    Workload { metadata, spec, ..Workload::default() }
}

/// A slice of an elastic job that is replaced by a larger one (docs/reference/kueue.md §4.13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedSlice {
    /// Namespace and name, as the replacement names it.
    key: String,
    /// Name of the first slice of the chain, which the pods of all slices carry.
    chain: String,
    /// The cluster that it runs on, or was withdrawn from.
    last_cluster: Option<String>,
}

impl ReplacedSlice {
    /// This slice.
    #[must_use]
    pub fn of(slice: &Workload) -> Self {
        let name = slice.metadata.name.clone().unwrap_or_default();
        let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
        let annotations = slice.metadata.annotations.as_ref();
        let chain = annotations.and_then(|all| all.get(WORKLOAD_SLICE_NAME));
        let recorded = annotations.and_then(|all| all.get(LAST_CLUSTER));
        let last_cluster = slice.status.cluster_name.as_ref().or(recorded).cloned();
        let key = format!("{namespace}/{name}");
        Self { key, chain: chain.cloned().unwrap_or(name), last_cluster }
    }

    /// A new slice as the replacement of this one.
    #[must_use]
    pub fn replaced_by(&self, mut slice: Workload) -> Workload {
        let annotations = slice.metadata.annotations.get_or_insert_default();
        annotations.insert(WORKLOAD_SLICE_NAME.to_owned(), self.chain.clone());
        annotations.insert(WORKLOAD_SLICE_REPLACEMENT_FOR.to_owned(), self.key.clone());
        // The checkpoint is that of the job, whatever its size is.
        let last_cluster = self.last_cluster.clone();
        annotations.extend(last_cluster.map(|name| (LAST_CLUSTER.to_owned(), name)));
        slice
    }
}

/// The spec of a new Workload with these pod sets, which may be a part of the job or more than one.
pub(crate) fn workload_spec<J: GenericJob>(
    job: &J,
    pod_sets: Vec<PodSet>,
    priority: WorkloadPriority,
) -> WorkloadSpec {
    WorkloadSpec {
        active: Some(true),
        maximum_execution_time_seconds: max_exec_time(job),
        pod_sets,
        priority: Some(priority.value),
        priority_class_ref: priority.class,
        queue_name: job.queue_name().to_owned(),
        ..WorkloadSpec::default()
    }
}

/// Name of the Workload of a job.
pub fn workload_name_for<J: GenericJob>(job: &J, gates: JobGates) -> String {
    let owner = job.metadata();
    let name = owner.name.as_deref().unwrap_or_default();
    let uid = match job.set_size() {
        // The copy of a set asks for the Workloads of its original.
        Some(_) => set_copies::original_uid(job),
        None => owner.uid.as_deref().unwrap_or_default(),
    };
    let mut generation = owner.generation.unwrap_or_default().to_string();
    if let Some(live) = job.live_generation(gates) {
        generation = format!("{generation}_{live}");
    }
    // Each size of an elastic job has a Workload of its own, and the generation tells their names apart.
    let part = job.is_elastic(gates).then_some(generation.as_str());
    let (kind, group) = (job.kind().name(), job.kind().group());
    let named = WorkloadOwner { kind, group, name, uid, part };
    workload_name(named, gates.short_names)
}

fn metadata<J: GenericJob>(job: &J, copied: &KeysToCopy, gates: JobGates) -> ObjectMeta {
    ObjectMeta {
        name: Some(workload_name_for(job, gates)),
        namespace: job.metadata().namespace.clone(),
        labels: Some(labels(job, copied)).filter(|labels| !labels.is_empty()),
        annotations: Some(annotations(job, copied, gates)).filter(|all| !all.is_empty()),
        // It holds the quota of a deleted Workload until the pods are gone.
        finalizers: Some(vec![RESOURCE_IN_USE_FINALIZER.to_owned()]),
        owner_references: Some(vec![owner_reference(job)]),
        ..ObjectMeta::default()
    }
}

/// The reference by which a job controls its Workload.
pub fn owner_reference<J: GenericJob>(job: &J) -> OwnerReference {
    let owner = job.metadata();
    OwnerReference {
        api_version: job.kind().api_version(),
        kind: job.kind().name().to_owned(),
        name: owner.name.clone().unwrap_or_default(),
        uid: owner.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The label of a Workload that names its job; `None` for a uid that is no label value.
pub fn uid_label<J: GenericJob>(job: &J) -> Option<&str> {
    job.metadata().uid.as_deref().filter(|uid| value_problems(uid).is_empty())
}

pub(crate) fn labels<J: GenericJob>(job: &J, copied: &KeysToCopy) -> BTreeMap<String, String> {
    let keys = copied.labels();
    let mut labels: BTreeMap<String, String> =
        keys.filter_map(|key| Some((key.clone(), job.label(key)?.to_owned()))).collect();
    // A uid that is no label value is left out (docs/reference/kueue.md §7.5).
    if let Some(uid) = uid_label(job) {
        labels.insert(JOB_UID.to_owned(), uid.to_owned());
    }
    labels
}

pub(crate) fn annotations<J: GenericJob>(
    job: &J,
    copied: &KeysToCopy,
    gates: JobGates,
) -> BTreeMap<String, String> {
    let is_copied = |key: &str| {
        key.starts_with(PROVISIONING_PREFIX)
            // Dispatch reads them from the Workload (docs/reference/dispatch.md §3).
            || key == AFFINITY
            || key == PREFERRED_AFFINITY
            || key == CHECKPOINT
            || key == EXECUTION
            || (key == ADMISSION_GATED_BY && gates.admission_gated_by)
            || (key == ELASTIC_JOB && job.is_elastic(gates))
            || copied.annotations().any(|copied| copied == key)
    };
    let all = job.metadata().annotations.iter().flatten();
    all.filter(|(key, _)| is_copied(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Reference to a priority class, as a Workload holds it.
#[must_use]
pub fn class_ref(source: &PrioritySource) -> Option<Box<PriorityClassRef>> {
    let (group, kind, name) = match source {
        PrioritySource::WorkloadPriorityClass(name) => (KUEUE_GROUP, "WorkloadPriorityClass", name),
        PrioritySource::PriorityClass(name) => {
            (crds::names::SCHEDULING_GROUP, "PriorityClass", name)
        }
        PrioritySource::ClusterDefault => return None,
    };
    let (group, kind, name) = (group.to_owned(), kind.to_owned(), name.clone());
    Some(Box::new(PriorityClassRef { group, kind, name }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Job;

    fn job(annotations: &Value) -> Job {
        serde_json::from_value(json!({
            "metadata": {
                "name": "train", "namespace": "ns", "uid": "u-1", "generation": 2,
                "labels": {
                    "kueue.x-k8s.io/queue-name": "lq", "team": "ml", "other": "x",
                    "kueue.x-k8s.io/max-exec-time-seconds": "99999999999",
                },
                "annotations": annotations,
            },
            "spec": { "parallelism": 2, "template": { "spec": { "priorityClassName": "high" } } },
        }))
        .expect("a Job decodes")
    }

    #[test]
    fn a_workload_is_owned_by_its_job_and_copies_its_keys() {
        let job = job(&json!({
            "kueue.x-k8s.io/admission-gated-by": "a/b", "provreq.kueue.x-k8s.io/p": "1", "no": "no",
            "sluice.dev/affinity": "region=eu", "sluice.dev/preferred-affinity": "tier=gold",
            "sluice.dev/execution": "ExactlyOnce", "sluice.dev/checkpoint": "required",
            "sluice.dev/last-cluster": "not for the job to say",
        }));
        let gates = JobGates::default();
        let source = priority_source(&job, gates);
        assert_eq!(source, PrioritySource::PriorityClass("high".to_owned()));
        let priority = WorkloadPriority { value: 7, class: class_ref(&source) };
        let copied = KeysToCopy { labels: vec!["team".to_owned()], ..KeysToCopy::default() };
        let workload = construct_workload(&job, priority, &copied, gates);
        let name = workload_name(
            WorkloadOwner { kind: "Job", group: "batch", name: "train", uid: "u-1", part: None },
            false,
        );
        assert_eq!(
            serde_json::to_value(workload).expect("encodes"),
            json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
                "metadata": {
                    "name": name, "namespace": "ns",
                    "labels": { "kueue.x-k8s.io/job-uid": "u-1", "team": "ml" },
                    "annotations": {
                        "kueue.x-k8s.io/admission-gated-by": "a/b", "provreq.kueue.x-k8s.io/p": "1",
                        "sluice.dev/affinity": "region=eu", "sluice.dev/preferred-affinity": "tier=gold",
                        "sluice.dev/execution": "ExactlyOnce", "sluice.dev/checkpoint": "required",
                    },
                    "finalizers": ["kueue.x-k8s.io/resource-in-use"],
                    "ownerReferences": [{
                        "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-1",
                        "controller": true, "blockOwnerDeletion": true,
                    }],
                },
                "spec": {
                    "active": true, "maximumExecutionTimeSeconds": i32::MAX, "queueName": "lq",
                    "priority": 7,
                    "priorityClassRef": {
                        "group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high",
                    },
                    "podSets": [{
                        "name": "main", "count": 2,
                        "template": { "spec": { "priorityClassName": "high" } },
                        "topologyRequest": {
                            "podIndexLabel": "batch.kubernetes.io/job-completion-index",
                        },
                    }],
                },
                "status": {},
            })
        );
    }

    #[test]
    fn keys_that_controllers_write_are_not_copied_from_jobs() {
        let keys = [
            "kueue.x-k8s.io/multikueue-origin",
            "kueue.x-k8s.io/priority-boost",
            "sluice.dev/epoch",
            "team",
        ];
        let all: serde_json::Map<String, Value> =
            keys.iter().map(|key| ((*key).to_owned(), json!("forged"))).collect();
        let object = json!({
            "metadata": { "name": "j", "uid": "u", "labels": all, "annotations": all },
            "spec": { "template": { "spec": { "containers": [] } } },
        });
        let job: Job = serde_json::from_value(object).expect("a Job decodes");
        let keys = keys.map(str::to_owned).to_vec();
        let copied =
            KeysToCopy { labels: keys.clone(), annotations: keys, ..KeysToCopy::default() };
        let labels: Vec<String> = labels(&job, &copied).into_keys().collect();
        assert_eq!(labels, ["kueue.x-k8s.io/job-uid", "team"]);
        let annotations = annotations(&job, &copied, JobGates::default());
        assert_eq!(annotations.into_keys().collect::<Vec<_>>(), ["team"]);
    }

    #[test]
    fn each_generation_of_an_elastic_job_has_its_own_workload() {
        let named = |annotations: Value, generation| {
            let mut job = job(&annotations);
            job.metadata.generation = Some(generation);
            let gates = JobGates::default();
            construct_workload(&job, WorkloadPriority::default(), &KeysToCopy::default(), gates)
                .metadata
                .name
        };
        let elastic = || json!({ "kueue.x-k8s.io/elastic-job": "true" });
        assert_ne!(named(elastic(), 1), named(elastic(), 2));
        assert_eq!(named(json!({}), 1), named(json!({}), 2));
    }
}
