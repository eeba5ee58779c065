//! Jobs that contradict themselves, with a Workload of an earlier version of Kueue.

use super::*;

/// A RayCluster in an AppWrapper that declares the pod set of its head alone.
fn undeclared_group(suspend: bool, phase: &str) -> JobObject {
    let has_objects = if phase == "Suspended" { "False" } else { "True" };
    let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
    let group = json!({ "groupName": "w", "replicas": 2, "template": template });
    let spec = json!({ "headGroupSpec": { "template": template }, "workerGroupSpecs": [group] });
    let cluster = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": spec });
    let declared = json!([{ "path": "template.spec.headGroupSpec.template" }]);
    let object = json!({
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "u-1",
            "labels": { "kueue.x-k8s.io/queue-name": "lq" },
        },
        "spec": {
            "suspend": suspend, "components": [{ "template": cluster, "podSets": declared }],
        },
        "status": {
            "phase": phase,
            "conditions": [{ "type": "QuotaReserved", "status": has_objects }],
        },
    });
    let kinds = Kinds::built_in();
    let kind = kinds.find("workload.codeflare.dev/v1beta2", "AppWrapper").expect("built in");
    let job = kind.decode(object).expect("an AppWrapper decodes");
    assert!(job.contradicts_itself());
    job
}

fn of(job: &JobObject, conditions: &[&str], prebuilt: bool) -> Vec<String> {
    let workload = workload(conditions);
    let (workloads, flavors) = ([&workload], flavors());
    let context = ReconcileContext { prebuilt, ..context(&workloads, &flavors) };
    let steps = reconcile(job, context).into_iter();
    let word = |step: ReconcileStep<JobObject>| match step {
        ReconcileStep::Refuse { reason, .. } => format!("refuse {reason}"),
        ReconcileStep::Workload { write: WorkloadStep::Delete, .. } => "delete".to_owned(),
        ReconcileStep::Workload { write: WorkloadStep::RemoveFinalizer, .. } => {
            "unfinalize".to_owned()
        }
        ReconcileStep::Workload { write: WorkloadStep::Finish { reason, message }, .. } => {
            format!("finish {reason}: {message}")
        }
        ReconcileStep::Job(JobStep::Stop(_, reason)) => format!("stop {reason:?}"),
        other => format!("{other:?}"),
    };
    steps.map(word).collect()
}

#[test]
fn a_suspended_job_that_contradicts_itself_has_no_workload() {
    let waiting = undeclared_group(true, "Suspended");
    for conditions in [&[][..], &["QuotaReserved"], &["QuotaReserved", "Admitted"]] {
        assert_eq!(of(&waiting, conditions, false), ["delete"], "{conditions:?}");
    }
    let evicted = ["QuotaReserved", "Evicted"];
    assert_eq!(of(&waiting, &evicted, false), ["delete"]);
    assert_eq!(of(&waiting, &["QuotaReserved", "Finished"], false), ["unfinalize"]);
    let refused = reconcile(&waiting, context(&[], &flavors()));
    assert!(matches!(
        refused[..],
        [ReconcileStep::Refuse { reason: reasons::ERR_WORKLOAD_COMPOSE, .. }]
    ));
}

#[test]
fn a_job_that_contradicts_itself_keeps_its_workload_while_its_pods_run() {
    let admitted = ["QuotaReserved", "Admitted"];
    for prebuilt in [false, true] {
        let running = undeclared_group(false, "Running");
        assert_eq!(of(&running, &admitted, prebuilt), [""; 0], "an upgrade does not stop it");
        let evicted = ["QuotaReserved", "Admitted", "Evicted"];
        assert_eq!(of(&running, &evicted, prebuilt), ["stop WorkloadEvicted"]);
        let stopping = undeclared_group(true, "Suspending");
        assert_eq!(of(&stopping, &evicted, prebuilt), [""; 0], "its pods hold the quota");
    }
}

#[test]
fn a_copy_that_contradicts_itself_fails_to_start() {
    let copy = undeclared_group(true, "Suspended");
    let message = "spec.components[0].podSets: Invalid value: PodSet with path 'template.spec.workerGroupSpecs[0].template' is missing";
    let failed = format!("finish FailedToStart: {message}");
    assert_eq!(of(&copy, &["QuotaReserved", "Admitted"], true), [failed]);
    assert_eq!(of(&copy, &[], true), [""; 0], "it holds no quota");
}
