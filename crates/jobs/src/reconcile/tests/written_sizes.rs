//! Workloads with the number of pods that a job writes, although its operator runs another one.

use super::*;
use crate::GenericJob;

/// A RayCluster, bare or in an AppWrapper, with a group of no workers and a minimum of one.
fn ray(wrapped: bool, suspend: bool) -> JobObject {
    let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
    let group = json!({
        "groupName": "w", "replicas": 0, "minReplicas": 1, "maxReplicas": 3, "template": template,
    });
    let spec = json!({ "headGroupSpec": { "template": template }, "workerGroupSpecs": [group] });
    let cluster = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": spec });
    let (kind, mut object) = if wrapped {
        let components = json!([{ "template": cluster }]);
        (
            ("workload.codeflare.dev/v1beta2", "AppWrapper"),
            json!({ "spec": { "components": components } }),
        )
    } else {
        (("ray.io/v1", "RayCluster"), json!({ "spec": spec }))
    };
    object["spec"]["suspend"] = json!(suspend);
    let labels = json!({ "kueue.x-k8s.io/queue-name": "lq" });
    object["metadata"] = json!({ "name": "j", "namespace": "ns", "uid": "u-1", "labels": labels });
    let kind = Kinds::built_in().find(kind.0, kind.1).expect("a built-in kind");
    kind.decode(object).expect("a job decodes")
}

/// The Workload of a job, with no workers, and these conditions set to true.
fn as_written(job: &JobObject, conditions: &[&str]) -> Workload {
    let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
    let mut written = construct_workload(job, priority, &copied, GATES());
    assert_eq!(written.spec.pod_sets[1].count, Some(1), "the operator runs one");
    written.spec.pod_sets[1].count = Some(0);
    written.status = workload(conditions).status;
    if let Some(admission) = &mut written.status.admission {
        let one = admission.pod_set_assignments[0].clone();
        let sets = written.spec.pod_sets.iter();
        let assigned = sets.map(|set| {
            let mut assignment = one.clone();
            (assignment.name, assignment.count) = (set.name.clone(), set.count);
            assignment
        });
        admission.pod_set_assignments = assigned.collect();
    }
    written
}

#[test]
fn a_workload_with_quota_keeps_the_number_that_the_job_writes() {
    for wrapped in [false, true] {
        let steps = |suspend: bool, conditions: &[&str]| {
            let job = ray(wrapped, suspend);
            let workload = as_written(&job, conditions);
            reconcile(&job, context(&[&workload], &flavors()))
        };
        assert_eq!(steps(false, &["QuotaReserved", "Admitted"]), [], "it runs on: {wrapped}");
        assert_eq!(steps(true, &["QuotaReserved"]), [], "{wrapped}");
        let waits = steps(true, &[]);
        assert!(matches!(waits[..], [ReconcileStep::UpdateWorkload(_)]), "{wrapped}: {waits:?}");
    }
}

#[test]
fn a_clone_keeps_the_number_that_the_job_writes() {
    for wrapped in [false, true] {
        let job = ray(wrapped, true);
        let mut clone = as_written(&job, &[]);
        let flavors = flavors();
        let steps = |clone: &Workload| {
            reconcile(&job, ReconcileContext { prebuilt: true, ..context(&[clone], &flavors) })
        };
        assert_eq!(steps(&clone), [], "{wrapped}");
        clone.spec.pod_sets[1].count = Some(2);
        assert!(!steps(&clone).is_empty(), "another number: {wrapped}");
        assert!(job.finished().is_none());
    }
}

/// A former version counted the declared pods of a component, and the replicas of a group of Ray within their bounds.
#[test]
fn a_workload_with_quota_has_either_number_in_each_pod_set() {
    let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
    let group = json!({
        "groupName": "w", "replicas": 0, "minReplicas": 1, "maxReplicas": 3, "template": template,
    });
    let spec = json!({ "headGroupSpec": { "template": template }, "workerGroupSpecs": [group] });
    let cluster = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": spec });
    let spec = json!({ "parallelism": 3, "completions": 3, "template": template });
    let batch = json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": spec });
    let declared = json!([{ "path": "template.spec.template", "replicas": 1 }]);
    let components = json!([{ "template": cluster }, { "template": batch, "podSets": declared }]);
    let object = json!({
        "metadata": {
            "name": "j", "namespace": "ns", "uid": "u-1",
            "labels": { "kueue.x-k8s.io/queue-name": "lq" },
        },
        "spec": { "suspend": false, "components": components },
    });
    let kinds = Kinds::built_in();
    let kind = kinds.find("workload.codeflare.dev/v1beta2", "AppWrapper").expect("built in");
    let job = kind.decode(object).expect("an AppWrapper decodes");
    let steps = |workers: i32, pods: i32| {
        let mut workload = as_written(&job, &["QuotaReserved", "Admitted"]);
        for (index, count) in [(1, workers), (2, pods)] {
            workload.spec.pod_sets[index].count = Some(count);
            let admission = workload.status.admission.as_mut().expect("it has quota");
            admission.pod_set_assignments[index].count = Some(count);
        }
        reconcile(&job, context(&[&workload], &flavors()))
    };
    for (workers, pods) in [(1, 3), (0, 1), (1, 1), (0, 3)] {
        assert_eq!(steps(workers, pods), [], "it runs on: {workers} {pods}");
    }
    for (workers, pods) in [(2, 1), (1, 2)] {
        assert!(!steps(workers, pods).is_empty(), "another number: {workers} {pods}");
    }
}
