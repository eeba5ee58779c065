//! The kinds of objects that operators make, and which of them are watched.

use kube::core::GroupVersionKind;
use runtime::watch::ApiResource;
use serde_json::Value;

use super::parent::ParentKind;

/// A kind of objects that is watched where a label says that an operator made them.
pub(super) struct WatchedChild {
    pub(super) resource: ApiResource,
    pub(super) selector: &'static str,
}

/// The kind of objects without a namespace that secure RayClusters.
pub(super) const CLUSTER_ROLE_BINDING: &str = "ClusterRoleBinding";

/// The label of everything that belongs to a RayCluster.
const OF_CLUSTER: &str = ray::names::CLUSTER_LABEL;
/// The label of what a RayJob or a RayService makes beside its clusters.
const OF_ORIGIN: &str = ray::names::ORIGIN_KIND_LABEL;

/// Objects that are watched beside the operated kinds. Others of their kind are neither sent nor held.
pub(super) fn watched_children() -> Vec<WatchedChild> {
    let child = |group, version, kind, plural, selector| WatchedChild {
        resource: resource(group, version, kind, plural),
        selector,
    };
    let rbac = "rbac.authorization.k8s.io";
    vec![
        child("", "v1", "Pod", "pods", OF_CLUSTER),
        child("", "v1", "Pod", "pods", appwrapper::names::WRAPPER_LABEL),
        child("", "v1", "Service", "services", OF_CLUSTER),
        child("", "v1", "Service", "services", OF_ORIGIN),
        child("", "v1", "Secret", "secrets", OF_CLUSTER),
        child("", "v1", "ServiceAccount", "serviceaccounts", OF_CLUSTER),
        child("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", OF_CLUSTER),
        child("batch", "v1", "Job", "jobs", OF_CLUSTER),
        child("batch", "v1", "Job", "jobs", OF_ORIGIN),
        child(rbac, "v1", "Role", "roles", OF_CLUSTER),
        child(rbac, "v1", "RoleBinding", "rolebindings", OF_CLUSTER),
        child("networking.k8s.io", "v1", "Ingress", "ingresses", OF_CLUSTER),
        child("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", OF_CLUSTER),
    ]
}

/// Whether a watch shows an object.
pub(super) fn is_watched(object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    ParentKind::parse(object["kind"].as_str().unwrap_or_default()).is_some()
        || watched_children()
            .iter()
            .any(|child| object["kind"] == child.resource.kind && !labels[child.selector].is_null())
}

/// Kinds that secure RayClusters on OpenShift. The second one has no namespace.
pub(super) fn openshift_kinds() -> [ApiResource; 2] {
    let rbac = "rbac.authorization.k8s.io";
    [
        resource("route.openshift.io", "v1", "Route", "routes"),
        resource(rbac, "v1", CLUSTER_ROLE_BINDING, "clusterrolebindings"),
    ]
}

/// The kinds that are watched on OpenShift only.
pub(super) fn watched_on_openshift() -> Vec<WatchedChild> {
    let selectors = [OF_CLUSTER, ray::names::SECURED_CLUSTER_LABEL];
    let kinds = openshift_kinds().into_iter().zip(selectors);
    kinds.map(|(resource, selector)| WatchedChild { resource, selector }).collect()
}

/// Nodes that the pods of AppWrappers must leave.
pub(super) fn watched_nodes() -> WatchedChild {
    WatchedChild {
        resource: resource("", "v1", "Node", "nodes"),
        selector: "autopilot.ibm.com/gpuhealth=EVICT",
    }
}

/// Kinds that only an incremental upgrade of a RayService makes. They are read by name: their objects bear no label.
pub(super) fn route_kinds() -> [ApiResource; 2] {
    let group = "gateway.networking.k8s.io";
    [resource(group, "v1", "Gateway", "gateways"), resource(group, "v1", "HTTPRoute", "httproutes")]
}

pub(super) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let gvk = GroupVersionKind::gvk(group, version, kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}
