//! A Job and its remote copy (docs/reference/dispatch.md §5, docs/reference/multikueue.md §2.7).

use crds::{meta::Condition, names::reasons::MULTI_KUEUE_ADAPTER, v1beta2::PodSet};
use serde_json::Value;

use super::{Job, pod_set, pod_sets_info, stop::START_TIME};
use crate::{
    JobGates, declared::NOTHING_RUNS, pod_set_info::PodSetInfo,
    remote_objects::metadata_for_creation,
};

/// Spec fields that belong to the Job's own cluster. With a time to live, the worker would delete a finished copy
/// before its status is copied.
const OF_THIS_CLUSTER: [&str; 2] = ["selector", "ttlSecondsAfterFinished"];

/// Condition of a suspended Job.
const SUSPENDED: &str = "Suspended";

/// Field that marks a selector as set by the user; such a selector is kept.
const MANUAL_SELECTOR: &str = "manualSelector";

/// The copy of the Job for a worker.
pub(super) fn for_worker(job: &Job, pod_sets: &[PodSet], gates: JobGates) -> Job {
    let mut copy = job.clone();
    let infos: Vec<PodSetInfo> = pod_sets.iter().map(PodSetInfo::of).collect();
    // The hub's Job may be started already. Its copy starts from the template of the Workload,
    // because the worker merges the flavors itself.
    pod_sets_info::restore(&mut copy, &infos, gates);
    copy.metadata = metadata_for_creation(&job.metadata);
    copy.status = Default::default();
    // On the worker the Job controller runs the copy.
    copy.spec.managed_by = None;
    // The copy starts when the worker admits the clone (docs/reference/dispatch.md §5).
    copy.spec.suspend = Some(true);
    let manual = copy.spec.rest.get(MANUAL_SELECTOR) == Some(&Value::Bool(true));
    copy.spec.rest.retain(|field, _| {
        !OF_THIS_CLUSTER.contains(&field.as_str()) || manual && field == "selector"
    });
    if let Some(metadata) = copy.spec.template.metadata.as_mut() {
        // These labels name the hub's Job; the worker's Job controller sets its own.
        metadata.labels.retain(|label, _| !pod_set::is_controllers(label));
    }
    copy
}

/// The Job with a status without active pods; `None` if the status is that already. For a Job that ran on a worker it
/// also sets Suspended to true: its template can be restored only then.
pub(super) fn idle(job: &Job) -> Option<Job> {
    let mut idle = job.clone();
    let status = &mut idle.status;
    status.active = None;
    status.ready = None;
    status.uncounted_terminated_pods = None;
    for field in [START_TIME, "terminating"] {
        status.rest.remove(field);
    }
    if let Some(conditions) = status.conditions.as_mut()
        && let Some(suspended) = conditions.iter_mut().find(|one| one.r#type == SUSPENDED)
        && suspended.status != "True"
    {
        *suspended = Condition {
            status: "True".to_owned(),
            reason: MULTI_KUEUE_ADAPTER.to_owned(),
            message: NOTHING_RUNS.to_owned(),
            r#type: SUSPENDED.to_owned(),
            ..Condition::default()
        };
    }
    (idle.status != job.status).then_some(idle)
}

/// Whether a pod ran, or a pod finished.
pub(super) fn started(job: &Job) -> bool {
    let status = &job.status;
    let counted = [status.active, status.succeeded, status.failed];
    counted.into_iter().flatten().any(|count| count > 0)
        || status.rest.get(START_TIME).is_some_and(|time| !time.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::GenericJob;

    fn job() -> Job {
        serde_json::from_value(json!({
            "metadata": {
                "name": "train", "namespace": "ns", "uid": "u-1", "resourceVersion": "7",
                "labels": { "team": "ml" }, "ownerReferences": [], "finalizers": ["f"],
            },
            "spec": {
                "parallelism": 2, "suspend": false, "managedBy": "kueue.x-k8s.io/multikueue",
                "ttlSecondsAfterFinished": 5, "selector": { "matchLabels": { "a": "b" } },
                "template": {
                    "metadata": { "labels": { "job-name": "train", "own": "1" } },
                    "spec": { "nodeSelector": { "added": "at start" } },
                },
            },
            "status": {
                "active": 2, "ready": 1, "startTime": "2026-01-01T00:00:00Z", "failed": 1,
                "conditions": [{ "type": "Suspended", "status": "False", "reason": "JobResumed" }],
            },
        }))
        .expect("a Job decodes")
    }

    #[test]
    fn a_remote_job_is_suspended_and_has_no_fields_of_its_own_cluster() {
        let gates = JobGates::default();
        let mut before = job();
        before.spec.template.spec = Some(Default::default());
        let copy = job().remote_job(&before.pod_sets(gates), gates);
        assert_eq!(
            serde_json::to_value(copy).expect("encodes"),
            json!({
                "metadata": { "name": "train", "namespace": "ns", "labels": { "team": "ml" } },
                "spec": {
                    "parallelism": 2, "suspend": true,
                    "template": { "metadata": { "labels": { "own": "1" } }, "spec": {} },
                },
                "status": {},
            })
        );
    }

    #[test]
    fn an_idle_status_has_no_active_pods_and_keeps_the_counts() {
        assert!(job().has_started());
        let idle = job().with_idle_status().expect("it ran");
        let status = serde_json::to_value(&idle.status).expect("encodes");
        assert_eq!(status["failed"], 1);
        assert_eq!(status["conditions"][0]["status"], "True");
        assert_eq!(status.get("startTime"), None);
        assert!(!idle.is_active());
        assert!(idle.with_idle_status().is_none(), "said once");
    }
}
