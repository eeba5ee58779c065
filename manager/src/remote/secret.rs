//! Secrets as the supervisor watches them: which there are, and the hash of the kubeconfig in each.
//!
//! Nothing else of a Secret is decoded, and annotations are dropped, as `kubectl apply` repeats the data there. Who
//! connects reads the kubeconfig itself, when it is needed, and checks it against the hash.

use std::{borrow::Cow, fmt};

use k8s_openapi::{
    ByteString, NamespaceResourceScope, api::core::v1::Secret,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::Resource;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Deserializer};

/// The key of the kubeconfig.
pub(super) const KEY: &str = "kubeconfig";

/// Tells kubeconfigs apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a kubeconfig.
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
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A Secret, as little as possible of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    metadata: ObjectMeta,
    /// Of its kubeconfig, if it has one.
    pub(super) kubeconfig: Option<Fingerprint>,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    kubeconfig: Option<ByteString>,
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { mut metadata, data } = Raw::deserialize(deserializer)?;
        metadata.annotations = None;
        let text = data.and_then(|data| data.kubeconfig);
        Ok(Self { metadata, kubeconfig: text.map(|text| Fingerprint::of(&text.0)) })
    }
}

impl Resource for Seen {
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
impl Seen {
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
        let secret = |data| -> Seen {
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
