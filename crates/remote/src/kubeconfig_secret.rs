//! The Secrets that the supervisor watches, reduced to the hash of their kubeconfig.
//!
//! Other data is not decoded, and annotations are dropped because `kubectl apply` repeats the data there. The worker's task
//! reads the kubeconfig when it connects, and checks it against the hash.

use std::{borrow::Cow, fmt};

use k8s_openapi::{
    ByteString, NamespaceResourceScope, api::core::v1::Secret,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::Resource;
use ring::digest::{SHA256, digest};
use runtime::watch::{Store, Stores, Watch};
use serde::{Deserialize, Deserializer};

/// The key of the kubeconfig in a Secret.
pub(super) const KEY: &str = "kubeconfig";

/// The SHA-256 hash of a kubeconfig.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Hashes a kubeconfig.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(digest(&SHA256, text).as_ref()) {
            *to = *from;
        }
        Self(bytes)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to tell two versions apart in a log.
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A Secret without its data.
#[derive(Clone, Debug, PartialEq)]
pub struct KubeconfigSecret {
    metadata: ObjectMeta,
    /// The hash of its kubeconfig; none without one.
    pub(super) kubeconfig: Option<Fingerprint>,
}

/// The Secrets of a namespace.
#[must_use]
pub fn kubeconfig_secrets(stores: &mut Stores, namespace: &str) -> Store<KubeconfigSecret> {
    let source = stores.source().in_namespace(namespace);
    let watch = Watch::typed(
        "worker-secrets",
        |text| serde_json::from_str(text),
        &source,
        stores.metrics(),
    );
    stores.start(watch)
}

#[derive(Deserialize)]
struct RawSecret {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    data: Option<KubeconfigData>,
}

#[derive(Deserialize)]
struct KubeconfigData {
    #[serde(default)]
    kubeconfig: Option<ByteString>,
}

impl<'de> Deserialize<'de> for KubeconfigSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawSecret { mut metadata, data } = RawSecret::deserialize(deserializer)?;
        metadata.annotations = None;
        let text = data.and_then(|data| data.kubeconfig);
        Ok(Self { metadata, kubeconfig: text.map(|text| Fingerprint::of(&text.0)) })
    }
}

impl Resource for KubeconfigSecret {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Secret::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Secret::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Secret::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Secret::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
impl KubeconfigSecret {
    /// A Secret with or without a kubeconfig.
    pub(super) fn with(text: Option<&str>) -> Self {
        let kubeconfig = text.map(|text| Fingerprint::of(text.as_bytes()));
        Self { metadata: ObjectMeta::default(), kubeconfig }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_hash_of_the_kubeconfig_is_kept() {
        let annotations = json!({ "kubectl.kubernetes.io/last-applied-configuration": "aHVzaA==" });
        let secret = |data| -> KubeconfigSecret {
            let metadata = json!({ "name": "east", "annotations": annotations });
            serde_json::from_value(json!({ "metadata": metadata, "data": data })).expect("a Secret")
        };
        let seen = secret(json!({ "kubeconfig": "aHVzaA==", "other": "aHVzaA==" }));
        assert_eq!(seen.kubeconfig, Some(Fingerprint::of(b"hush")));
        let printed = format!("{seen:?}");
        assert!(!printed.contains("aHVzaA") && !printed.contains("hush"), "{printed}");
        assert_eq!(secret(json!({ "other": "aHVzaA==" })).kubeconfig, None);
        assert_eq!(secret(json!(null)).kubeconfig, None);
    }
}
