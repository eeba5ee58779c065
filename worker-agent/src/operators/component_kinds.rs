//! The kinds of objects that operators may make, and their names in the API.
//!
//! Kinds that operators make themselves are known. A component of an AppWrapper is of a kind of jobs that the agent starts, or one of the
//! few that jobs need and that grant nothing: an AppWrapper must not make what the agent was not set up for, and nothing without a
//! namespace. The agent's own rights go further than those of the submitter; `config/appwrapper-rights` compares these.

use std::collections::BTreeMap;

use kube::{
    Client,
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use runtime::watch::ApiResource;
use tokio::sync::Mutex;

use super::{parent::ParentKind, resources::watched_children};

/// Kinds without pods that components may have.
const PLAIN_COMPONENTS: &[(&str, &str)] = &[("", "PersistentVolumeClaim"), ("", "Service")];

/// See the module.
pub(super) struct ComponentKinds {
    /// By `apiVersion` and kind.
    known: BTreeMap<(String, String), ApiResource>,
    /// Groups and kinds of the jobs that the agent starts.
    allowed: Vec<(String, String)>,
    found: Mutex<BTreeMap<(String, String), ApiResource>>,
}

impl ComponentKinds {
    pub(super) fn new(allowed: Vec<(String, String)>) -> Self {
        let children = watched_children().into_iter().map(|child| child.resource);
        let parents = ParentKind::ALL.into_iter().map(ParentKind::resource);
        let known = children
            .chain(parents)
            .map(|resource| ((resource.api_version.clone(), resource.kind.clone()), resource));
        Self { known: known.collect(), allowed, found: Mutex::default() }
    }

    /// Whether a component of an AppWrapper may be of a kind.
    pub(super) fn may_be_component(&self, api_version: &str, kind: &str) -> bool {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        PLAIN_COMPONENTS.contains(&(group, kind)) || self.is_job(group, kind)
    }

    fn is_job(&self, group: &str, kind: &str) -> bool {
        self.allowed.iter().any(|(one, other)| one == group && other == kind)
    }

    /// The names of a kind in the API. None if the agent makes no objects of it, or the API server does not serve it.
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
        if !self.is_job(group, kind) {
            return Ok(None);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_jobs_of_the_agent_or_grant_nothing() {
        let allowed = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
        let kinds = ComponentKinds::new(vec![allowed("batch", "Job"), allowed("ray.io", "RayJob")]);
        for (api_version, kind) in [
            ("batch/v1", "Job"),
            ("ray.io/v1", "RayJob"),
            ("v1", "Service"),
            ("v1", "PersistentVolumeClaim"),
        ] {
            assert!(kinds.may_be_component(api_version, kind), "{kind}");
        }
        let rbac = "rbac.authorization.k8s.io/v1";
        for (api_version, kind) in [
            ("v1", "Pod"),
            ("v1", "Secret"),
            ("v1", "ServiceAccount"),
            ("v1", "Namespace"),
            ("ray.io/v1", "RayCluster"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
            ("networking.k8s.io/v1", "Ingress"),
            (rbac, "Role"),
            (rbac, "RoleBinding"),
            (rbac, "ClusterRole"),
            ("example.com/v1", "Job"),
        ] {
            assert!(!kinds.may_be_component(api_version, kind), "{kind}");
        }
    }
}
