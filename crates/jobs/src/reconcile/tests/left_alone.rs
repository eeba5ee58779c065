//! Jobs that are left alone.

use super::*;

/// Whatever made the Workload of such a job also releases it.
#[test]
fn a_job_that_is_left_alone_is_left_alone_while_it_is_deleted() {
    let kind = Kinds::built_in().of_framework("ray.io/rayjob").expect("it is built in");
    let job = |deleted: Value, selector: Value| {
        let object = json!({
            "metadata": { "name": "train", "namespace": "ns", "uid": "u-1", "deletionTimestamp": deleted },
            "spec": { "suspend": true, "clusterSelector": selector },
        });
        kind.decode(object).expect("a RayJob decodes")
    };
    let now = json!("2026-01-01T00:00:00Z");
    let steps = |job: &JobObject| {
        let of_job = workload(&["QuotaReserved", "Admitted"]);
        reconcile(job, context(&[&of_job], &FlavorsByName::new())).len()
    };
    assert_eq!(steps(&job(now.clone(), json!({ "a": "b" }))), 0);
    assert_eq!(steps(&job(now, json!(null))), 1, "its finalizer is removed");
}

#[test]
fn a_job_that_is_left_alone_and_waits_in_a_queue_says_so() {
    let kind = Kinds::built_in().of_framework("ray.io/rayjob").expect("it is built in");
    let steps = |queue: &str, suspend: bool, deleted: Value| {
        let object = json!({
            "metadata": {
                "name": "train", "namespace": "ns", "uid": "u-1", "deletionTimestamp": deleted,
                "labels": { "kueue.x-k8s.io/queue-name": queue },
            },
            "spec": { "suspend": suspend, "clusterSelector": { "a": "b" } },
        });
        let job = kind.decode(object).expect("a RayJob decodes");
        reconcile(&job, context(&[], &FlavorsByName::new()))
    };
    let message = "a RayJob is left alone for spec.clusterSelector: it has no Workload in the queue lq and stays suspended".to_owned();
    let reason = "ErrWorkloadCompose";
    assert_eq!(steps("lq", true, json!(null)), [ReconcileStep::Refuse { reason, message }]);
    assert_eq!(steps("", true, json!(null)), [], "it is in no queue");
    assert_eq!(steps("lq", false, json!(null)), [], "it runs");
    assert_eq!(steps("lq", true, json!("2026-01-01T00:00:00Z")), [], "it is being deleted");
}
