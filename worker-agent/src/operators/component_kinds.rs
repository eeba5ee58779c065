//! The kinds of objects that operators may make, and their names in the API.
//!
//! Kinds that operators make themselves are known. Those of components of AppWrappers are looked up, once: also those that this agent does
//! not make, since an earlier one may have made some.

use std::collections::BTreeMap;

use appwrapper::AllowedComponents;
use kube::{
    Client,
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use runtime::watch::ApiResource;
use tokio::sync::Mutex;

use super::{parent::ParentKind, resources::watched_children};

/// The kinds that operators may make, by their names in the API.
pub(super) struct ComponentKinds {
    /// By `apiVersion` and kind.
    known: BTreeMap<(String, String), ApiResource>,
    allowed: AllowedComponents,
    found: Mutex<BTreeMap<(String, String), ApiResource>>,
}

impl ComponentKinds {
    pub(super) fn new(allowed: AllowedComponents) -> Self {
        let children = watched_children().into_iter().map(|child| child.resource);
        let parents = ParentKind::ALL.into_iter().map(ParentKind::resource);
        let known = children
            .chain(parents)
            .map(|resource| ((resource.api_version.clone(), resource.kind.clone()), resource));
        Self { known: known.collect(), allowed, found: Mutex::default() }
    }

    /// Why a component of an AppWrapper is not made of this kind; `None` if it is.
    pub(super) fn refusal(&self, api_version: &str, kind: &str) -> Option<String> {
        self.allowed.refusal(api_version, kind)
    }

    /// The names of a kind in the API. None if the API server does not serve it, or its objects are in no namespace.
    ///
    /// # Errors
    /// If the API server does not answer. Nothing is known of the kind then: an unknown one would fail its AppWrapper for good.
    pub(super) async fn resource(
        &self,
        client: &Client,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<ApiResource>, KindLookupError> {
        let id = (api_version.to_owned(), kind.to_owned());
        if let Some(resource) = self.known.get(&id) {
            return Ok(Some(resource.clone()));
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let known = self.found.lock().await.get(&id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        // Without the lock: an API server that hangs must not hold up passes about other kinds.
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let found = match pinned_kind(client, &gvk).await {
            Ok((resource, capabilities)) if capabilities.scope == Scope::Namespaced => resource,
            Ok(_) | Err(kube::Error::Discovery(_)) => return Ok(None),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(source) => {
                return Err(KindLookupError {
                    api_version: id.0,
                    kind: id.1,
                    source: Box::new(source),
                });
            }
        };
        self.found.lock().await.insert(id, found.clone());
        Ok(Some(found))
    }
}

/// The API server did not say whether it serves a kind.
#[derive(Debug, thiserror::Error)]
#[error("cannot look up the kind {kind} of {api_version}: {source}")]
pub(super) struct KindLookupError {
    api_version: String,
    kind: String,
    source: Box<kube::Error>,
}
