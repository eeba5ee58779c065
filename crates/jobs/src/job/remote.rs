//! A Job and its remote copy (docs/reference/dispatch.md §5, docs/reference/multikueue.md §2.7).

use crds::{meta::Condition, names::reasons::MULTI_KUEUE_ADAPTER, v1beta2::PodSet};
use serde_json::Value;

use super::{
    Job, JobStatus, pod_set, pod_sets_info,
    status::{outcome, success_of},
    stop::START_TIME,
};
use crate::{
    JobGates, declared::NOTHING_RUNS, dispatch::remote_objects::metadata_for_creation,
    start::pod_set_info::PodSetInfo,
};

/// Field of the spec that belongs to the Job's own cluster: the worker would delete a finished copy before its status is copied.
const TIME_TO_LIVE: &str = "ttlSecondsAfterFinished";

/// Condition of a suspended Job.
const SUSPENDED: &str = "Suspended";

/// Conditions that say how a Job will end. The API server refuses to take them back.
const ANNOUNCE_END: [&str; 2] = [FAILURE_TARGET, "SuccessCriteriaMet"];

/// Condition of a Job that will fail.
const FAILURE_TARGET: &str = "FailureTarget";

/// Field of the status of a Job that is complete.
const COMPLETION_TIME: &str = "completionTime";

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
    // The worker's API server makes a selector of its own.
    if copy.spec.rest.get(MANUAL_SELECTOR) != Some(&Value::Bool(true)) {
        copy.spec.selector = None;
    }
    if copy.spec.rest.contains_key(TIME_TO_LIVE) {
        copy.spec.rest.remove(TIME_TO_LIVE);
    }
    if let Some(metadata) = copy.spec.template.metadata.as_mut() {
        // These labels name the hub's Job; the worker's Job controller sets its own.
        metadata.labels.retain(|label, _| !pod_set::is_controllers(label));
    }
    copy
}

