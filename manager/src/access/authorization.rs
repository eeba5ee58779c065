//! What a user may do: a SubjectAccessReview, whose answer is kept for a short time.

use std::sync::Arc;

use ::access::{RequestUser, ReviewedRequest, ReviewedTarget};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReviewSpec,
};
use kube::Client;

use super::{review_cache::ReviewCache, reviews};

/// The answer of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccessDecision {
    /// The user may do it.
    pub(crate) allowed: bool,
    /// What the authorizer says about it; may be empty.
    pub(crate) reason: String,
}

/// Decides about requests.
pub(crate) struct Authorizer {
    client: Client,
    decisions: ReviewCache<AccessDecision>,
}

impl Authorizer {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, decisions: ReviewCache::new() }
    }

    /// Whether the user may make the request.
    ///
    /// # Errors
    /// If the API server was not reached, or refused the review.
    pub(crate) async fn decide(
        &self,
        user: &RequestUser,
        request: &ReviewedRequest,
    ) -> Result<AccessDecision, Arc<kube::Error>> {
        if user.is_master() {
            return Ok(AccessDecision { allowed: true, reason: String::new() });
        }
        let spec = review(user, request);
        let question = serde_json::to_vec(&spec).map_err(kube::Error::SerdeError)?;
        let ask = async {
            let status = reviews::access(&self.client, spec).await?;
            // A denial counts even beside an allowance, as for an API server.
            let allowed = status.allowed && status.denied != Some(true);
            Ok(AccessDecision { allowed, reason: status.reason.unwrap_or_default() })
        };
        self.decisions.get(&question, Box::pin(ask)).await
    }
}

fn review(user: &RequestUser, request: &ReviewedRequest) -> SubjectAccessReviewSpec {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let verb = text(&request.verb);
    let (path, resource) = match &request.target {
        ReviewedTarget::Path(path) => {
            (Some(NonResourceAttributes { path: text(path), verb }), None)
        }
        ReviewedTarget::Resource(one) => {
            let attributes = ResourceAttributes {
                group: text(&one.group),
                version: text(&one.version),
                namespace: text(&one.namespace),
                resource: text(&one.resource),
                subresource: text(&one.subresource),
                name: text(&one.name),
                verb,
                ..ResourceAttributes::default()
            };
            (None, Some(attributes))
        }
    };
    SubjectAccessReviewSpec {
        user: Some(user.name.clone()),
        uid: user.uid.clone(),
        groups: Some(user.groups.clone()),
        extra: Some(user.extra.clone()),
        non_resource_attributes: path,
        resource_attributes: resource,
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_review_names_the_user_and_the_list() {
        let path = "/apis/g/v/namespaces/n/localqueues/q/pendingworkloads";
        let user = RequestUser { name: "jane".to_owned(), ..RequestUser::default() };
        let spec = review(&user, &ReviewedRequest::of(&Method::GET, path));
        let expected = json!({
            "user": "jane", "groups": [], "extra": {},
            "resourceAttributes": {
                "verb": "get", "group": "g", "version": "v", "namespace": "n", "name": "q",
                "resource": "localqueues", "subresource": "pendingworkloads",
            },
        });
        assert_eq!(serde_json::to_value(spec).expect("JSON"), expected);
        let spec = review(&user, &ReviewedRequest::of(&Method::GET, "/apis"));
        let expected = json!({
            "user": "jane", "groups": [], "extra": {},
            "nonResourceAttributes": {"path": "/apis", "verb": "get"},
        });
        assert_eq!(serde_json::to_value(spec).expect("JSON"), expected);
    }
}
