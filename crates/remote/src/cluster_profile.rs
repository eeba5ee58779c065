//! Workers that a ClusterProfile describes (docs/reference/multikueue.md §1.2, §2.9).
//!
//! A ClusterProfile of the cluster inventory (`multicluster.x-k8s.io`) has the address of a cluster and the names of providers of
//! credentials. The configuration has a command per provider. The first configured provider that the profile names is used:
//!
//! | module | concept |
//! |---|---|
//! | `exec_credential` | what the command is given, and what its output says, pure |
//! | `credential_plugin` | runs the command |
//! | `renewal` | when a credential is asked for again, pure |
//!
//! Address and credential pass the checks of every kubeconfig, so a profile cannot switch verification off or name a file.

pub(super) mod credential_plugin;
pub(super) mod exec_credential;
pub(super) mod renewal;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use config::AccessProvider;
use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use runtime::watch::{Store, Stores, Watch};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{
    file_watch::FileState, kubeconfig_refused::KubeconfigRefused, kubeconfig_secret::Fingerprint,
};

/// How many commands of one provider run at once: a provider that hangs delays no other.
const MAX_RUNNING: usize = 8;

/// The ClusterProfiles of the manager's namespace, and the commands for them.
#[derive(Clone)]
pub struct ClusterProfiles {
    pub(super) store: Store<ClusterProfileObject>,
    pub(super) providers: Arc<[AccessProvider]>,
    /// By the name of the provider.
    running: Arc<BTreeMap<String, Semaphore>>,
}

fn permits(providers: &[AccessProvider]) -> Arc<BTreeMap<String, Semaphore>> {
    let permits = providers.iter().map(|one| (one.name.clone(), Semaphore::new(MAX_RUNNING)));
    Arc::new(permits.collect())
}

impl ClusterProfiles {
    /// Watches the ClusterProfiles of a namespace. Their CRD may be absent.
    #[must_use]
    pub fn watch(stores: &mut Stores, namespace: &str, providers: &[AccessProvider]) -> Self {
        let source = stores.source().in_namespace(namespace);
        let metrics = stores.metrics();
        let watch =
            Watch::typed("cluster-profiles", |text| serde_json::from_str(text), &source, metrics);
        let watch = watch.optional();
        let store = stores.start(watch);
        Self { store, providers: providers.into(), running: permits(providers) }
    }

    /// The permits of a configured provider.
    pub(super) fn permits(&self, provider: &AccessProvider) -> Option<&Semaphore> {
        self.running.get(&provider.name)
    }

    /// The access to the cluster of a profile, by the first configured provider that the profile names.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn access<'a>(
        &'a self,
        name: &str,
        profile: Option<&'a ClusterProfileObject>,
    ) -> Result<ProfileAccess<'a>, KubeconfigRefused> {
        let profile = profile.ok_or_else(|| KubeconfigRefused::NoProfile(name.into()))?;
        if self.providers.is_empty() {
            return Err(KubeconfigRefused::NoAccessProvider);
        }
        let named = self.providers.iter().find_map(|provider| {
            Some(ProfileAccess { provider, cluster: profile.cluster(&provider.name)? })
        });
        named.ok_or_else(|| KubeconfigRefused::NoMatchingProvider(name.into()))
    }

    /// What the access to a profile is compared by.
    pub(super) fn fingerprint(
        &self,
        name: &str,
        profile: Option<&ClusterProfileObject>,
    ) -> FileState {
        self.access(name, profile).map(|access| access.fingerprint())
    }
}

/// How a cluster is accessed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfileAccess<'a> {
    /// The provider of credentials.
    pub(super) provider: &'a AccessProvider,
    /// The cluster, with the fields of a kubeconfig's cluster.
    pub(super) cluster: &'a Value,
}

impl ProfileAccess<'_> {
    /// Changes with the provider and with every field of the cluster.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(format!("{}\n{}", self.provider.name, self.cluster).as_bytes())
    }
}

/// A ClusterProfile without what a connection does not need.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterProfileObject {
    metadata: ObjectMeta,
    /// Those of the current field, then those of its deprecated name.
    providers: Vec<ProfileProvider>,
}

/// A provider of credentials that a ClusterProfile names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct ProfileProvider {
    name: String,
    cluster: Value,
}

impl ClusterProfileObject {
    fn cluster(&self, provider: &str) -> Option<&Value> {
        self.providers.iter().find(|one| one.name == provider).map(|one| &one.cluster)
    }
}

#[derive(Deserialize)]
struct RawProfile {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Option<RawProfileStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawProfileStatus {
    access_providers: Vec<ProfileProvider>,
    credential_providers: Vec<ProfileProvider>,
}

impl<'de> Deserialize<'de> for ClusterProfileObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawProfile { mut metadata, status } = RawProfile::deserialize(deserializer)?;
        metadata.annotations = None;
        metadata.managed_fields = None;
        let status = status.unwrap_or_default();
        let (mut providers, deprecated) = (status.access_providers, status.credential_providers);
        providers.extend(deprecated);
        Ok(Self { metadata, providers })
    }
}

impl Resource for ClusterProfileObject {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "ClusterProfile".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "multicluster.x-k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "clusterprofiles".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn profiles(providers: &[&str]) -> ClusterProfiles {
        let provider = |name: &&str| AccessProvider { name: (*name).to_owned(), ..<_>::default() };
        ClusterProfiles {
            store: Store::default(),
            providers: providers.iter().map(provider).collect(),
            running: Arc::default(),
        }
    }

    fn profile(status: &Value) -> ClusterProfileObject {
        let object = json!({ "metadata": { "name": "east" }, "status": status });
        serde_json::from_value(object).expect("a ClusterProfile")
    }

    #[test]
    fn the_first_configured_provider_that_the_profile_names_is_used() {
        let server = |name: &str| json!({ "name": name, "cluster": { "server": name } });
        let both = profile(&json!({
            "accessProviders": [server("b"), server("a")],
            "credentialProviders": [server("old"), { "name": "a", "cluster": { "server": "z" } }],
        }));
        for (configured, expected) in [
            (&["a", "b"][..], Ok("a")),
            (&["b", "a"], Ok("b")),
            (&["x", "old"], Ok("old")),
            (&["x"], Err(KubeconfigRefused::NoMatchingProvider("east".into()))),
            (&[], Err(KubeconfigRefused::NoAccessProvider)),
        ] {
            let profiles = profiles(configured);
            let access = profiles.access("east", Some(&both));
            let server = access.map(|access| access.cluster["server"].as_str().expect("a server"));
            assert_eq!(server, expected, "{configured:?}");
        }
        let missing = profiles(&["a"]).access("east", None).expect_err("no profile");
        assert_eq!(missing, KubeconfigRefused::NoProfile("east".into()));
        let no_status = profiles(&["a"]).fingerprint("east", Some(&profile(&Value::Null)));
        assert_eq!(no_status, Err(KubeconfigRefused::NoMatchingProvider("east".into())));
    }

    #[test]
    fn a_changed_address_is_another_access_and_a_changed_label_is_not() {
        let at = |server: &str| {
            let cluster = json!({ "server": server });
            profile(&json!({ "accessProviders": [{ "name": "a", "cluster": cluster }] }))
        };
        let print =
            |profile: &ClusterProfileObject| profiles(&["a"]).fingerprint("east", Some(profile));
        let mut labelled = at("https://one");
        labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        assert_eq!(print(&at("https://one")), print(&labelled));
        assert_ne!(print(&at("https://one")), print(&at("https://two")));
    }
}
