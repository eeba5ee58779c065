//! The request of a Workload to a cluster: requests on nodes, before quota rules. Source: docs/reference/dispatch.md
//! §1, §3.

use crds::meta::annotation;
use crds::names::annotations::{
    AFFINITY, CHECKPOINT, COMPONENT_WORKLOAD_INDEX, EXECUTION, JOB_OWNER_GVK, JOB_OWNER_NAME,
    LAST_CLUSTER, PREFERRED_AFFINITY,
};
use crds::names::{
    CHECKPOINT_ANYWHERE, CHECKPOINT_PREFERRED, CHECKPOINT_REQUIRED, EXACTLY_ONCE, KEEP_RUNNING,
};
use crds::v1beta2::Workload;
use dispatch::{CheckpointCluster, JobGvk, RequestedPodSet, WorkloadRequest};
use engine::node_selection::LabelRequirement;
use engine::{Amount, Names};

use super::job_owner::job_owner;
use super::more_than_room;
use super::pod_sets::{CountedPodSet, CountedPodSets};
use crate::amount::from_nanos;
use crate::cluster_affinity;
use crate::selectors::selection;

/// The request, and a validation message of the annotations that it follows from.
pub(super) fn workload_request(
    names: &mut Names,
    workload: &Workload,
    pod_sets: &CountedPodSets<'_>,
) -> (WorkloadRequest, Option<String>) {
    let required = clusters(workload, AFFINITY);
    let preferred = clusters(workload, PREFERRED_AFFINITY);
    let (exactly_once, checkpoint) = (execution(workload), checkpoint(workload));
    let problems = [
        required.as_ref().err(),
        preferred.as_ref().err(),
        exactly_once.as_ref().err(),
        checkpoint.as_ref().err(),
    ];
    let problem = problems.into_iter().flatten().next().cloned();
    let kind = kind(workload);
    let other_pods = more_than_room::may_get_other_pods(workload, &kind);
    let request = WorkloadRequest {
        kind,
        namespace: workload.metadata.namespace.as_deref().unwrap_or_default().into(),
        pod_sets: pod_sets.all.iter().map(|one| pods(names, one, other_pods)).collect(),
        affinity: required.unwrap_or_default(),
        preferred: preferred.unwrap_or_default(),
        checkpoint: checkpoint.unwrap_or_default(),
        together: set(workload),
        max_run_time: runs(workload),
        exactly_once: exactly_once.unwrap_or_default(),
    };
    (request, problem)
}

/// Whether a Workload asks for ExactlyOnce, or against it.
fn execution(workload: &Workload) -> Result<Option<bool>, String> {
    match annotation(&workload.metadata, EXECUTION) {
        None => Ok(None),
        Some(EXACTLY_ONCE) => Ok(Some(true)),
        Some(KEEP_RUNNING) => Ok(Some(false)),
        Some(other) => Err(format!(
            "annotation {EXECUTION}: \"{other}\" is neither {EXACTLY_ONCE} nor {KEEP_RUNNING}"
        )),
    }
}

/// The cluster with the checkpoint of the job. The first placement knows none.
fn checkpoint(workload: &Workload) -> Result<Option<CheckpointCluster>, String> {
    let required = match annotation(&workload.metadata, CHECKPOINT) {
        None | Some(CHECKPOINT_ANYWHERE) => return Ok(None),
        Some(CHECKPOINT_PREFERRED) => false,
        Some(CHECKPOINT_REQUIRED) => true,
        Some(other) => {
            return Err(format!(
                "annotation {CHECKPOINT}: \"{other}\" is none of {CHECKPOINT_ANYWHERE}, {CHECKPOINT_PREFERRED} and \
                 {CHECKPOINT_REQUIRED}"
            ));
        }
    };
    let last = annotation(&workload.metadata, LAST_CLUSTER);
    Ok(last.map(|name| CheckpointCluster { name: name.into(), required }))
}

/// The set of replicas that a Workload is one of: one copy of it makes the pods of all replicas.
fn set(workload: &Workload) -> Option<Box<str>> {
    let annotations = workload.metadata.annotations.as_ref()?;
    annotations.get(COMPONENT_WORKLOAD_INDEX)?;
    let (kind, name) = (annotations.get(JOB_OWNER_GVK)?, annotations.get(JOB_OWNER_NAME)?);
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    Some(format!("{kind}/{namespace}/{name}").into())
}

/// The selector over clusters in an annotation.
fn clusters(workload: &Workload, key: &str) -> Result<Vec<LabelRequirement>, String> {
    let text = annotation(&workload.metadata, key);
    let parsed = cluster_affinity::parse(text.unwrap_or_default());
    parsed.map_err(|problem| format!("annotation {key}: {problem}"))
}

