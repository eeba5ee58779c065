//! Discovery: which groups, versions and resources the server has.
//!
//! `clusterqueues` and `localqueues` have no verbs: they exist as parents of the lists of pending Workloads only, as upstream.

use crds::names::{SLUICE_VISIBILITY_GROUP, VISIBILITY_GROUP};
use serde_json::{Value, json};

use crate::api::{VisibilityVersion, WORKLOAD_PODS_VERSION};

/// A queue with a list of pending Workloads.
struct QueueResource {
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    namespaced: bool,
}

const QUEUES: [QueueResource; 2] = [
    QueueResource {
        plural: "clusterqueues",
        singular: "clusterqueue",
        kind: "ClusterQueue",
        namespaced: false,
    },
    QueueResource {
        plural: "localqueues",
        singular: "localqueue",
        kind: "LocalQueue",
        namespaced: true,
    },
];

/// `/apis`.
pub(crate) fn groups() -> Value {
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [fields_of_group(), fields_of_sluice_group()]})
}

/// `/apis/visibility.kueue.x-k8s.io`.
pub(crate) fn group() -> Value {
    api_group(fields_of_group())
}

/// A group as a document of its own.
fn api_group(mut fields: Value) -> Value {
    fields["kind"] = json!("APIGroup");
    fields["apiVersion"] = json!("v1");
    fields
}

fn fields_of_group() -> Value {
    let version = |one: VisibilityVersion| json!({"groupVersion": one.group_version(), "version": one.name()});
    let [preferred, _] = VisibilityVersion::ALL;
    json!({
        "name": VISIBILITY_GROUP,
        "versions": VisibilityVersion::ALL.map(version),
        "preferredVersion": version(preferred),
    })
}

/// `/apis/visibility.sluice.dev`.
pub(crate) fn sluice_group() -> Value {
    api_group(fields_of_sluice_group())
}

fn fields_of_sluice_group() -> Value {
    let version = json!({"groupVersion": sluice_group_version(), "version": WORKLOAD_PODS_VERSION});
    json!({"name": SLUICE_VISIBILITY_GROUP, "versions": [version], "preferredVersion": version})
}

fn sluice_group_version() -> String {
    format!("{SLUICE_VISIBILITY_GROUP}/{WORKLOAD_PODS_VERSION}")
}

/// `/apis/visibility.sluice.dev/v1alpha1`. Workloads exist there as parents of their pods and logs only.
pub(crate) fn sluice_resources() -> Value {
    let resource = |name: &str, kind: &str, verbs: Value| json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": verbs});
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": sluice_group_version(),
        "resources": [
            resource("workloads", "Workload", json!([])),
            resource("workloads/log", "Workload", json!(["get"])),
            resource("workloads/pods", "WorkloadPodList", json!(["get"])),
        ],
    })
}

fn aggregated_sluice() -> Value {
    let kind = |kind: &str| json!({"group": SLUICE_VISIBILITY_GROUP, "version": WORKLOAD_PODS_VERSION, "kind": kind});
    let part = |name: &str, of: &str| json!({"subresource": name, "responseKind": kind(of), "verbs": ["get"]});
    let workloads = json!({
        "resource": "workloads", "singularResource": "workload", "responseKind": kind("Workload"),
        "verbs": [], "scope": "Namespaced",
        "subresources": [part("log", "Workload"), part("pods", "WorkloadPodList")],
    });
    let version =
        json!({"version": WORKLOAD_PODS_VERSION, "freshness": "Current", "resources": [workloads]});
    json!({"metadata": {"name": SLUICE_VISIBILITY_GROUP}, "versions": [version]})
}

/// The resources of a version.
pub(crate) fn resources(version: VisibilityVersion) -> Value {
    let all = QUEUES.iter().flat_map(|queue| {
        let list = json!({
            "name": format!("{}/pendingworkloads", queue.plural), "singularName": "",
            "namespaced": queue.namespaced, "kind": "PendingWorkloadsSummary", "verbs": ["get"],
        });
        let parent = json!({
            "name": queue.plural, "singularName": queue.singular,
            "namespaced": queue.namespaced, "kind": queue.kind, "verbs": [],
        });
        [parent, list]
    });
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version.group_version(),
        "resources": all.collect::<Vec<_>>(),
    })
}

/// All groups with all resources, in a version of `apidiscovery.k8s.io`.
pub(crate) fn aggregated(discovery_version: &str) -> Value {
    let versions = VisibilityVersion::ALL.map(|version| {
        let resources: Vec<Value> =
            QUEUES.iter().map(|one| aggregated_resource(one, version)).collect();
        json!({"version": version.name(), "freshness": "Current", "resources": resources})
    });
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{discovery_version}"),
        "metadata": {},
        "items": [
            {"metadata": {"name": VISIBILITY_GROUP}, "versions": versions}, aggregated_sluice(),
        ],
    })
}

fn aggregated_resource(queue: &QueueResource, version: VisibilityVersion) -> Value {
    let kind =
        |kind: &str| json!({"group": VISIBILITY_GROUP, "version": version.name(), "kind": kind});
    json!({
        "resource": queue.plural, "singularResource": queue.singular,
        "responseKind": kind(queue.kind), "verbs": [],
        "scope": if queue.namespaced { "Namespaced" } else { "Cluster" },
        "subresources": [{
            "subresource": "pendingworkloads",
            "responseKind": kind("PendingWorkloadsSummary"), "verbs": ["get"],
        }],
    })
}
