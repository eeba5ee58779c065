//! Pods that a parent holds and a managed pod controls: executors of a Spark driver.

use super::{cluster::Cluster, lookups::settings_with, *};

fn pod_kind() -> Kind {
    ::jobs::pods::kind().clone()
}

/// A gated pod of the queue `lq` with these fields of its metadata.
fn pod(name: &str, metadata: &Value) -> Arc<JobObject> {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "resourceVersion": "1",
            "labels": {
                "kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/managed": "true",
            },
            "annotations": {"kueue.x-k8s.io/role-hash": "main"},
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        },
        "status": {"phase": "Pending"},
    });
    cluster::json_merge(&mut pod["metadata"], metadata);
    Arc::new(pod_kind().decode(pod).expect("a pod decodes"))
}

/// A pod that the driver controls, with these labels and annotations besides.
fn executor(name: &str, labels: &Value, annotations: &Value) -> Arc<JobObject> {
    let metadata = json!({
        "labels": labels, "annotations": annotations,
        "ownerReferences": [{
            "apiVersion": "v1", "kind": "Pod", "name": "driver", "uid": "driver", "controller": true,
        }],
    });
    pod(name, &metadata)
}

/// Workloads of a driver and these pods, without the end of the name that is a hash.
fn workloads_of(executors: Vec<Arc<JobObject>>) -> Vec<String> {
    let mut cluster = Cluster::with(settings_with(&["pod"], &Gates::default()));
    let mut objects = vec![pod("driver", &json!({}))];
    objects.extend(executors);
    let all = Change::Reset { objects, removed: vec![] };
    cluster.observe(ManagerInput::Job(pod_kind(), all)).settle();
    let names = cluster.workloads.keys();
    names.map(|name| name.rsplit_once('-').map_or(&**name, |(name, _)| name).to_owned()).collect()
}

fn held() -> Value {
    json!({"kueue.x-k8s.io/pod-suspending-parent": "spark-driver"})
}

#[test]
fn a_pod_that_a_parent_holds_has_a_workload_beside_that_of_its_managed_owner() {
    let executors = ["exec-1", "exec-2"].map(|name| executor(name, &json!({}), &held()));
    assert_eq!(workloads_of(executors.to_vec()), ["pod-driver", "pod-exec-1", "pod-exec-2"]);
    // A pod that only its owner starts has none.
    let child = executor("exec-1", &json!({}), &json!({}));
    assert_eq!(workloads_of(vec![child]), ["pod-driver"]);
}

#[test]
fn a_group_of_pods_that_a_parent_holds_has_a_workload_beside_that_of_their_managed_owner() {
    let group = json!({"kueue.x-k8s.io/pod-group-name": "all-executors"});
    let mut annotations = held();
    annotations["kueue.x-k8s.io/pod-group-total-count"] = json!("2");
    let members = ["exec-1", "exec-2"].map(|name| executor(name, &group, &annotations));
    assert_eq!(workloads_of(members.to_vec()), ["all", "pod-driver"]);
}
