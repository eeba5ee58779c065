//! The objects before the first Job: capacity, queues, and an admission check that a person decides.

use anyhow::{Context, Result};
use crds::names::annotations::SAFE_TO_FORCEFULLY_DELETE;
use e2e::installation::{Installation, TIMEOUT};
use harness::{Cluster, NodeSpec, Observer, annotation};
use k8s_openapi::api::core::v1::{Namespace, Pod, Taint};
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "crash";

/// The queue of Jobs that run at home.
pub(crate) const AT_HOME: &str = "home";

/// The queue of what runs on the worker.
pub(crate) const WORKERS: &str = "queue";

/// The queue of pods that run at home.
pub(crate) const PODS: &str = "pods";

/// The queue of Jobs that an autoscaler provides room for, and its check.
pub(crate) const PROVISIONED: &str = "provisioned";

/// The queue of Jobs under ExactlyOnce, and its policy.
pub(crate) const LEASED: &str = "leased";

/// The check of queues with a quota that follows that of workers.
pub(crate) const AUTOMATED: &str = "automated";

/// The queue of Jobs with variants, and its better flavor; the other one has no quota.
pub(crate) const VARIANTS: &str = "variants";

/// The kind that the autoscaler serves.
const PROVISIONING_REQUESTS: &str = include_str!("../provisioning/provisioning-request-crd.yaml");

/// The number of pods that do not end, one per crash point about them.
pub(crate) const SILENT_PODS: usize = 4;

/// Taint of their nodes, and their finalizer.
pub(crate) const SILENT: &str = "crash.example/silent";

const API: &str = "kueue.x-k8s.io/v1beta2";

