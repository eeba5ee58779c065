//! The block `multiKueue` (docs/reference/multikueue.md §1.7).

use std::time::Duration;

use serde::Deserialize;

use super::duration::GoDuration;

/// Nominates all clusters at once.
pub const ALL_AT_ONCE: &str = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once";
/// Nominates a few more clusters in each round.
pub const INCREMENTAL: &str = "kueue.x-k8s.io/multikueue-dispatcher-incremental";

/// The mode of a command that must use standard input.
pub const ALWAYS_INTERACTIVE: &str = "Always";

/// Dispatch to worker clusters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MultiKueue {
    /// The interval of garbage collection; zero disables it.
    pub gc_interval: GoDuration,
    /// The value of the origin label on objects of this manager.
    pub origin: String,
    /// After this time the Workloads of a lost worker are dispatched again.
    pub worker_lost_timeout: GoDuration,
    /// The dispatcher that nominates clusters.
    pub dispatcher_name: String,
    /// Settings of the incremental dispatcher.
    pub incremental_dispatcher_config: Option<IncrementalDispatcher>,
    /// Job kinds that are dispatched without an adapter of their own.
    pub external_frameworks: Vec<ExternalFramework>,
    /// Credential providers for ClusterProfiles.
    pub cluster_profile: Option<ClusterProfile>,
}

impl Default for MultiKueue {
    fn default() -> Self {
        Self {
            gc_interval: GoDuration::from_secs(60),
            origin: "multikueue".to_owned(),
            worker_lost_timeout: GoDuration::from_secs(15 * 60),
            dispatcher_name: ALL_AT_ONCE.to_owned(),
            incremental_dispatcher_config: None,
            external_frameworks: Vec::new(),
            cluster_profile: None,
        }
    }
}

impl MultiKueue {
    /// The interval of garbage collection; none if disabled (zero in the file).
    #[must_use]
    pub fn gc_interval(&self) -> Option<Duration> {
        self.gc_interval.positive().filter(|interval| !interval.is_zero())
    }

    /// The providers of credentials for ClusterProfiles, under the current name of the field or its deprecated one.
    #[must_use]
    pub fn access_providers(&self) -> &[AccessProvider] {
        let Some(profile) = &self.cluster_profile else {
            return &[];
        };
        // Validation refuses both.
        let deprecated = profile.access_providers.is_empty();
        if deprecated { &profile.credentials_providers } else { &profile.access_providers }
    }
}

/// Settings of the incremental dispatcher.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct IncrementalDispatcher {
    /// Number of clusters added per round.
    pub step_size: i32,
}

impl Default for IncrementalDispatcher {
    fn default() -> Self {
        Self { step_size: 3 }
    }
}

/// A job kind that is dispatched without an adapter of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalFramework {
    /// `Kind.version.group`.
    pub name: String,
}

/// Credential providers for ClusterProfiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClusterProfile {
    /// Credential providers.
    pub access_providers: Vec<AccessProvider>,
    /// The deprecated name of `access_providers`.
    pub credentials_providers: Vec<AccessProvider>,
}

/// A credential provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AccessProvider {
    /// The name in the ClusterProfile.
    pub name: String,
    /// The command that prints credentials.
    pub exec_config: ExecConfig,
}

/// A command that prints credentials, as in a kubeconfig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExecConfig {
    /// The command.
    pub command: String,
    /// The arguments.
    pub args: Vec<String>,
    /// The environment variables.
    pub env: Vec<ExecEnv>,
    /// The API version of the credentials.
    pub api_version: String,
    /// The hint when the command is missing.
    pub install_hint: String,
    /// Whether the command gets the cluster's data.
    pub provide_cluster_info: bool,
    /// Whether the command may use standard input.
    pub interactive_mode: String,
}

/// An environment variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExecEnv {
    /// The name of the variable.
    pub name: String,
    /// The value of the variable.
    pub value: String,
}
