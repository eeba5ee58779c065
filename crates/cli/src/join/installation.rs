//! The configuration of the installed manager, from its ConfigMap: the kinds of jobs that it handles, and its origin.

use config::{Configuration, JobKinds};
use jobs::{JobGates, Kinds};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;

use crate::requests::{RequestFailure, find_in};

/// The ConfigMap of `config/manager`.
pub const CONFIG_MAP: &str = "kueue-manager-config";

/// Its key.
const KEY: &str = "controller_manager_config.yaml";

/// Why the configuration is not known.
#[derive(Debug, thiserror::Error)]
pub enum InstallationFailure {
    /// The ConfigMap cannot be read.
    #[error(transparent)]
    Request(#[from] RequestFailure),
    /// The text is no configuration.
    #[error("cannot read {KEY} of ConfigMap {namespace}/{CONFIG_MAP}: {reason}")]
    Content {
        /// Namespace.
        namespace: String,
        /// What is wrong.
        reason: String,
    },
}

/// What an installed manager is configured for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubInstallation {
    /// The kinds of jobs that it copies to workers.
    pub kinds: Kinds,
    /// Its origin.
    pub origin: String,
    /// Its namespace, by the file or else that of the ConfigMap.
    pub namespace: String,
    /// The feature gates of jobs.
    pub gates: JobGates,
    /// Whether there is a ConfigMap. Without one every built-in kind counts as enabled.
    pub is_configured: bool,
}

impl HubInstallation {
    /// Reads the ConfigMap in the manager's namespace.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn read(
        client: &Client,
        namespace: &str,
        declared: &Kinds,
    ) -> Result<Self, InstallationFailure> {
        let map: Option<ConfigMap> = find_in(client, namespace, CONFIG_MAP).await?;
        let text = map.and_then(|map| map.data?.remove(KEY));
        Self::of(text.as_deref(), namespace, declared).map_err(|reason| {
            InstallationFailure::Content { namespace: namespace.to_owned(), reason }
        })
    }

    /// From the text of the file, and the namespace of its ConfigMap.
    fn of(text: Option<&str>, namespace: &str, declared: &Kinds) -> Result<Self, String> {
        let file = match text {
            Some(text) => Configuration::load(text, Some(namespace)),
            None => Configuration::without_file(Some(namespace)),
        };
        let file = file.map_err(|error| error.to_string())?;
        let gates = file.gates("").map_err(|error| error.to_string())?;
        let configured = JobKinds::configured(&file, &gates, declared).observed();
        let all = || Kinds::built_in().with_workloads().with(declared);
        Ok(Self {
            kinds: if text.is_some() { configured } else { all() },
            gates: JobGates::from(&gates),
            namespace: file.namespace().to_owned(),
            origin: file.multi_kueue.origin,
            is_configured: text.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_configuration_enables_its_kinds() {
        let manifest = include_str!("../../../../config/manager/configuration.yaml");
        let map: ConfigMap = serde_saphyr::from_str(manifest).expect("a ConfigMap");
        assert_eq!(map.metadata.name.as_deref(), Some(CONFIG_MAP));
        let text = map.data.expect("data").remove(KEY).expect("the file");
        let read = HubInstallation::of(Some(&text), "hub", &Kinds::default());
        let read = read.expect("a configuration");
        let names: Vec<&str> = read.kinds.iter().map(jobs::Kind::name).collect();
        let all = Kinds::built_in().with_workloads();
        // The feature gate of this one is off.
        let enabled: Vec<&str> =
            all.iter().map(jobs::Kind::name).filter(|name| *name != "SparkApplication").collect();
        assert_eq!(names, enabled);
        assert_eq!(read.origin, "multikueue");
    }

    #[test]
    fn without_a_file_every_built_in_kind_counts() {
        let read = HubInstallation::of(None, "hub", &Kinds::default()).expect("defaults");
        assert_eq!(read.namespace, "hub");
        assert_eq!(read.kinds, Kinds::built_in().with_workloads());
        assert!(!read.is_configured);
    }

    #[test]
    fn a_broken_file_is_an_error() {
        let text = "kind: Configuration\napiVersion: x";
        let read = HubInstallation::of(Some(text), "hub", &Kinds::default());
        assert!(read.expect_err("broken").contains("apiVersion"));
    }
}
