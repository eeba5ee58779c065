//! The configuration file: what managers may use of this worker. The administrator of the worker decides, not the manager
//! (docs/reference/dispatch.md §4).

use std::{collections::BTreeMap, path::Path};

use anyhow::Context;
use cluster::control::AgentPolicy;
use crds::{
    v1alpha1::JobKind, v1beta2::ProvisioningRequestConfigSpec,
    validation::labels::subdomain_problems, yaml::decode_yaml,
};
use serde::Deserialize;

/// The namespace outside a pod, unless configured.
const DEFAULT_NAMESPACE: &str = "kueue-system";

/// The configuration file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AgentConfiguration {
    api_version: ConfigApiVersion,
    kind: ConfigKind,
    /// The namespace of the agent's own objects.
    #[serde(default = "default_namespace")]
    pub(crate) namespace: String,
    /// Namespaces whose Workloads may run; all if unset.
    #[serde(default)]
    pub(crate) namespaces: Option<AllowedNames>,
    /// Job kinds that may run; all supported ones if unset.
    #[serde(default)]
    pub(crate) kinds: Option<AllowedKinds>,
    /// How an autoscaler is asked for nodes before a clone is admitted that needs new ones; not at all if unset.
    #[serde(default)]
    provisioning_request: Option<AgentProvisioningRequest>,
    /// Leader election among replicas.
    #[serde(default)]
    pub(crate) leader_election: AgentLeaderElection,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
enum ConfigApiVersion {
    #[serde(rename = "config.sluice.dev/v1alpha1")]
    V1Alpha1,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
enum ConfigKind {
    AgentConfiguration,
}

/// Allowed names.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowedNames {
    /// The allowed names.
    pub(crate) allow: Vec<String>,
}

/// Allowed job kinds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowedKinds {
    allow: Vec<AllowedKind>,
}

/// A kind of job.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct AllowedKind {
    /// The API group; empty for the core group.
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

/// ProvisioningRequests of the agent. The fields are those of Kueue's ProvisioningRequestConfig. An attempt is never repeated here: the
/// manager tries another worker.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AgentProvisioningRequest {
    provisioning_class_name: String,
    /// Parameters handed to the class.
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    /// Only pods that use one of these resources are asked for; all pods if empty.
    #[serde(default)]
    managed_resources: Vec<String>,
}

/// Leader election among replicas.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AgentLeaderElection {
    /// Whether leader election is enabled.
    pub(crate) leader_elect: bool,
}

impl Default for AgentLeaderElection {
    fn default() -> Self {
        Self { leader_elect: true }
    }
}

fn default_namespace() -> String {
    DEFAULT_NAMESPACE.to_owned()
}

impl Default for AgentConfiguration {
    fn default() -> Self {
        Self {
            api_version: ConfigApiVersion::V1Alpha1,
            kind: ConfigKind::AgentConfiguration,
            namespace: default_namespace(),
            namespaces: None,
            kinds: None,
            provisioning_request: None,
            leader_election: AgentLeaderElection::default(),
        }
    }
}

impl AgentConfiguration {
    /// Reads the file; without a path the defaults.
    ///
    /// # Errors
    /// If the file cannot be read, or is invalid.
    pub(crate) fn load(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the configuration {}", path.display()))?;
        Self::read(&text).with_context(|| format!("configuration {}", path.display()))
    }

    /// What managers may use.
    pub(crate) fn policy(&self) -> AgentPolicy {
        let kind = |one: &AllowedKind| JobKind {
            group: one.group.clone(),
            version: one.version.clone(),
            kind: one.kind.clone(),
        };
        // An unset list allows everything, an empty one nothing.
        AgentPolicy {
            namespaces: self.namespaces.as_ref().map(|names| names.allow.clone()),
            kinds: self.kinds.as_ref().map(|kinds| kinds.allow.iter().map(kind).collect()),
        }
    }

    /// How an autoscaler is asked for nodes.
    ///
    /// # Errors
    /// If the name of the class is none.
    pub(crate) fn provisioning_request(
        &self,
    ) -> anyhow::Result<Option<ProvisioningRequestConfigSpec>> {
        let Some(AgentProvisioningRequest { provisioning_class_name: class, .. }) =
            &self.provisioning_request
        else {
            return Ok(None);
        };
        if let Some(problem) = subdomain_problems(class).first() {
            anyhow::bail!("provisioningRequest.provisioningClassName {class:?}: {problem}");
        }
        Ok(self.provisioning_request.clone().map(|one| ProvisioningRequestConfigSpec {
            provisioning_class_name: one.provisioning_class_name,
            parameters: one.parameters,
            managed_resources: one.managed_resources,
            ..ProvisioningRequestConfigSpec::default()
        }))
    }

    pub(crate) fn read(text: &str) -> anyhow::Result<Self> {
        decode_yaml(text).map_err(anyhow::Error::msg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "apiVersion: config.sluice.dev/v1alpha1\nkind: AgentConfiguration\n";

    #[test]
    fn absent_fields_have_defaults() {
        let read = AgentConfiguration::read(HEADER).expect("a file");
        assert_eq!(read, AgentConfiguration::default());
        let text = format!("{HEADER}namespaces: {{allow: [team-a]}}\n");
        let read = AgentConfiguration::read(&text).expect("a file");
        assert_eq!(read.namespaces, Some(AllowedNames { allow: vec!["team-a".to_owned()] }));
    }

    #[test]
    fn job_kinds_are_named_as_in_a_dispatch_policy() {
        let text =
            format!("{HEADER}kinds: {{allow: [{{group: batch, version: v1, kind: Job}}]}}\n");
        let allowed = AgentConfiguration::read(&text).expect("a file").policy();
        let named = |one: &JobKind| format!("{}/{} {}", one.group, one.version, one.kind);
        let kinds: Vec<String> = allowed.kinds.iter().flatten().map(named).collect();
        assert_eq!((kinds, allowed.namespaces), (vec!["batch/v1 Job".to_owned()], None));
    }

    #[test]
    fn nodes_are_asked_for_with_a_class() {
        let read = |block: &str| {
            let text = format!("{HEADER}provisioningRequest: {block}\n");
            AgentConfiguration::read(&text).expect("a file").provisioning_request()
        };
        let config = read(
            "{provisioningClassName: check-capacity.autoscaling.x-k8s.io, parameters: {a: b}, managedResources: [gpu]}",
        );
        let config = config.expect("a class").expect("a config");
        assert_eq!(config.provisioning_class_name, "check-capacity.autoscaling.x-k8s.io");
        assert_eq!(config.parameters.get("a").map(String::as_str), Some("b"));
        assert_eq!(config.managed_resources, ["gpu"]);
        for class in ["\"\"", "Upper"] {
            let error = read(&format!("{{provisioningClassName: {class}}}")).expect_err("refused");
            assert!(error.to_string().contains("provisioningClassName"), "{error}");
        }
        let absent = AgentConfiguration::default().provisioning_request().expect("no class");
        assert_eq!(absent, None);
    }

    #[test]
    fn unknown_fields_are_refused_with_their_position() {
        for (text, part) in [
            (format!("{HEADER}namespace: a\nqueues: []\n"), "queues"),
            ("apiVersion: v1\nkind: AgentConfiguration\n".to_owned(), "v1"),
            (format!("{HEADER}namespaces: {{deny: [a]}}\n"), "deny"),
            (format!("{HEADER}kinds: {{allow: [{{group: batch, kind: Job}}]}}\n"), "version"),
        ] {
            let error = format!("{:#}", AgentConfiguration::read(&text).expect_err("refused"));
            assert!(error.contains(part), "{error}");
        }
    }
}