/// The namespace and nodes everywhere, the queues on the hub.
pub(crate) async fn prepare(installation: &Installation<'_>) -> Result<()> {
    for cluster in std::iter::once(&installation.hub).chain(&installation.workers) {
        let metadata = ObjectMeta { name: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        cluster.cluster_api::<Namespace>().create(&PostParams::default(), &namespace).await?;
        cluster.add_nodes(&NodeSpec { cpu: "8".to_owned(), ..NodeSpec::default() }).await?;
    }
    installation.hub.apply(PROVISIONING_REQUESTS, NAMESPACE).await?;
    let provisioning = json!({
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {
            "apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": PROVISIONED,
        },
    });
    let objects = [
        json!({"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "default"}}),
        json!({"apiVersion": API, "kind": "ProvisioningRequestConfig", "metadata": {"name": PROVISIONED},
            "spec": {"provisioningClassName": "crash.example"}}),
        check(PROVISIONED, &provisioning),
        cluster_queue(PROVISIONED, "default", Some(PROVISIONED)),
        local_queue(PROVISIONED, PROVISIONED, "None"),
        json!({"apiVersion": API, "kind": "MultiKueueConfig", "metadata": {"name": "workers"},
            "spec": {"clusters": ["worker-1"]}}),
        check("workers", &dispatched("workers")),
        json!({"apiVersion": API, "kind": "MultiKueueConfig", "metadata": {"name": AUTOMATED},
            "spec": {"clusters": ["worker-1"], "quotaManagement": "Automated"}}),
        check(AUTOMATED, &dispatched(AUTOMATED)),
        check("person", &json!({"controllerName": "crash.example/person"})),
        json!({"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": VARIANTS}}),
        json!({"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": "low"}, "value": -1}),
        queue_with_variants(),
        local_queue(VARIANTS, VARIANTS, "None"),
        cluster_queue("crash", "default", Some("workers")),
        cluster_queue(AT_HOME, "default", Some("person")),
        cluster_queue(PODS, "default", None),
        local_queue(PODS, PODS, "None"),
        local_queue(WORKERS, "crash", "None"),
        local_queue("closed", "crash", "Hold"),
        local_queue(AT_HOME, AT_HOME, "None"),
    ];
    let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
    installation.hub.apply(&text.join("\n---\n"), NAMESPACE).await?;
    silent_pods(&installation.hub).await
}

/// Name of a pod that does not end, and of its node.
pub(crate) fn silent_pod(index: usize) -> String {
    format!("silent-{index}")
}

/// Pods without a running kubelet, each on a node of its own. They are deleted now: what follows from that is late.
async fn silent_pods(hub: &Cluster) -> Result<()> {
    let taint =
        Taint { key: SILENT.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
    for index in 0..SILENT_PODS {
        let name = silent_pod(index);
        let nodes =
            NodeSpec { prefix: name.clone(), taints: vec![taint.clone()], ..NodeSpec::default() };
        hub.add_nodes(&nodes).await?;
        let pod = json!({
            "metadata": {"name": name, "finalizers": [SILENT], "annotations": {
                annotation::SILENT: "true", annotation::RUN_SECONDS: "3600",
                SAFE_TO_FORCEFULLY_DELETE: "true",
            }},
            "spec": {
                "nodeName": format!("{name}-1"), "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "main", "image": "main"}],
            },
        });
        let pods = hub.api::<Pod>(NAMESPACE);
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let soon = DeleteParams { grace_period_seconds: Some(1), ..DeleteParams::default() };
        pods.delete(&name, &soon).await?;
    }
    Ok(())
}

/// What Jobs under ExactlyOnce need. The first of them makes it: from then on there are Leases.
pub(crate) fn leased_queue() -> String {
    let disconnection = json!({
        "execution": "ExactlyOnce", "fencing": "Timed", "leaseDuration": "6s",
    });
    let objects = [
        json!({"apiVersion": "sluice.dev/v1alpha1", "kind": "DispatchPolicy",
            "metadata": {"name": LEASED}, "spec": {"disconnection": disconnection}}),
        json!({"apiVersion": API, "kind": "MultiKueueConfig",
            "metadata": {"name": LEASED, "annotations": {"sluice.dev/policy": LEASED}},
            "spec": {"clusters": ["worker-1"]}}),
        check(LEASED, &dispatched(LEASED)),
        cluster_queue(LEASED, "default", Some(LEASED)),
        local_queue(LEASED, LEASED, "None"),
    ];
    objects.map(|one| one.to_string()).join("\n---\n")
}

fn dispatched(config: &str) -> Value {
    json!({
        "controllerName": "kueue.x-k8s.io/multikueue",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": config},
    })
}

fn check(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": spec})
}

fn local_queue(name: &str, cluster_queue: &str, stop: &str) -> Value {
    json!({
        "apiVersion": API, "kind": "LocalQueue", "metadata": {"name": name},
        "spec": {"clusterQueue": cluster_queue, "stopPolicy": stop},
    })
}

/// Eight cores of one flavor.
pub(crate) fn cluster_queue(name: &str, flavor: &str, check: Option<&str>) -> Value {
    let strategy = check.map(|name| json!({ "admissionChecks": [{ "name": name }] }));
    json!({
        "apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {},
            "admissionChecksStrategy": strategy,
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": "8"}]},
            ]}],
        },
    })
}

/// Room for one Job, which takes it from one of lower priority.
fn queue_with_variants() -> Value {
    let flavor = |name: &str, cpus: &str| json!({"name": name, "resources": [{"name": "cpu", "nominalQuota": cpus}]});
    json!({
        "apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": VARIANTS},
        "spec": {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors"}},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                flavor(VARIANTS, "2"), flavor("default", "0"),
            ]}],
        },
    })
}

/// Watches every pod of all Jobs, from before the first.
pub(crate) async fn observe(installation: &Installation<'_>) -> Result<Observer> {
    let clusters: Vec<_> =
        std::iter::once(&installation.hub).chain(&installation.workers).cloned().collect();
    Observer::start(&clusters, NAMESPACE, TIMEOUT).await.context("watching the pods")
}
