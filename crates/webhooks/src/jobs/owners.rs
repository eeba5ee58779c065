//! Reads the metadata of owners of jobs, one after the other, as the search of `jobs::ancestors` requests them.

use std::collections::BTreeMap;

use jobs::{
    ancestor_search::{AncestorSearch, AncestorStep},
    integrations::OwnerKind,
};
use k8s_openapi::{
    api::core::v1::Namespace,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api, Client, Error,
    core::{ApiResource, DynamicObject, GroupVersionKind},
    discovery,
};
use parking_lot::Mutex;

use super::{
    JobSettings,
    defaulting_facts::{GatherError, read_error},
};

/// Reads owners, and caches the resources of discovered kinds.
pub(super) struct OwnerReader {
    client: Client,
    resources: Mutex<BTreeMap<(String, String, String), ApiResource>>,
}

impl OwnerReader {
    pub(super) fn new(client: Client) -> Self {
        Self { client, resources: Mutex::default() }
    }

    /// The topmost managed ancestor of a job.
    pub(super) async fn topmost(
        &self,
        job: &ObjectMeta,
        namespace: &str,
        settings: &JobSettings,
    ) -> Result<Option<OwnerReference>, GatherError> {
        let JobSettings { kinds, manage_without_queue_name, .. } = settings;
        let kinds = &kinds.managed;
        let (mut search, mut step) = AncestorSearch::begin(job, kinds, *manage_without_queue_name);
        loop {
            let owner = match step {
                AncestorStep::Top(topmost) => return Ok(topmost),
                AncestorStep::Read(owner) => owner,
            };
            // The search asks for owners of known kinds only.
            let Some(owner_kind) = kinds.owner_kind(&owner) else { return Ok(None) };
            let metadata = self.read(namespace, &owner.name, owner_kind).await?;
            step = search.owner_read(owner, &metadata)?;
        }
    }

    /// Labels of a namespace, from the API server.
    pub(super) async fn labels_of_namespace(
        &self,
        name: &str,
    ) -> Result<BTreeMap<String, String>, GatherError> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let read = namespaces.get_metadata(name).await;
        let metadata = read.map_err(|error| read_error("Namespace", "", name, error))?.metadata;
        Ok(metadata.labels.unwrap_or_default())
    }

    async fn read(
        &self,
        namespace: &str,
        name: &str,
        owner_kind: OwnerKind,
    ) -> Result<ObjectMeta, GatherError> {
        let failed = |error| read_error(&owner_kind.kind, &owner_kind.group, name, error);
        let resource = self.resource(&owner_kind).await.map_err(failed)?;
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        Ok(api.get_metadata(name).await.map_err(failed)?.metadata)
    }

    async fn resource(&self, owner_kind: &OwnerKind) -> Result<ApiResource, Error> {
        let kind = GroupVersionKind::gvk(&owner_kind.group, &owner_kind.version, &owner_kind.kind);
        // A built-in kind needs no discovery, which would cost requests.
        if let Some(plural) = &owner_kind.plural {
            return Ok(ApiResource::from_gvk_with_plural(&kind, plural));
        }
        let key = (owner_kind.group.clone(), owner_kind.version.clone(), owner_kind.kind.clone());
        // The lock ends with this statement; the discovery below awaits.
        let remembered = self.resources.lock().get(&key).cloned();
        if let Some(resource) = remembered {
            return Ok(resource);
        }
        let (resource, _) = discovery::pinned_kind(&self.client, &kind).await?;
        self.resources.lock().insert(key, resource.clone());
        Ok(resource)
    }
}

#[cfg(test)]
mod tests {
    use jobs::integrations::INTEGRATIONS;
    use serde_json::Value;

    /// The controller reads owners as well, in a replica that has no webhooks.
    #[test]
    fn controller_and_webhooks_may_read_owners_of_every_known_kind() {
        for role in ["core", "webhooks"] {
            let rules = rules(role);
            assert!(may_get(&rules, ("apps", "replicasets")), "{role}");
            for framework in INTEGRATIONS {
                let resource = (framework.group, framework.plural);
                assert!(may_get(&rules, resource), "{role}: {}", framework.name);
            }
        }
    }

    fn rules(role: &str) -> Vec<Value> {
        let path = format!("{}/../../config/rbac/{role}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("the roles");
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
        objects.iter().filter_map(|object| object["rules"].as_array()).flatten().cloned().collect()
    }

    fn may_get(rules: &[Value], (group, plural): (&str, &str)) -> bool {
        let lists = |rule: &Value, field: &str, value: &str| {
            rule[field].as_array().into_iter().flatten().any(|one| one == value)
        };
        rules.iter().any(|rule| {
            lists(rule, "apiGroups", group)
                && lists(rule, "resources", plural)
                && lists(rule, "verbs", "get")
        })
    }
}
