//! Answers as Kubernetes words them.

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use serde_json::{Value, json};

use super::object::DoubleRefusal;

/// What every server says about its version.
pub(super) fn version() -> Response {
    object(
        &json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
    )
}

/// The resources of a version of a group.
pub(super) fn resources(group_version: &str, names: &[&str]) -> Response {
    let resources: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    object(
        &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}),
    )
}

/// An object.
pub(super) fn object(object: &Value) -> Response {
    text(StatusCode::OK, Body::from(object.to_string()))
}

/// An object that is text already.
pub(super) fn object_text(object: Bytes) -> Response {
    text(StatusCode::OK, Body::from(object))
}

/// A list of objects, with the version of the store.
pub(super) fn list(kind: &str, version: u64, items: &[Bytes]) -> Response {
    let size: usize = items.iter().map(|item| item.len() + 1).sum();
    let mut list = Vec::with_capacity(size + 128);
    let head = format!(
        r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":["#
    );
    list.extend_from_slice(head.as_bytes());
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            list.push(b',');
        }
        list.extend_from_slice(item);
    }
    list.extend_from_slice(b"]}");
    text(StatusCode::OK, Body::from(list))
}

/// A refusal of a request about the object of this name.
pub(super) fn refused(refusal: &DoubleRefusal, name: &str) -> Response {
    let (code, reason) = match refusal {
        DoubleRefusal::NotServed | DoubleRefusal::NotFound => (404, "NotFound"),
        DoubleRefusal::AlreadyExists => (409, "AlreadyExists"),
        DoubleRefusal::Conflict => (409, "Conflict"),
        DoubleRefusal::Expired => (410, "Expired"),
        DoubleRefusal::Invalid => (400, "BadRequest"),
    };
    // With details, a 404 is about the object; without, about the resource.
    let details = match refusal {
        DoubleRefusal::NotFound => json!({ "name": name }),
        _ => json!({}),
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": refusal.to_string(), "reason": reason, "details": details, "code": code,
    });
    text(StatusCode::from_u16(code).unwrap_or_default(), Body::from(status.to_string()))
}

/// An answer of any length.
pub(super) fn text(code: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
