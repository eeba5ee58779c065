//! The objects of the hub.

use std::sync::Arc;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use super::JOBS;
use crate::{api_double::DoubleCluster, installation::NAMESPACE};

/// The namespace of all Jobs, and the name of the queue's objects.
pub(super) const NAME: &str = "fleet";

const API: &str = "kueue.x-k8s.io/v1beta2";

/// Namespaces and queues, with room for so many Jobs.
pub(super) fn furnish(hub: &DoubleCluster, quota: usize) -> Result<()> {
    for name in ["kube-system", "default", NAMESPACE, NAME] {
        let metadata = json!({"name": name, "labels": {"kubernetes.io/metadata.name": name}});
        create(hub, "/namespaces", ("v1", "Namespace"), &metadata, Value::Null)?;
    }
    let named = json!({"name": NAME});
    let resources = json!([{"name": "cpu", "nominalQuota": quota.to_string()}]);
    kueue(hub, "resourceflavors", "ResourceFlavor", &named, json!({}))?;
    let queue = json!({
        "namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "stopPolicy": "None",
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": NAME, "resources": resources}]}],
        "admissionChecksStrategy": {"admissionChecks": [{"name": NAME}]},
    });
    kueue(hub, "clusterqueues", "ClusterQueue", &named, queue)?;
    let metadata = json!({"name": NAME, "namespace": NAME});
    kueue(hub, "localqueues", "LocalQueue", &metadata, json!({"clusterQueue": NAME}))
}

/// The Secret and the MultiKueueCluster of a worker.
pub(super) fn register(hub: &DoubleCluster, name: &str, kubeconfig: &Kubeconfig) -> Result<()> {
    let kubeconfig = serde_json::to_vec(kubeconfig).context("writing a kubeconfig")?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"kubeconfig": ByteString(kubeconfig)},
    });
    hub.create("/secrets", secret)?;
    let source = json!({"kubeConfig": {"locationType": "Secret", "location": name}});
    let spec = json!({ "clusterSource": source });
    kueue(hub, "multikueueclusters", "MultiKueueCluster", &json!({ "name": name }), spec)
}

/// Dispatches the queue to these workers.
pub(super) fn configure(hub: &DoubleCluster, workers: &[Arc<DoubleCluster>]) -> Result<()> {
    let clusters: Vec<&str> = workers.iter().map(|worker| worker.name()).collect();
    let named = json!({"name": NAME});
    let spec = json!({ "clusters": clusters });
    kueue(hub, "multikueueconfigs", "MultiKueueConfig", &named, spec)?;
    let parameters =
        json!({"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": NAME});
    let spec = json!({"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters});
    kueue(hub, "admissionchecks", "AdmissionCheck", &named, spec)
}

/// The Job of this number, as the double names it.
pub(super) fn key(number: usize) -> String {
    format!("{NAME}/{}", job_name(number))
}

fn job_name(number: usize) -> String {
    format!("job-{number}")
}

/// Submits a Job, as the API server and the webhooks of the manager complete it.
pub(super) fn submit(hub: &DoubleCluster, number: usize) -> Result<()> {
    let name = job_name(number);
    let labels = json!({"kueue.x-k8s.io/queue-name": NAME});
    let selector = json!({"batch.kubernetes.io/controller-uid": name});
    let container = json!({
        "name": "main", "image": "main", "imagePullPolicy": "Always",
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    });
    let pod = json!({
        "containers": [container], "restartPolicy": "Never", "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
    });
    let template_labels = json!({
        "batch.kubernetes.io/controller-uid": name, "batch.kubernetes.io/job-name": name,
        "controller-uid": name, "job-name": name,
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": NAME, "labels": labels},
        "spec": {
            "parallelism": 1, "completions": 1, "completionMode": "NonIndexed", "backoffLimit": 6,
            "suspend": true, "manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed",
            "managedBy": "kueue.x-k8s.io/multikueue", "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": template_labels}, "spec": pod},
        },
        "status": {},
    });
    hub.create(JOBS, job).with_context(|| format!("creating the Job {number}"))?;
    Ok(())
}

fn kueue(
    hub: &DoubleCluster,
    plural: &str,
    kind: &str,
    metadata: &Value,
    spec: Value,
) -> Result<()> {
    create(hub, &format!("kueue.x-k8s.io/{plural}"), (API, kind), metadata, spec)
}

/// Creates an object in a cluster, without a spec if it is null.
pub(super) fn create(
    cluster: &DoubleCluster,
    resource: &str,
    (api, kind): (&str, &str),
    metadata: &Value,
    spec: Value,
) -> Result<()> {
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": metadata});
    if !spec.is_null() {
        object["spec"] = spec;
    }
    cluster.create(resource, object).with_context(|| format!("creating the {kind}"))?;
    Ok(())
}
