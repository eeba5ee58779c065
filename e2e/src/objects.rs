//! Queues, nodes and Jobs of tests.

use anyhow::Result;
use crds::v1alpha1::{ClusterCapacity, NodeClass};
use crds::v1beta2::ClusterQueue;
use harness::{Cluster, NodeSpec, annotation};
use k8s_openapi::api::{
    batch::v1::{Job, JobCondition},
    core::v1::{Pod, Taint},
};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// Label and taint of the nodes that only pods of one test may use; the value is the test's namespace.
pub const OWN: &str = "lab.sluice.dev/space";

/// A flavor, a ClusterQueue of this much cpu, and a LocalQueue `queue` in the namespace; all named after the namespace.
/// With workers, the queue dispatches to them.
///
/// # Errors
/// If the API server refuses an object.
pub async fn queue(hub: &Cluster, namespace: &str, cpu: &str, workers: &[&str]) -> Result<()> {
    let text = queue_objects(namespace, cpu, workers, &json!({}));
    Ok(hub.apply(&text, namespace).await?)
}

/// A flavor and queues as of [`queue()`], for nodes that only pods of this test may use ([`own_nodes`]). A higher priority preempts.
///
/// # Errors
/// If the API server refuses an object.
pub async fn own_queue(hub: &Cluster, namespace: &str, cpu: &str, workers: &[&str]) -> Result<()> {
    let toleration = json!({"key": OWN, "value": namespace, "effect": "NoSchedule"});
    let flavor = json!({"nodeLabels": {OWN: namespace}, "tolerations": [toleration]});
    let text = queue_objects(namespace, cpu, workers, &flavor);
    Ok(hub.apply(&text, namespace).await?)
}

fn queue_objects(namespace: &str, cpu: &str, workers: &[&str], flavor: &Value) -> String {
    let api = "kueue.x-k8s.io/v1beta2";
    let mut objects = vec![
        json!({
            "apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": namespace},
            "spec": flavor,
        }),
        json!({
            "apiVersion": api, "kind": "LocalQueue",
            "metadata": {"name": "queue", "namespace": namespace},
            "spec": {"clusterQueue": namespace},
        }),
    ];
    let mut cluster_queue = json!({
        "apiVersion": api, "kind": "ClusterQueue", "metadata": {"name": namespace},
        "spec": {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                {"name": namespace, "resources": [{"name": "cpu", "nominalQuota": cpu}]},
            ]}],
        },
    });
    if !workers.is_empty() {
        let clusters: Vec<&str> = workers.to_vec();
        objects.push(json!({
            "apiVersion": api, "kind": "AdmissionCheck", "metadata": {"name": namespace},
            "spec": {
                "controllerName": "kueue.x-k8s.io/multikueue",
                "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": namespace},
            },
        }));
        objects.push(json!({
            "apiVersion": api, "kind": "MultiKueueConfig", "metadata": {"name": namespace},
            "spec": {"clusters": clusters},
        }));
        let strategy = json!({"admissionChecks": [{"name": namespace}]});
        cluster_queue["spec"]["admissionChecksStrategy"] = strategy;
    }
    objects.push(cluster_queue);
    let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
    text.join("\n---\n")
}

/// Gives the queue of a namespace these quotas and no others.
///
/// # Errors
/// If the API server refuses it.
pub async fn set_quota(hub: &Cluster, namespace: &str, quotas: &[(&str, &str)]) -> Result<()> {
    let quota = |(name, quota): &(&str, &str)| json!({"name": name, "nominalQuota": quota});
    let covered = quotas.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let resources = quotas.iter().map(quota).collect::<Vec<_>>();
    let groups = json!([{
        "coveredResources": covered,
        "flavors": [{"name": namespace, "resources": resources}],
    }]);
    let queues: Api<ClusterQueue> = hub.cluster_api();
    let patch = Patch::Merge(json!({"spec": {"resourceGroups": groups}}));
    queues.patch(namespace, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Run time in seconds of pods that do not end by themselves while a test runs.
pub const LONG: u32 = 3600;

/// A `podFailurePolicy`: the Job fails, and says so, when the container of a pod ends with this code.
#[must_use]
pub fn fail_job_on(code: u32) -> Value {
    let codes = json!({"containerName": "main", "operator": "In", "values": [code]});
    json!({"rules": [{"action": "FailJob", "onExitCodes": codes}]})
}

/// The phase of a pod; empty if it has none.
#[must_use]
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether a condition of a Job is true, such as `Complete`.
pub fn job_is(job: &Job, condition: &str) -> bool {
    job_condition(job, condition).is_some()
}

/// A condition of a Job that is true.
#[must_use]
pub fn job_condition<'a>(job: &'a Job, condition: &str) -> Option<&'a JobCondition> {
    let mut conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|one| one.type_ == condition && one.status == "True")
}

/// A Job with this number of pods, each with this cpu request and run time in seconds.
#[must_use]
pub fn job(name: &str, pods: usize, cpu: &str, seconds: u32) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {
            "parallelism": pods, "completions": pods,
            "template": {
                "metadata": {"annotations": {annotation::RUN_SECONDS: seconds.to_string()}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "main", "image": "main",
                        "resources": {"requests": {"cpu": cpu}},
                    }],
                },
            },
        },
    })
}

/// A pod in a queue that runs for so many seconds.
#[must_use]
pub fn pod(name: &str, queue: &str, seconds: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "labels": {"kueue.x-k8s.io/queue-name": queue},
            "annotations": {annotation::RUN_SECONDS: seconds.to_string()},
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}},
            }],
        },
    })
}

/// The pod as a member of a group of so many.
#[must_use]
pub fn in_group(mut pod: Value, group: &str, total: usize) -> Value {
    pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = json!(group);
    pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] =
        json!(total.to_string());
    pod
}

/// So many nodes of this much cpu that only pods of this test are meant for.
#[must_use]
pub fn nodes(prefix: &str, count: usize, cpu: &str) -> NodeSpec {
    let (prefix, cpu) = (prefix.to_owned(), cpu.to_owned());
    NodeSpec { prefix, count, cpu, ..NodeSpec::default() }
}

/// So many nodes of this much cpu that pods of other tests do not tolerate.
#[must_use]
pub fn own_nodes(namespace: &str, count: usize, cpu: &str) -> NodeSpec {
    let taint = Taint {
        key: OWN.to_owned(),
        value: Some(namespace.to_owned()),
        effect: "NoSchedule".to_owned(),
        time_added: None,
    };
    NodeSpec {
        labels: [(OWN.to_owned(), namespace.to_owned())].into(),
        taints: vec![taint],
        ..nodes(namespace, count, cpu)
    }
}

/// The classes of such nodes in a report where pods may start: a new node has a taint until its cluster has seen that it is ready.
pub fn own_classes<'a>(
    report: &'a ClusterCapacity,
    namespace: &'a str,
) -> impl Iterator<Item = &'a NodeClass> {
    let is_own = move |class: &&NodeClass| {
        class.labels.get(OWN).is_some_and(|own| own == namespace)
            && !class.taints.iter().any(|taint| taint.key.starts_with("node.kubernetes.io/"))
    };
    report.status.node_classes.iter().filter(is_own)
}
