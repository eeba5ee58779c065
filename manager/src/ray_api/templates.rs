//! Compute templates of a body: names, the caller's right to read them, and their ConfigMaps.

use std::collections::BTreeMap;

use ::access::ReviewedRequest;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use ray_api::{ObjectBody, RayApiRefusal, compute_template::ComputeTemplate, template_review};

use super::server::Refused;

/// The most templates that a body may name.
const MOST: usize = 64;

/// Reads the templates of a body, after a review of each.
///
/// # Errors
/// If one does not exist, cannot be read, or may not be read by the user.
pub(super) async fn read<F>(
    client: &Client,
    namespace: &str,
    body: &ObjectBody,
    review: impl Fn(ReviewedRequest) -> F,
) -> Result<BTreeMap<String, ComputeTemplate>, Refused>
where
    F: Future<Output = Result<(), Refused>>,
{
    let names = body.templates();
    if names.len() > MOST {
        return Err(RayApiRefusal::TooLong(MOST).into());
    }
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let mut templates = BTreeMap::new();
    for name in names {
        review(template_review(namespace, &name)).await?;
        let found = config_maps.get_opt(&name).await.map_err(|error| {
            tracing::warn!(%error, namespace, name, "cannot read a compute template");
            RayApiRefusal::NotReviewed
        })?;
        let config_map = found.ok_or_else(|| RayApiRefusal::UnknownTemplate(name.clone()))?;
        let template = ComputeTemplate::read(&name, &config_map.data.unwrap_or_default())?;
        templates.insert(name, template);
    }
    Ok(templates)
}
