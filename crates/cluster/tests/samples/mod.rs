//! Objects as an API server sends them.

use std::sync::Arc;

use cluster::control::ManagerInput;
use crds::decode::Decode;
use runtime::watch::Change;
use serde_json::{Value, json};

const CREATED: &str = "2026-01-01T00:00:00Z";
const API: &str = "kueue.x-k8s.io/v1beta2";

fn uid(number: usize) -> String {
    format!("6f1c0a5e-0b0e-4e58-9c2a-{number:012}")
}

fn name(number: usize) -> String {
    format!("pending-{number}")
}

/// A suspended Job.
pub(crate) fn job(number: usize) -> String {
    let uid = uid(number);
    let mut template = template(number);
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("controller-uid", &uid),
        ("job-name", &name(number)),
    ] {
        template["metadata"]["labels"][label] = json!(value);
    }
    json!({
        "metadata": {
            "name": name(number), "namespace": "ns", "uid": uid, "generation": 1, "creationTimestamp": CREATED,
            "resourceVersion": (100_000 + number).to_string(), "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {
            "parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": true,
            "podReplacementPolicy": "TerminatingOrFailed", "manualSelector": false,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}, "template": template,
        },
        "status": {"terminating": 0, "ready": 0, "uncountedTerminatedPods": {}, "conditions": [{
            "type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended",
            "lastProbeTime": CREATED, "lastTransitionTime": CREATED,
        }]},
    })
    .to_string()
}

fn template(number: usize) -> Value {
    json!({
        "metadata": {
            "annotations": {"example.com/run": "600"},
            "labels": {"batch.kubernetes.io/job-name": name(number)},
        },
        "spec": {
            "containers": [{
                "name": "main", "image": "main", "imagePullPolicy": "Always",
                "resources": {"requests": {"cpu": "8"}, "limits": {"cpu": "8"}},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "securityContext": {}, "schedulerName": "default-scheduler",
        },
    })
}

/// The Workload of the Job, without quota.
pub(crate) fn workload(number: usize) -> String {
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": name(number), "uid": uid(number),
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": API, "kind": "Workload",
        "metadata": {
            "name": format!("job-{}-{number:05x}", name(number)), "namespace": "ns", "uid": uid(1_000_000 + number),
            "resourceVersion": (200_000 + number).to_string(), "generation": 1, "creationTimestamp": CREATED,
            "labels": {"kueue.x-k8s.io/job-uid": uid(number)}, "finalizers": ["kueue.x-k8s.io/resource-in-use"],
            "ownerReferences": [owner],
        },
        "spec": {
            "active": true, "priority": 0, "queueName": "lq",
            "podSets": [{"name": "main", "count": 1, "template": template(number)}],
        },
        "status": {
            "conditions": [{
                "type": "QuotaReserved", "status": "False", "reason": "Pending", "observedGeneration": 1,
                "lastTransitionTime": CREATED,
                "message": "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 8 more needed",
            }],
            "resourceRequests": [{"name": "main", "resources": {"cpu": "8"}}],
        },
    })
    .to_string()
}

fn list<K: Decode>(objects: &[Value]) -> Change<K> {
    let decode = |one: &Value| Arc::new(K::decode(one).expect("an object decodes"));
    Change::Reset { objects: objects.iter().map(decode).collect(), removed: vec![] }
}

fn none<K>() -> Change<K> {
    Change::Reset { objects: vec![], removed: vec![] }
}

/// The lists of a cluster with the LocalQueue `lq` of a ClusterQueue with 8 cpus.
pub(crate) fn queues() -> Vec<ManagerInput> {
    let quota = json!({"name": "cpu", "nominalQuota": "8"});
    let group = json!({"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [quota]}]});
    let queue = json!({
        "apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": "cq", "resourceVersion": "1"},
        "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
    });
    let local = json!({
        "apiVersion": API, "kind": "LocalQueue", "spec": {"clusterQueue": "cq"},
        "metadata": {"name": "lq", "namespace": "ns", "resourceVersion": "2"},
    });
    let flavor = json!({
        "apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "default", "resourceVersion": "3"},
    });
    let namespace = json!({"metadata": {"name": "ns", "resourceVersion": "4"}});
    vec![
        ManagerInput::Namespace(list(&[namespace])),
        ManagerInput::ResourceFlavor(list(&[flavor])),
        ManagerInput::ClusterQueue(list(&[queue])),
        ManagerInput::LocalQueue(list(&[local])),
        ManagerInput::AdmissionCheck(none()),
        ManagerInput::Cohort(none()),
        ManagerInput::Topology(none()),
        ManagerInput::Node(none()),
        ManagerInput::Pod(none()),
        ManagerInput::ProvisioningRequestConfig(none()),
        ManagerInput::ProvisioningRequest(none()),
        ManagerInput::PodTemplate(none()),
        ManagerInput::LimitRange(none()),
        ManagerInput::RuntimeClass(none()),
        ManagerInput::PriorityClass(none()),
        ManagerInput::WorkloadPriorityClass(none()),
    ]
}
