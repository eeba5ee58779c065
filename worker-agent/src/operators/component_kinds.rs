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
        let known = self.found.lock().await.get(&id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        // Without the lock: an API server that hangs must not hold up passes about other kinds.
        let Some(found) = discover(client, api_version, kind).await? else { return Ok(None) };
        self.found.lock().await.insert(id, found.clone());
        Ok(Some(found))
    }
}

/// Asks the API server for the names of a kind, as [`ComponentKinds::resource`] does.
pub(super) async fn discover(
    client: &Client,
    api_version: &str,
    kind: &str,
) -> Result<Option<ApiResource>, KindLookupError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let failed = |source| KindLookupError {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        source: Box::new(source),
    };
    match pinned_kind(client, &gvk).await {
        Ok((resource, capabilities)) if capabilities.scope == Scope::Namespaced => {
            Ok(Some(resource))
        }
        Ok(_) | Err(kube::Error::Discovery(_)) => Ok(None),
        // The API server answers so for a version that it does not serve, and a program between for everything.
        Err(error) if has_code(&error, 404) => match is_listed(client, group, version).await {
            Ok(false) => Ok(None),
            Ok(true) => Err(failed(error)),
            Err(source) => Err(failed(source)),
        },
        Err(source) => Err(failed(source)),
    }
}

/// Whether the API server lists a version of a group among those that it serves.
async fn is_listed(client: &Client, group: &str, version: &str) -> kube::Result<bool> {
    if group.is_empty() {
        let core = client.list_core_api_versions().await?;
        return Ok(core.versions.iter().any(|it| it == version));
    }
    let served = client.list_api_groups().await?.groups.into_iter().filter(|it| it.name == group);
    Ok(served.flat_map(|it| it.versions).any(|it| it.version == version))
}

pub(super) fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// The API server did not say whether it serves a kind.
#[derive(Debug, thiserror::Error)]
#[error("cannot look up the kind {kind} of {api_version}: {source}")]
pub(super) struct KindLookupError {
    api_version: String,
    kind: String,
    source: Box<kube::Error>,
}
