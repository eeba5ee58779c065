//! Requests to an API server. Their errors name the operation and the object, and hold the message of the server only.

use std::fmt::Debug;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, api::core::v1::Namespace};
use kube::{
    Api, Client, Resource,
    api::{ListParams, ObjectMeta},
};
use serde::de::DeserializeOwned;

/// Objects of a list request.
const PAGE: u32 = 500;
/// The most requests of one list: five million objects.
const PAGES: usize = 10_000;

/// A list with pages that do not end.
#[derive(Debug, thiserror::Error)]
#[error("the list does not end: the server answers with the same or too many continue tokens")]
struct EndlessList;

/// Why a request has no good answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {object}: {}", message(.source))]
pub struct RequestFailure {
    /// `get`, `list`, `create`, …
    pub operation: &'static str,
    /// Kind and name.
    pub object: String,
    /// The answer.
    pub source: Box<kube::Error>,
}

impl RequestFailure {
    /// For use with `map_err`.
    pub fn of(
        operation: &'static str,
        object: impl Into<String>,
    ) -> impl FnOnce(kube::Error) -> Self {
        let object = object.into();
        move |source| Self { operation, object, source: Box::new(source) }
    }

    /// Whether the server answered that the kind or the object is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(&*self.source, kube::Error::Api(status) if status.code == 404)
    }

    /// Whether the rights do not suffice.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(&*self.source, kube::Error::Api(status) if status.code == 403)
    }

    /// Whether the object was changed in between.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(&*self.source, kube::Error::Api(status) if status.code == 409)
    }
}

/// The message of the server, or the causes of a request without an answer.
fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("{} ({})", status.reason, status.code),
        other => runtime::error_chain::describe(other),
    }
}

/// A kind as text.
fn kind_of<K: Resource<DynamicType = ()>>() -> String {
    K::kind(&()).into_owned()
}

/// Kind and name of an object.
#[must_use]
pub fn object_name(kind: &str, metadata: &ObjectMeta) -> String {
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// All objects of a kind.
///
/// # Errors
/// If the server refuses the list or cannot be reached.
pub async fn list<K>(api: &Api<K>, params: ListParams) -> Result<Vec<K>, RequestFailure>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    list_of(api, &kind_of::<K>(), params).await
}

/// Lists objects of a kind that is known at run time.
///
/// # Errors
/// If the server refuses the list or cannot be reached.
pub async fn list_of<K>(
    api: &Api<K>,
    kind: &str,
    params: ListParams,
) -> Result<Vec<K>, RequestFailure>
where
    K: Clone + DeserializeOwned + Debug,
{
    let (mut objects, mut params) = (Vec::new(), params.limit(PAGE));
    for _ in 0..PAGES {
        let failed = RequestFailure::of("list", kind);
        let page = api.list(&params).await.map_err(failed)?;
        objects.extend(page.items);
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        if next.is_none() {
            return Ok(objects);
        }
        // The same token would get the same page for ever.
        if next == params.continue_token {
            break;
        }
        params.continue_token = next;
    }
    let endless = kube::Error::Service(Box::new(EndlessList));
    Err(RequestFailure::of("list", kind)(endless))
}

/// All objects of a kind over all namespaces.
///
/// # Errors
/// If the server refuses the list or cannot be reached.
pub async fn list_all<K>(client: &Client) -> Result<Vec<K>, RequestFailure>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    list(&Api::all(client.clone()), ListParams::default()).await
}

/// Lists objects of a kind that a cluster need not serve: there are then none.
///
/// # Errors
/// If the server refuses the list or cannot be reached.
pub async fn list_if_served<K>(client: &Client) -> Result<Vec<K>, RequestFailure>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    match list_all(client).await {
        Err(failure) if failure.is_not_found() => Ok(Vec::new()),
        listed => listed,
    }
}

/// An object without a namespace, if it exists.
///
/// # Errors
/// If the server refuses the request or cannot be reached.
pub async fn find<K>(client: &Client, name: &str) -> Result<Option<K>, RequestFailure>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
{
    let failed = RequestFailure::of("get", format!("{} {name}", kind_of::<K>()));
    Api::all(client.clone()).get_opt(name).await.map_err(failed)
}

/// The identity of a cluster, which is the uid of its namespace `kube-system`; `None` without one.
///
/// # Errors
/// If the server refuses the request or cannot be reached.
pub async fn cluster_uid(client: &Client) -> Result<Option<String>, RequestFailure> {
    let found: Option<Namespace> = find(client, "kube-system").await?;
    Ok(found.and_then(|namespace| namespace.metadata.uid))
}

/// An object of a namespace, if it exists.
///
/// # Errors
/// If the server refuses the request or cannot be reached.
pub async fn find_in<K>(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<K>, RequestFailure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let failed = RequestFailure::of("get", format!("{} {namespace}/{name}", kind_of::<K>()));
    Api::namespaced(client.clone(), namespace).get_opt(name).await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Namespace;
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// A server that gives the page with this number this token, if any.
    fn server(token: fn(usize) -> Option<String>) -> Client {
        let pages = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |_: Request<Body>| {
            let page = pages.fetch_add(1, Ordering::Relaxed);
            let token = token(page).unwrap_or_default();
            let item = json!({ "metadata": { "name": format!("n{page}") } });
            let list = json!({ "apiVersion": "v1", "kind": "NamespaceList",
                "metadata": { "continue": token }, "items": [item] });
            let answer = Response::new(Body::from(list.to_string().into_bytes()));
            async { Ok::<_, Infallible>(answer) }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn all_pages_of_a_list_are_read() {
        let client = server(|page| (page < 2).then(|| format!("t{page}")));
        let listed: Vec<Namespace> = list_all(&client).await.expect("a list");
        assert_eq!(listed.len(), 3);
    }

    /// A server that answers every token with a page and a further token.
    #[tokio::test]
    async fn a_list_without_an_end_is_a_failure() {
        let client = server(|_| Some("same".to_owned()));
        let failure = list_all::<Namespace>(&client).await.expect_err("no end");
        let text = failure.to_string();
        assert!(text.starts_with("cannot list Namespace: "), "{text}");
        assert!(text.contains("the list does not end"), "{text}");
    }
}