/// Remaining maximum execution time, in nanoseconds.
fn runs(workload: &Workload) -> Option<i64> {
    let most = workload.spec.maximum_execution_time_seconds?;
    // Seconds before an eviction count towards the maximum execution time.
    let past = workload.status.accumulated_past_execution_time_seconds.unwrap_or(0);
    Some(i64::from(most).saturating_sub(past.into()).max(0) * 1_000_000_000)
}

fn pods(names: &mut Names, pod_set: &CountedPodSet<'_>, other_pods: bool) -> RequestedPodSet {
    let mut requests: Vec<_> = pod_set
        .node_requests
        .iter()
        .map(|(&name, &nanos)| (names.resources.intern(name), from_nanos(name, nanos).clip()))
        .collect();
    // Nodes limit the number of pods, whatever the pods request.
    requests.push((names.resources.intern("pods"), Amount(1)));
    requests.sort_unstable_by_key(|(resource, _)| *resource);
    RequestedPodSet {
        name: pod_set.pod_set.name.as_str().into(),
        count: pod_set.count,
        requests,
        selection: pod_set.pod.map(selection).unwrap_or_default(),
        needs_more_than_room: other_pods
            || pod_set.pod.is_some_and(more_than_room::needs_more_than_room),
    }
}

/// The kind of a Workload's job; `None` if neither an owner nor an annotation names it.
#[must_use]
pub fn job_kind(workload: &Workload) -> Option<JobGvk> {
    let kind = kind(workload);
    (kind != JobGvk::default()).then_some(kind)
}

/// Job kind: that of the controller, of any other owner (a pod group has many), or of the annotation.
fn kind(workload: &Workload) -> JobGvk {
    if let Some(owner) = job_owner(workload) {
        return of_version(&owner.api_version, &owner.kind);
    }
    let annotations = workload.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(JOB_OWNER_GVK));
    text.map(|text| of_text(text)).unwrap_or_default()
}

fn of_version(api_version: &str, kind: &str) -> JobGvk {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    JobGvk { group: group.into(), version: version.into(), kind: kind.into() }
}

/// `group/version, Kind=kind`, or `kind.version.group`.
fn of_text(text: &str) -> JobGvk {
    if let Some((version, kind)) = text.split_once(", Kind=") {
        return of_version(version, kind);
    }
    let mut parts = text.splitn(3, '.');
    let mut next = || parts.next().unwrap_or_default().into();
    let (kind, version, group) = (next(), next(), next());
    JobGvk { group, version, kind }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made for the call")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(metadata: Value) -> (String, String, String) {
        let workload: Workload =
            serde_json::from_value(json!({"metadata": metadata})).expect("a Workload");
        let kind = kind(&workload);
        (kind.group.into(), kind.version.into(), kind.kind.into())
    }

    #[test]
    fn past_execution_time_counts() {
        let runs = |value: Value| {
            runs(&serde_json::from_value(value).expect("a Workload"))
                .map(|nanos| nanos / 1_000_000_000)
        };
        let most = json!({"maximumExecutionTimeSeconds": 60});
        assert_eq!(runs(json!({})), None);
        assert_eq!(runs(json!({"spec": most})), Some(60));
        let past = |seconds: i32| json!({"accumulatedPastExecutionTimeSeconds": seconds});
        assert_eq!(runs(json!({"spec": most, "status": past(20)})), Some(40));
        assert_eq!(runs(json!({"spec": most, "status": past(70)})), Some(0));
    }

    #[test]
    fn the_controller_reference_gives_the_job_kind() {
        let owner = |version: &str, kind: &str, controller: bool| json!({"apiVersion": version, "kind": kind, "name": "n", "uid": "u", "controller": controller});
        let job = ("batch".into(), "v1".into(), "Job".into());
        let owners = [owner("v1", "Pod", false), owner("batch/v1", "Job", true)];
        assert_eq!(of(json!({"ownerReferences": owners})), job);
        let pod = (String::new(), "v1".into(), "Pod".into());
        assert_eq!(of(json!({"ownerReferences": [owner("v1", "Pod", false)]})), pod);
        let key = "kueue.x-k8s.io/job-owner-gvk";
        assert_eq!(of(json!({"annotations": {key: "batch/v1, Kind=Job"}})), job);
        assert_eq!(of(json!({"annotations": {key: "Job.v1.batch"}})), job);
        assert_eq!(of(json!({"annotations": {key: "/v1, Kind=Pod"}})), pod);
        assert_eq!(of(json!({})), Default::default());
    }
}
