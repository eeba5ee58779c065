//! What a request asks for.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{self, Body, Bytes},
    extract::Request,
    http::{
        HeaderMap, Method, StatusCode,
        header::{ACCEPT, CONTENT_TYPE},
    },
    response::Response,
};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{
    answer,
    cluster::DoubleCluster,
    object::{DoubleRefusal, StoredText},
    watch,
};

/// Events go nowhere: nothing here reads them, and there are several per Workload.
const EVENTS: [&str; 2] = ["events.k8s.io/events", "/events"];

/// The largest body.
const BODY: usize = 4 << 20;

/// The objects that a list or a watch selects.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub(super) resource: String,
    namespace: Option<String>,
    name: Option<String>,
    labels: Vec<(String, Option<String>)>,
    pub(super) version: Option<u64>,
    pub(super) lasts: Option<Duration>,
    watches: bool,
}

impl Selection {
    /// Whether an object is selected, as far as its namespace is.
    pub(super) fn selects(&self, object: &StoredText) -> bool {
        self.labels.iter().all(|(key, wanted)| {
            let found = object.labels.get(key.as_str());
            found.is_some_and(|found| wanted.as_ref().is_none_or(|wanted| **found == **wanted))
        })
    }

    /// Reads the parameters of a query. Of selectors it knows equality, existence and the name.
    fn read(&mut self, query: &str) {
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            match name {
                "watch" => self.watches = value == "true" || value == "1",
                "resourceVersion" => self.version = value.parse().ok().filter(|it| *it > 0),
                "timeoutSeconds" => self.lasts = value.parse().ok().map(Duration::from_secs),
                "labelSelector" => self.labels = value.split(',').filter_map(requirement).collect(),
                "fieldSelector" => {
                    self.name = value.strip_prefix("metadata.name=").map(str::to_owned);
                }
                _ => {}
            }
        }
    }
}

fn requirement(text: &str) -> Option<(String, Option<String>)> {
    match text.split_once('=') {
        Some((key, value)) => {
            Some((key.to_owned(), Some(value.trim_start_matches('=').to_owned())))
        }
        None => (!text.is_empty()).then(|| (text.to_owned(), None)),
    }
}

/// The object or the collection of a path.
struct RequestPath {
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl RequestPath {
    /// Of a path below the root of the API server.
    fn of(path: &str) -> Option<Self> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let group = match parts.next()? {
            "api" => "",
            "apis" => parts.next()?,
            _ => return None,
        };
        let _version = parts.next()?;
        let mut rest: Vec<&str> = parts.collect();
        let mut namespace = None;
        // `namespaces/NAME` alone is the object.
        if rest.len() > 2 && rest[0] == "namespaces" {
            namespace = Some(rest[1].to_owned());
            rest.drain(..2);
        }
        let resource = format!("{group}/{}", rest.first()?);
        // Behind the name is the subresource, which is written as a part of the object.
        Some(Self { resource, namespace, name: rest.get(1).map(|name| (*name).to_owned()) })
    }

    fn key(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        format!("{}/{name}", self.namespace.as_deref().unwrap_or_default())
    }
}

/// Answers a request.
pub(super) async fn serve(cluster: &Arc<DoubleCluster>, path: &str, request: Request) -> Response {
    if path == "version" {
        return answer::version();
    }
    if let Some(listed) = discovered(cluster, path) {
        return listed;
    }
    let Some(path) = RequestPath::of(path) else {
        return answer::refused(&DoubleRefusal::NotServed, "");
    };
    let (parts, body) = request.into_parts();
    if !cluster.serves(&path.resource) {
        return answer::refused(&DoubleRefusal::NotServed, "");
    }
    let Ok(body) = body::to_bytes(body, BODY).await else {
        return answer::refused(&DoubleRefusal::Invalid, "");
    };
    let reads = parts.method == Method::GET;
    let name = path.name.clone().unwrap_or_default();
    let answered = match (reads, &path.name) {
        (true, Some(_)) => get(cluster, &path, &parts.headers),
        (true, None) => select(cluster, path, parts.uri.query(), &parts.headers),
        (false, _) => write(cluster, &path, (&parts.method, &parts.headers), &body),
    };
    answered.unwrap_or_else(|refusal| answer::refused(&refusal, &name))
}

