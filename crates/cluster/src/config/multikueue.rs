//! The block `multiKueue` (docs/reference/multikueue.md §1.7).

use std::time::Duration;

use serde::Deserialize;

use super::duration::GoDuration;

/// All clusters at once.
pub const ALL_AT_ONCE: &str = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once";
/// A few clusters more each round.
pub const INCREMENTAL: &str = "kueue.x-k8s.io/multikueue-dispatcher-incremental";

/// Dispatch to other clusters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MultiKueue {
    /// How often orphans are looked for; zero for never.
    pub gc_interval: GoDuration,
    /// Marks what this manager made on a worker.
    pub origin: String,
    /// After how long a silent worker's work is given to another.
    pub worker_lost_timeout: GoDuration,
    /// Who nominates clusters.
    pub dispatcher_name: String,
    /// Settings of the incremental dispatcher.
    pub incremental_dispatcher_config: Option<IncrementalDispatcher>,
    /// Job kinds mirrored without an adapter of their own.
    pub external_frameworks: Vec<ExternalFramework>,
    /// Credentials through ClusterProfiles.
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
    /// How often orphans are looked for; none for never, which upstream writes as zero.
    #[must_use]
    pub fn gc_interval(&self) -> Option<Duration> {
        self.gc_interval.positive().filter(|interval| !interval.is_zero())
    }
}

/// Settings of the incremental dispatcher.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct IncrementalDispatcher {
    /// Clusters added each round.
    pub step_size: i32,
}

impl Default for IncrementalDispatcher {
    fn default() -> Self {
        Self { step_size: 3 }
    }
}

/// A job kind mirrored without an adapter of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalFramework {
    /// `Kind.version.group`.
    pub name: String,
}

/// Credentials through ClusterProfiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClusterProfile {
    /// Commands that give credentials.
    pub access_providers: Vec<AccessProvider>,
    /// The old name of the same list.
    pub credentials_providers: Vec<AccessProvider>,
}

/// A command that gives credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AccessProvider {
    /// The name in the ClusterProfile.
    pub name: String,
    /// What is run.
    pub exec_config: ExecConfig,
}

/// What is run for credentials, as in a kubeconfig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExecConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: Vec<ExecEnv>,
    /// The version of its protocol.
    pub api_version: String,
    /// What to say when it is missing.
    pub install_hint: String,
    /// Whether it is told about the cluster.
    pub provide_cluster_info: bool,
    /// Whether it may read the terminal.
    pub interactive_mode: String,
}

/// A variable of the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExecEnv {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}