/// The status of the copy, as far as the API server takes it for this Job. It refuses one with fewer failed or succeeded pods
/// than before, and one that takes back how the Job will end. A copy on another cluster begins at zero: a count that may not fall
/// stays until the copy has more, and how the Job will end is copied with its end. An end that is not the one that the Job shows
/// is not copied.
pub(super) fn status_from(job: &Job, copy: &Job) -> JobStatus {
    let mut status = copy.status.clone();
    status.failed = status.failed.max(job.status.failed);
    if !may_count_less(job) {
        status.succeeded = status.succeeded.max(job.status.succeeded);
    }
    let known = || job.status.conditions.iter().flatten().filter(|one| announces(one));
    let taken = outcome(copy).filter(|end| !known().any(|one| excludes(one, end.success)));
    let mut conditions = status.conditions.take().unwrap_or_default();
    if taken.is_none() {
        conditions.retain(|one| !announces(one) && success_of(one).is_none());
        status.rest.remove(COMPLETION_TIME);
    }
    let kept = known().filter(|known| conditions.iter().all(|one| one.r#type != known.r#type));
    let kept: Vec<Condition> = kept.cloned().collect();
    conditions.extend(kept);
    status.conditions = (!conditions.is_empty()).then_some(conditions);
    status
}

/// Whether a condition says how a Job will end.
fn announces(condition: &Condition) -> bool {
    ANNOUNCE_END.contains(&&*condition.r#type)
}

/// Whether the API server takes no such end of a Job with this condition.
fn excludes(announced: &Condition, success: bool) -> bool {
    announced.status == "True" && (announced.r#type == FAILURE_TARGET) == success
}

/// Whether the API server takes fewer succeeded pods than before: it lets such a Job shrink.
pub(super) fn may_count_less(job: &Job) -> bool {
    job.is_indexed() && job.spec.completions == Some(job.parallelism())
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

/// Whether the Job was started since it was last suspended. Pods that have ended prove nothing: their counts outlive the copy
/// that had them.
pub(super) fn started(job: &Job) -> bool {
    let status = &job.status;
    status.active.is_some_and(|count| count > 0)
        || status.rest.get(START_TIME).is_some_and(|time| !time.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{GenericJob, JobObject};

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
        assert!(!idle.has_started(), "the pod that failed was one of an earlier copy");
    }

    /// The Job after its copy was lost, with these fields of its spec, and the status that it gets from a copy elsewhere.
    fn moved(spec: &Value, copied: &Value) -> Value {
        let (mut hub, mut copy) = (json!(job()), json!(job()));
        hub["spec"]
            .as_object_mut()
            .expect("a spec")
            .extend(spec.as_object().expect("fields").clone());
        hub["status"] = json!({
            "succeeded": 3, "failed": 2, "completedIndexes": "0-2",
            "conditions": [{ "type": "Suspended", "status": "True" }],
        });
        copy["status"] = copied.clone();
        let decode = |value: Value| serde_json::from_value::<Job>(value).expect("a Job decodes");
        let (hub, copy) = (decode(hub), decode(copy));
        let after = hub.with_remote_status(&copy);
        assert_eq!(after.with_remote_status(&copy), after, "copied once");
        json!(after.status)
    }

    #[test]
    fn counts_that_the_api_server_lets_not_fall_stay_until_the_copy_elsewhere_has_more() {
        let indexed =
            |completions: u32| json!({ "completionMode": "Indexed", "completions": completions });
        for (spec, copied, succeeded, failed) in [
            (json!({}), json!({ "active": 2 }), Some(3), 2),
            (json!({}), json!({ "active": 2, "succeeded": 1, "failed": 1 }), Some(3), 2),
            (json!({}), json!({ "active": 2, "succeeded": 4, "failed": 5 }), Some(4), 5),
            (indexed(5), json!({ "active": 2, "succeeded": 1 }), Some(3), 2),
            (indexed(2), json!({ "active": 2, "succeeded": 1 }), Some(1), 2),
            (indexed(2), json!({ "active": 2 }), None, 2),
        ] {
            let status = moved(&spec, &copied);
            assert_eq!(
                status.get("succeeded"),
                succeeded.map(|one| json!(one)).as_ref(),
                "{spec} {copied}"
            );
            assert_eq!(status["failed"], failed, "{spec} {copied}");
            assert_eq!(status["active"], 2);
            assert_eq!(status.get("completedIndexes"), None, "{spec} {copied}");
        }
    }

    #[test]
    fn how_a_job_will_end_is_copied_with_its_end() {
        let condition =
            |kind: &str| json!({ "type": kind, "status": "True", "reason": "", "message": "" });
        for (announced, end) in [("FailureTarget", "Failed"), ("SuccessCriteriaMet", "Complete")] {
            let early =
                moved(&json!({}), &json!({ "active": 1, "conditions": [condition(announced)] }));
            assert_eq!(early.get("conditions"), None, "{announced}");
            let all = json!([condition(announced), condition(end)]);
            assert_eq!(moved(&json!({}), &json!({ "conditions": all }))["conditions"], all);
        }
    }

    #[test]
    fn an_end_other_than_the_one_that_a_job_shows_is_not_copied() {
        let conditions = |kinds: &[&str]| {
            let one = |kind| json!({ "type": kind, "status": "True", "reason": "", "message": "" });
            kinds.iter().map(one).collect::<Vec<Value>>()
        };
        let with = |status: &Value| {
            let mut one = json!(job());
            one["status"] = status.clone();
            JobObject::from(serde_json::from_value::<Job>(one).expect("a Job decodes"))
        };
        for (shown, ended, kept, refused) in [
            ("FailureTarget", ["SuccessCriteriaMet", "Complete"], vec!["FailureTarget"], true),
            ("SuccessCriteriaMet", ["FailureTarget", "Failed"], vec!["SuccessCriteriaMet"], true),
            ("FailureTarget", ["FailureTarget", "Failed"], vec!["FailureTarget", "Failed"], false),
            (
                "FailureTarget",
                ["Suspended", "Failed"],
                vec!["Suspended", "Failed", "FailureTarget"],
                false,
            ),
        ] {
            let hub = with(&json!({ "active": 1, "conditions": conditions(&[shown]) }));
            let copy = json!({ "succeeded": 1, "completionTime": "2026-01-01T00:00:00Z", "conditions": conditions(&ended) });
            let copy = with(&copy);
            assert_eq!(hub.refuses_end_of(&copy), refused, "{shown} {ended:?}");
            let after = hub.with_remote_status(&copy);
            assert!(after.has_status_of(&copy), "copied once");
            assert_eq!(after.refuses_end_of(&copy), refused, "{shown} {ended:?}");
            let JobObject::Batch(after) = after else { panic!("a Job") };
            let status = json!(after.status);
            assert_eq!(status["conditions"], json!(conditions(&kept)), "{shown} {ended:?}");
            assert_eq!(status.get("completionTime").is_none(), refused, "{shown} {ended:?}");
            assert_eq!(status.get("active"), None);
        }
    }
}
