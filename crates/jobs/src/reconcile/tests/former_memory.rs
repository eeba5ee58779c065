//! Workloads of SparkApplications of a version that read a bare number of memory as bytes.

use super::*;

fn application(suspend: bool) -> JobObject {
    let kind = Kinds::built_in();
    let kind = kind.of_framework("sparkoperator.k8s.io/sparkapplication").expect("a built-in kind");
    let labels = json!({ "kueue.x-k8s.io/queue-name": "lq" });
    let object = json!({
        "metadata": { "name": "j", "namespace": "ns", "uid": "u-1", "labels": labels },
        "spec": {
            "suspend": suspend, "mode": "cluster",
            "driver": { "memory": "1024", "coreRequest": "1" },
            "executor": { "memory": "2g", "instances": 2 },
        },
    });
    kind.decode(object).expect("a job decodes")
}

/// The Workload of a job with a driver of so much memory, and these conditions set to true.
fn with_memory(job: &JobObject, memory: &str, conditions: &[&str]) -> Workload {
    let written =
        construct_workload(job, WorkloadPriority::default(), &KeysToCopy::default(), GATES());
    let mut former = json!(written);
    let container = former
        .pointer_mut("/spec/podSets/0/template/spec/containers/0/resources/requests")
        .expect("a request");
    assert_eq!(container["memory"], "1Gi");
    container["memory"] = json!(memory);
    former["status"] = json!(workload(conditions).status);
    if let Some(one) = former.pointer("/status/admission/podSetAssignments/0").cloned() {
        let assigned = [("driver", 1), ("executor", 2)].map(|(name, count)| {
            let mut assignment = one.clone();
            (assignment["name"], assignment["count"]) = (json!(name), json!(count));
            assignment
        });
        former["status"]["admission"]["podSetAssignments"] = json!(assigned);
    }
    serde_json::from_value(former).expect("a Workload decodes")
}

#[test]
fn a_workload_with_quota_keeps_bytes_of_memory() {
    let steps = |suspend: bool, memory: &str, conditions: &[&str]| {
        let job = application(suspend);
        let workload = with_memory(&job, memory, conditions);
        reconcile(&job, context(&[&workload], &flavors()))
    };
    for memory in ["1024", "1Gi"] {
        assert_eq!(steps(false, memory, &["QuotaReserved", "Admitted"]), [], "{memory}");
        assert_eq!(steps(true, memory, &["QuotaReserved"]), [], "{memory}");
    }
    let other = steps(false, "2048", &["QuotaReserved", "Admitted"]);
    assert!(!other.is_empty(), "another amount");
    let waits = steps(true, "1024", &[]);
    assert!(matches!(waits[..], [ReconcileStep::UpdateWorkload(_)]), "{waits:?}");
    assert_eq!(steps(true, "1Gi", &[]), []);
}
