//! The visibility API of a manager that runs beside the lab.
//!
//! The API server calls an aggregated API by a Service. The lab has no network for Services, but the API server resolves one with an
//! external name itself, and verifies the certificate for the name of the Service all the same.

use anyhow::Result;
use harness::Cluster;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use serde_json::{Value, json};

use super::{NAMESPACE, TIMEOUT, root};
use crate::local_webhooks;

/// The APIServices of the manifests.
const NAMES: [&str; 3] = [
    "v1alpha1.visibility.sluice.dev",
    "v1beta1.visibility.kueue.x-k8s.io",
    "v1beta2.visibility.kueue.x-k8s.io",
];

/// The objects of the kustomization.
pub(super) async fn manifests(hub: &Cluster) -> Result<Vec<Value>> {
    let folder = root().join("config/visibility").display().to_string();
    local_webhooks::objects(&hub.kubectl(&["kustomize", &folder]).await?)
}

/// Whether an object is an APIService or the Service that serves it.
pub(super) fn is_of_the_api(object: &Value) -> bool {
    let is_service = |name: &str| name.ends_with("-visibility-server");
    object["kind"] == "APIService" || service_name(object).is_some_and(is_service)
}

/// Applies these objects with this port, and waits until the API server reaches the manager.
pub(super) async fn aggregate(hub: &Cluster, mut objects: Vec<Value>, port: u16) -> Result<()> {
    objects.iter_mut().for_each(|object| localise(object, port));
    let service = format!("service/{}", objects.iter().find_map(service_name).unwrap_or_default());
    // The cluster address of a Service cannot be taken away by a change.
    hub.kubectl(&["delete", &service, "-n", NAMESPACE, "--ignore-not-found"]).await?;
    let text: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    hub.apply(&text, NAMESPACE).await?;
    let services = hub.cluster_api::<APIService>();
    for name in NAMES {
        hub.until(&services, name, "is available", TIMEOUT, is_available).await?;
    }
    Ok(())
}

fn localise(object: &mut Value, port: u16) {
    if object["kind"] == "Service" {
        object["spec"] = json!({
            "type": "ExternalName", "externalName": "localhost",
            "ports": [{"name": "https", "port": port}],
        });
    } else {
        object["spec"]["service"]["port"] = port.into();
    }
}

fn service_name(object: &Value) -> Option<&str> {
    object["metadata"]["name"].as_str().filter(|_| object["kind"] == "Service")
}

fn is_available(service: &APIService) -> bool {
    let conditions = service.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Available" && one.status == "True")
}
