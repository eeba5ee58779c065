//! Reads what the security of RayClusters needs to know of the cluster, once whenever the operators start.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams},
};
use ray::security::{
    ClusterPlatform, SecurityConfig, SecurityConfigError, SecurityFacts, SecuritySettings,
};
use runtime::watch::ApiResource;
use serde_json::Value;

use super::resources::resource;

/// The group version that makes a cluster OpenShift.
const ROUTES: &str = "route.openshift.io/v1";

/// The namespace of the official operator of Ray, unless its pods are elsewhere.
const OPERATOR_NAMESPACE: &str = "ray-system";

/// The same on OpenShift, unless its installation says otherwise.
const OPENSHIFT_NAMESPACES: [&str; 2] = ["opendatahub", "redhat-ods-applications"];

/// The label of the pods of the official operator.
const OPERATOR_PODS: &str = "app.kubernetes.io/component=kuberay-operator";

/// Why RayClusters cannot be secured.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecurityFactsError {
    #[error("cannot read {what}: {source}")]
    Read {
        what: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("the settings of the security of RayClusters: {0}")]
    Settings(#[from] SecurityConfigError),
}

/// The settings together with what the cluster says.
pub(super) async fn security_settings(
    client: &Client,
    config: &SecurityConfig,
    agent_namespace: &str,
) -> Result<SecuritySettings, SecurityFactsError> {
    let platform = platform(client).await?;
    let is_openshift = platform == ClusterPlatform::OpenShift;
    let domain = if is_openshift { ingress_domain(client).await? } else { String::new() };
    let config = config.clone().or_domain(&domain).complete()?;
    let operator_namespaces = match is_openshift {
        true => openshift_namespaces(client).await?,
        false => operator_namespaces(client).await?,
    };
    if config.oauth && !is_openshift {
        tracing::warn!(
            "rayDashboardOAuthEnabled needs OpenShift: heads of RayClusters wait for a certificate that is not made here"
        );
    }
    let agent_namespace = agent_namespace.to_owned();
    let facts = SecurityFacts { platform, operator_namespaces, agent_namespace };
    Ok(SecuritySettings { config, facts })
}

async fn platform(client: &Client) -> Result<ClusterPlatform, SecurityFactsError> {
    match client.list_api_group_resources(ROUTES).await {
        Ok(_) => Ok(ClusterPlatform::OpenShift),
        Err(error) if is_not_found(&error) => Ok(ClusterPlatform::Kubernetes),
        Err(source) => Err(unreadable(ROUTES)(source)),
    }
}

/// The domain of OpenShift's own Routes; empty if it is not there.
async fn ingress_domain(client: &Client) -> Result<String, SecurityFactsError> {
    let ingresses = resource("config.openshift.io", "v1", "Ingress", "ingresses");
    let cluster = text(client, &ingresses, "cluster", "/spec/domain").await;
    cluster.map_err(unreadable("ingresses.config.openshift.io cluster"))
}

async fn openshift_namespaces(client: &Client) -> Result<Vec<String>, SecurityFactsError> {
    let group = "dscinitialization.opendatahub.io";
    let installations = resource(group, "v1", "DSCInitialization", "dscinitializations");
    let pointer = "/spec/applicationsNamespace";
    let given = text(client, &installations, "default-dsci", pointer).await;
    let given = given.map_err(unreadable("dscinitializations default-dsci"))?;
    Ok(match given.is_empty() {
        true => OPENSHIFT_NAMESPACES.map(str::to_owned).into(),
        false => vec![given],
    })
}

async fn operator_namespaces(client: &Client) -> Result<Vec<String>, SecurityFactsError> {
    let pods: Api<Pod> = Api::all(client.clone());
    let found = pods.list_metadata(&ListParams::default().labels(OPERATOR_PODS)).await;
    let found = found.map_err(unreadable("pods of the official operator of Ray"))?;
    let namespaces: BTreeSet<String> =
        found.items.iter().filter_map(ResourceExt::namespace).collect();
    Ok(match namespaces.is_empty() {
        true => vec![OPERATOR_NAMESPACE.to_owned()],
        false => namespaces.into_iter().collect(),
    })
}

/// A field of an object without a namespace; empty if the object, or its kind, is not there.
async fn text(
    client: &Client,
    resource: &ApiResource,
    name: &str,
    pointer: &str,
) -> Result<String, kube::Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let found = match api.get(name).await {
        Ok(found) => found,
        Err(error) if is_not_found(&error) => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let field = found.data.pointer(pointer).and_then(Value::as_str);
    Ok(field.unwrap_or_default().to_owned())
}

/// Of an object, or of a kind that is not served, which has another reason than an object.
fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn unreadable(what: &'static str) -> impl FnOnce(kube::Error) -> SecurityFactsError {
    move |source| SecurityFactsError::Read { what, source: Box::new(source) }
}
