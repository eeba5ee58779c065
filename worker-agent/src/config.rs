//! The configuration file: what the hub may use of this worker. It is the worker's to say, not the hub's
//! (docs/reference/dispatch.md §4).

use std::path::Path;

use anyhow::Context;
use crds::v1alpha1::JobKind;
use serde::Deserialize;

/// The namespace where nothing else is known.
const DEFAULT_NAMESPACE: &str = "kueue-system";

/// The file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AgentConfiguration {
    api_version: ApiVersion,
    kind: Kind,
    /// Where the agent's own objects live.
    #[serde(default = "default_namespace")]
    pub(crate) namespace: String,
    /// Namespaces whose Workloads are run; all when unset.
    #[serde(default)]
    pub(crate) namespaces: Option<Allowed>,
    /// Kinds of jobs that are run; all that are known when unset.
    #[serde(default)]
    pub(crate) kinds: Option<AllowedKinds>,
    /// Whether replicas elect a leader.
    #[serde(default)]
    pub(crate) leader_election: LeaderElection,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
enum ApiVersion {
    #[serde(rename = "config.sluice.dev/v1alpha1")]
    V1Alpha1,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
enum Kind {
    AgentConfiguration,
}

/// Names that are allowed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allowed {
    /// The names.
    pub(crate) allow: Vec<String>,
}

/// Kinds that are allowed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowedKinds {
    allow: Vec<AllowedKind>,
}

/// A kind of job.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct AllowedKind {
    /// Empty for the core group.
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

/// Whether replicas elect a leader.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LeaderElection {
    /// Whether they do.
    pub(crate) leader_elect: bool,
}

impl Default for LeaderElection {
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
            api_version: ApiVersion::V1Alpha1,
            kind: Kind::AgentConfiguration,
            namespace: default_namespace(),
            namespaces: None,
            kinds: None,
            leader_election: LeaderElection::default(),
        }
    }
}

impl AgentConfiguration {
    /// Reads the file, or gives the defaults where there is none.
    ///
    /// # Errors
    /// If it cannot be read, or says something that is not known.
    pub(crate) fn load(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the configuration {}", path.display()))?;
        Self::read(&text).with_context(|| format!("configuration {}", path.display()))
    }

    /// What the hub may use.
    pub(crate) fn allowed(&self) -> cluster::control::Allowed {
        let kind = |one: &AllowedKind| JobKind {
            group: one.group.clone(),
            version: one.version.clone(),
            kind: one.kind.clone(),
        };
        cluster::control::Allowed {
            namespaces: self.namespaces.as_ref().map(|names| names.allow.clone()),
            kinds: self.kinds.as_ref().map(|kinds| kinds.allow.iter().map(kind).collect()),
        }
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        serde_saphyr::from_str(text).map_err(|error| {
            let error = error.without_snippet();
            anyhow::anyhow!("{error}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: config.sluice.dev/v1alpha1\nkind: AgentConfiguration\n";

    #[test]
    fn what_is_not_said_has_its_default() {
        let read = AgentConfiguration::read(HEAD).expect("a file");
        assert_eq!(read, AgentConfiguration::default());
        let text = format!("{HEAD}namespaces: {{allow: [team-a]}}\n");
        let read = AgentConfiguration::read(&text).expect("a file");
        assert_eq!(read.namespaces, Some(Allowed { allow: vec!["team-a".to_owned()] }));
    }

    #[test]
    fn kinds_are_named_as_in_a_policy() {
        let text = format!("{HEAD}kinds: {{allow: [{{group: batch, version: v1, kind: Job}}]}}\n");
        let allowed = AgentConfiguration::read(&text).expect("a file").allowed();
        let named = |one: &JobKind| format!("{}/{} {}", one.group, one.version, one.kind);
        let kinds: Vec<String> = allowed.kinds.iter().flatten().map(named).collect();
        assert_eq!((kinds, allowed.namespaces), (vec!["batch/v1 Job".to_owned()], None));
    }

    #[test]
    fn what_is_not_known_is_refused_with_its_place() {
        for (text, part) in [
            (format!("{HEAD}namespace: a\nqueues: []\n"), "queues"),
            ("apiVersion: v1\nkind: AgentConfiguration\n".to_owned(), "v1"),
            (format!("{HEAD}namespaces: {{deny: [a]}}\n"), "deny"),
            (format!("{HEAD}kinds: {{allow: [{{group: batch, kind: Job}}]}}\n"), "version"),
        ] {
            let error = format!("{:#}", AgentConfiguration::read(&text).expect_err("refused"));
            assert!(error.contains(part), "{error}");
        }
    }
}
