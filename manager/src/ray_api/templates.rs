//! Compute templates of a body: names, the caller's right to read them, and their ConfigMaps.

use std::collections::BTreeMap;

use ::access::ReviewedRequest;
use kube::Client;
use ray_api::{ObjectBody, RayApiRefusal, compute_template::ComputeTemplate, template_review};
use runtime::json_object::get;

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
    let mut templates = BTreeMap::new();
    for name in names {
        review(template_review(namespace, &name)).await?;
        // The name is a text of the caller, and a review does not say that it is one of a ConfigMap.
        if !is_name(&name) {
            return Err(RayApiRefusal::UnknownTemplate(name).into());
        }
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let found = get(client, &path).await.map_err(|error| {
            tracing::warn!(%error, namespace, name, "cannot read a compute template");
            RayApiRefusal::NotReviewed
        })?;
        let config_map = found.ok_or_else(|| RayApiRefusal::UnknownTemplate(name.clone()))?;
        let data = config_map["data"].as_object().into_iter().flatten();
        let data = data.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        let template = ComputeTemplate::read(&name, &data.collect())?;
        templates.insert(name, template);
    }
    Ok(templates)
}

/// Whether a text is one segment of a path, with the characters of names.
fn is_name(text: &str) -> bool {
    let inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    text.bytes().all(inner) && text.bytes().any(|byte| byte.is_ascii_alphanumeric())
}
