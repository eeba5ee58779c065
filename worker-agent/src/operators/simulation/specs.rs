//! Specs of the objects that are operated.

use serde_json::{Value, json};

/// The image of Ray after an upgrade.
pub(super) const NEXT_IMAGE: &str = "ray:next";

/// An object of Ray's API.
pub(super) fn ray(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "ns"}, "spec": spec,
    })
}

fn template(name: &str) -> Value {
    json!({"spec": {"containers": [{"name": name, "image": "ray"}]}})
}

/// The spec of a RayCluster with so many workers.
pub(super) fn cluster_spec(workers: u32) -> Value {
    json!({
        "rayVersion": "2.53.0",
        "headGroupSpec": {"rayStartParams": {}, "template": template("head")},
        "workerGroupSpecs": [{
            "groupName": "workers", "replicas": workers, "minReplicas": 0, "maxReplicas": 5,
            "rayStartParams": {}, "template": template("worker"),
        }],
    })
}

/// A RayCluster with further fields in its spec.
pub(super) fn cluster_with(workers: u32, fields: &Value) -> Value {
    let mut spec = cluster_spec(workers);
    json_patch::merge(&mut spec, fields);
    ray("RayCluster", "c", &spec)
}

pub(super) fn full_spec() -> Value {
    let mut spec = cluster_spec(2);
    spec["enableInTreeAutoscaling"] = json!(true);
    spec["authOptions"] = json!({"mode": "token"});
    spec["headGroupSpec"]["enableIngress"] = json!(true);
    spec["workerGroupSpecs"][0]["numOfHosts"] = json!(2);
    spec
}

/// A RayJob with further fields in its spec; null removes one.
pub(super) fn job_with(mode: &str, fields: &Value) -> Value {
    let mut spec = json!({
        "submissionMode": mode, "entrypoint": "python main.py",
        "shutdownAfterJobFinishes": true, "rayClusterSpec": cluster_spec(1),
    });
    json_patch::merge(&mut spec, fields);
    ray("RayJob", "j", &spec)
}

/// Rules that remove workers, then the cluster, then the RayJob.
pub(super) fn deletion_rules() -> Value {
    let rule = |policy: &str, seconds: u32| json!({"policy": policy, "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": seconds}});
    let rules = [rule("DeleteWorkers", 0), rule("DeleteCluster", 5), rule("DeleteSelf", 10)];
    json!({"deletionStrategy": {"deletionRules": rules}, "shutdownAfterJobFinishes": null})
}

/// A RayCronJob with a RayJob each minute.
pub(super) fn cron_job() -> Value {
    let template = job_with("HTTPMode", &json!({}))["spec"].clone();
    ray("RayCronJob", "cron", &json!({"schedule": "* * * * *", "jobTemplate": template}))
}

/// A RayService with further fields in its spec.
pub(super) fn service_with(fields: &Value) -> Value {
    let mut spec = json!({
        "rayClusterConfig": cluster_spec(1),
        "serveConfigV2": "applications:\n- name: one\n",
        "rayClusterDeletionDelaySeconds": 3,
    });
    json_patch::merge(&mut spec, fields);
    ray("RayService", "s", &spec)
}

/// An upgrade in which capacity and traffic move in two steps.
pub(super) fn incremental_upgrade() -> Value {
    let options = json!({
        "gatewayClassName": "istio", "maxSurgePercent": 50, "stepSizePercent": 50,
        "intervalSeconds": 1,
    });
    // No autoscaler is played, so the group has its pod from the beginning.
    let mut groups = cluster_spec(1)["workerGroupSpecs"].take();
    groups[0]["minReplicas"] = json!(1);
    json!({
        "upgradeStrategy": {
            "type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": options,
        },
        "rayClusterConfig": {"enableInTreeAutoscaling": true, "workerGroupSpecs": groups},
    })
}

/// An AppWrapper of these components, with short periods.
pub(super) fn wrapper_of(components: &[Value], periods: &[(&str, &str)]) -> Value {
    let annotations = periods.iter().map(|(name, value)| {
        (format!("workload.codeflare.dev.appwrapper/{name}"), Value::from(*value))
    });
    let annotations: serde_json::Map<String, Value> = annotations.collect();
    let components: Vec<Value> =
        components.iter().map(|template| json!({"template": template})).collect();
    json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {"name": "w", "namespace": "ns", "annotations": annotations},
        "spec": {"components": components},
    })
}

/// A Job of two pods, for which the kubelets do what `plays` says.
pub(super) fn batch_job(plays: Option<&str>) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "batch"},
        "spec": {"parallelism": 2, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "main"}],
        }}},
    });
    if let Some(plays) = plays {
        job["metadata"]["annotations"] = json!({super::environment::PLAYS: plays});
    }
    job
}

/// The jobs that an agent starts.
pub(super) fn job_kinds() -> Vec<(String, String)> {
    let kinds = [
        ("", "Pod"),
        ("batch", "Job"),
        ("jobset.x-k8s.io", "JobSet"),
        ("ray.io", "RayCluster"),
        ("ray.io", "RayJob"),
    ];
    kinds.map(|(group, kind)| (group.to_owned(), kind.to_owned())).to_vec()
}
