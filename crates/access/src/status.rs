//! Refusals in the form of Kubernetes: a `Status` object with upstream's texts.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::reviewed_request::{ReviewedRequest, ReviewedTarget};

/// A `Status` object of a failure.
#[must_use]
pub fn failure(
    code: StatusCode,
    reason: &str,
    message: &str,
    details: Map<String, Value>,
) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    if !details.is_empty() {
        status["details"] = Value::Object(details);
    }
    status
}

/// The user may not do what the request asks for. `reason` is that of the authorizer, and may be empty.
#[must_use]
pub fn forbidden(request: &ReviewedRequest, user: &str, reason: &str) -> Value {
    let mut denied = denial(request, user);
    if !reason.is_empty() {
        denied = format!("{denied}: {reason}");
    }
    let (message, details) = match &request.target {
        ReviewedTarget::Path(_) => (format!("forbidden: {denied}"), Map::new()),
        ReviewedTarget::Resource(one) => {
            let resource = match one.group.as_str() {
                "" => one.resource.clone(),
                group => format!("{}.{group}", one.resource),
            };
            let named = match one.name.as_str() {
                "" => resource,
                name => format!("{resource} {name:?}"),
            };
            let details = details(&one.group, &one.name, &one.resource);
            (format!("{named} is forbidden: {denied}"), details)
        }
    };
    failure(StatusCode::FORBIDDEN, "Forbidden", &message, details)
}

/// The details of a failure that is about an object or a kind. Empty parts are left out.
#[must_use]
pub fn details(group: &str, name: &str, kind: &str) -> Map<String, Value> {
    let texts = [("group", group), ("name", name), ("kind", kind)];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    texts.map(|(field, text)| (field.to_owned(), json!(text))).collect()
}

fn denial(request: &ReviewedRequest, user: &str) -> String {
    let verb = &request.verb;
    match &request.target {
        ReviewedTarget::Path(path) => format!("User {user:?} cannot {verb} path {path:?}"),
        ReviewedTarget::Resource(one) => {
            let (resource, group) = (one.full_resource(), &one.group);
            let scope = match one.namespace.as_str() {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            format!(
                "User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn a_refused_user_reads_what_it_cannot_do() {
        let base = "/apis/g.example.com/v1";
        let said = |method: &Method, path: &str, reason: &str| {
            let status = forbidden(&ReviewedRequest::of(method, path), "jane", reason);
            assert_eq!(status["code"], 403);
            status["message"].as_str().expect("a message").to_owned()
        };
        assert_eq!(
            said(&Method::GET, &format!("{base}/clusterqueues/q/pendingworkloads"), ""),
            "clusterqueues.g.example.com \"q\" is forbidden: User \"jane\" cannot get resource \
             \"clusterqueues/pendingworkloads\" in API group \"g.example.com\" at the cluster scope"
        );
        assert_eq!(
            said(&Method::POST, &format!("{base}/namespaces/n/localqueues"), "because"),
            "localqueues.g.example.com is forbidden: User \"jane\" cannot create resource \
             \"localqueues\" in API group \"g.example.com\" in the namespace \"n\": because"
        );
        assert_eq!(
            said(&Method::GET, "/version", ""),
            "forbidden: User \"jane\" cannot get path \"/version\""
        );
    }
}
