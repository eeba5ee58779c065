//! Requests to the API server, decoded.

use http_body_util::BodyExt;
use kube::client::Body;
use runtime::watch::Key;
use serde_json::{Value, json};

use crate::operators::{
    object_cache::ObjectId,
    parent::ParentKind,
    resources::{openshift_kinds, route_kinds, watched_children},
};

/// A kind of jobs that the agent knows by its setting only. Its objects are as Jobs are.
pub(super) const TRIAL: &str = "Trial";

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct OperatorRequest {
    pub(super) method: String,
    /// The name is empty for a creation.
    pub(super) id: ObjectId,
    pub(super) is_status: bool,
    /// A server-side apply, which creates an object that is not there.
    pub(super) is_apply: bool,
    pub(super) body: Value,
}

/// An HTTP code and a body.
pub(super) type OperatorAnswer = (u16, Value);

impl OperatorRequest {
    /// None for a path of a kind that is not served.
    pub(super) async fn read(request: hyper::Request<Body>) -> Option<Self> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let path: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
        let after = path.iter().position(|part| *part == "namespaces")?;
        let [namespace, plural, rest @ ..] = path.get(after + 1..)? else { return None };
        let key = Key {
            namespace: Some((*namespace).into()),
            name: rest.first().copied().unwrap_or_default().into(),
        };
        let id = ObjectId { kind: kind_of(plural)?, key };
        let is_status = rest.get(1) == Some(&"status");
        let kind_of_patch = parts.headers.get(hyper::header::CONTENT_TYPE);
        let is_apply = kind_of_patch.is_some_and(|it| it == "application/apply-patch+yaml");
        Some(Self { method: parts.method.to_string(), id, is_status, is_apply, body })
    }

    pub(super) fn is_write(&self) -> bool {
        self.method != "GET" && self.id.kind != "Event"
    }

    /// For messages: `POST RayCluster ns/c`.
    pub(super) fn line(&self) -> String {
        let name = match self.method.as_str() {
            "POST" => self.body["metadata"]["name"]
                .as_str()
                .or(self.body["metadata"]["generateName"].as_str())
                .unwrap_or_default(),
            _ => &self.id.key.name,
        };
        let part = if self.is_status { "/status" } else { "" };
        format!("{} {} {name}{part}", self.method, self.id.kind)
    }
}

fn kind_of(plural: &str) -> Option<String> {
    let parents = ParentKind::ALL.into_iter().map(ParentKind::resource);
    let children = watched_children().into_iter().map(|child| child.resource);
    let mut all = parents.chain(children).chain(route_kinds()).chain(openshift_kinds());
    let found = all.find(|it| it.plural == plural).map(|it| it.kind);
    found.or_else(|| match plural {
        "events" => Some("Event".to_owned()),
        "trials" => Some(TRIAL.to_owned()),
        _ => None,
    })
}

/// The kinds of a group that an agent looks up.
pub(super) fn discovery(path: &str) -> Option<OperatorAnswer> {
    let trial = json!({
        "name": "trials", "singularName": "trial", "kind": TRIAL, "namespaced": true,
        "verbs": ["get", "list", "watch", "create", "patch", "delete"],
    });
    let list = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1",
        "resources": [trial],
    });
    let version = json!({"groupVersion": "example.com/v1", "version": "v1"});
    let groups = json!({
        "kind": "APIGroupList", "apiVersion": "v1",
        "groups": [{"name": "example.com", "versions": [version], "preferredVersion": version}],
    });
    match path {
        "/apis/example.com/v1" => Some((200, list)),
        "/apis" => Some((200, groups)),
        _ => None,
    }
}

/// A refusal, as the API server words it.
pub(super) fn refusal(code: u16, reason: &str, message: &str) -> OperatorAnswer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    (code, status)
}