/// The resources of a version of a group, if this is its path and they are known. Every version has the same.
fn discovered(cluster: &DoubleCluster, path: &str) -> Option<Response> {
    let (group_version, group) = match path.split_once('/')? {
        ("api", version) => (version, ""),
        ("apis", group_version) => (group_version, group_version.split_once('/')?.0),
        _ => return None,
    };
    let has_more = group_version.matches('/').count() > usize::from(!group.is_empty());
    let names = cluster.served_in(group).filter(|_| !has_more)?;
    Some(answer::resources(group_version, &names))
}

/// Whether only metadata is asked for.
fn is_partial(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("as=PartialObjectMetadata"))
}

fn get(
    cluster: &DoubleCluster,
    path: &RequestPath,
    headers: &HeaderMap,
) -> Result<Response, DoubleRefusal> {
    let stored = cluster.stored(&path.resource, &path.key()).ok_or(DoubleRefusal::NotFound)?;
    let text = if is_partial(headers) { stored.metadata() } else { stored.text.clone() };
    Ok(answer::object_text(text))
}

/// A list or a watch.
fn select(
    cluster: &Arc<DoubleCluster>,
    path: RequestPath,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, DoubleRefusal> {
    let RequestPath { resource, namespace, .. } = path;
    let mut selection = Selection { resource, namespace, ..Selection::default() };
    selection.read(query.unwrap_or_default());
    if selection.watches {
        let events = Body::from_stream(watch::events(cluster, selection)?);
        return Ok(answer::text(StatusCode::OK, events));
    }
    let (version, selected) = selected(cluster, &selection);
    let partial = is_partial(headers);
    let text =
        |object: &Arc<StoredText>| if partial { object.metadata() } else { object.text.clone() };
    let items: Vec<Bytes> = selected.iter().map(text).collect();
    let kind = if partial { "PartialObjectMetadataList" } else { "List" };
    Ok(answer::list(kind, version, &items))
}

/// The objects of a list, and its version.
fn selected(cluster: &DoubleCluster, selection: &Selection) -> (u64, Vec<Arc<StoredText>>) {
    let objects = cluster.lock();
    let all = objects.resources.get(selection.resource.as_str());
    let all = all.into_iter().flat_map(|all| all.in_namespace(selection.namespace.as_deref()));
    let is_named = |key: &str| {
        let name = key.rsplit('/').next();
        selection.name.as_deref().is_none_or(|wanted| name == Some(wanted))
    };
    let all = all.filter(|(key, object)| is_named(key) && selection.selects(object));
    (objects.version, all.map(|(_, object)| Arc::clone(object)).collect())
}

fn write(
    cluster: &DoubleCluster,
    path: &RequestPath,
    (method, headers): (&Method, &HeaderMap),
    body: &Bytes,
) -> Result<Response, DoubleRefusal> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_list = kind.is_some_and(|kind| kind.contains("json-patch"));
    let object: Value = match body.is_empty() {
        true => Value::Null,
        // Server-side apply sends YAML, of which JSON is a part.
        false => serde_json::from_slice(body).map_err(|_| DoubleRefusal::Invalid)?,
    };
    let (resource, key) = (path.resource.as_str(), path.key());
    if EVENTS.contains(&resource) {
        return Ok(answer::object(&object));
    }
    let written = match *method {
        Method::POST => cluster.create(resource, object)?,
        Method::PATCH if !is_list => cluster.merge(resource, &key, object)?,
        Method::DELETE => cluster.delete(resource, &key, &object["preconditions"])?,
        _ => return Err(DoubleRefusal::Invalid),
    };
    Ok(answer::object_text(written))
}
