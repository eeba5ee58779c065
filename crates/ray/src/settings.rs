//! What an administrator may set for all clusters: the feature gates and variables of the official operator.
//!
//! Source: docs/reference/ray.md §1.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use crate::security::SecuritySettings;

/// The version of this operator. It must differ from those of official releases and change with `cluster::spec_hash`: hashes of another
/// version are not compared, so that a change of operators makes no pod and no cluster again.
const VERSION: &str = "v1.7.0-sluice";

/// Settings of the operator. The default is that of the official one, release 1.7, except for its name.
#[derive(Clone, Debug)]
pub struct OperatorSettings {
    /// The version that pods and usage statistics name.
    pub version: String,
    /// The domain of Services.
    pub cluster_domain: String,
    /// Feature gates.
    pub gates: RayGates,
    /// The head's Service has an address of its own.
    pub head_cluster_ip_service: bool,
    /// Heads are named after the cluster alone.
    pub deterministic_head_name: bool,
    /// Commands run in a login shell.
    pub login_shell: bool,
    /// Surplus workers are deleted although the autoscaler names victims.
    pub random_pod_delete: bool,
    /// Ray's containers get probes.
    pub inject_probes: bool,
    /// Workers get a container that waits for the head.
    pub inject_init_container: bool,
    /// Keys in Redis are removed with a cluster.
    pub redis_cleanup: bool,
    /// A RayJob is deleted in place of its cluster when it shuts down.
    pub delete_finished_jobs: bool,
    /// How long a RayJob may stay `Running` after the end of its job in Ray.
    pub job_end_grace: Duration,
    /// How long a head may fail to say how its job is.
    pub job_check_timeout: Duration,
    /// A RayService without an upgrade strategy gets a new cluster when its spec changes.
    pub zero_downtime: bool,
    /// Defaults of all pods.
    pub pods: RayPodDefaults,
    /// What is added to secure clusters. None unless an administrator asks for it.
    pub security: Option<SecuritySettings>,
}

/// Feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RayGates {
    /// Conditions in the status of RayClusters.
    pub status_conditions: bool,
    /// Groups can be suspended one by one.
    pub deletion_policy: bool,
    /// Replicas of worker groups have indexes.
    pub multi_host_indexing: bool,
    /// The head's state may be stored in RocksDB.
    pub embedded_storage: bool,
    /// NetworkPolicies of clusters.
    pub network_policy: bool,
    /// The collector of the history server.
    pub history_server: bool,
    /// A submitter beside the head starts again after a failure.
    pub sidecar_submitter_restart: bool,
    /// RayServices may move their traffic step by step.
    pub incremental_upgrade: bool,
    /// Encryption between Ray's nodes.
    pub mtls: bool,
    /// RayCronJobs. The official operator has them off.
    pub cron_jobs: bool,
}

/// Defaults of all pods.
#[derive(Clone, Debug, Default)]
pub struct RayPodDefaults {
    /// Containers beside the head.
    pub head_sidecars: Vec<Value>,
    /// Containers beside each worker.
    pub worker_sidecars: Vec<Value>,
    /// Variables of Ray's containers.
    pub env: Vec<Value>,
    /// Labels that a template may override.
    pub labels: BTreeMap<String, String>,
    /// Annotations that a template may override.
    pub annotations: BTreeMap<String, String>,
}

impl OperatorSettings {
    /// These settings with every gate on.
    pub(crate) fn with_all_gates(&self) -> Self {
        Self { gates: RayGates::ALL, ..self.clone() }
    }
}

impl RayGates {
    const ALL: Self = Self {
        status_conditions: true,
        deletion_policy: true,
        multi_host_indexing: true,
        embedded_storage: true,
        network_policy: true,
        history_server: true,
        sidecar_submitter_restart: true,
        incremental_upgrade: true,
        mtls: true,
        cron_jobs: true,
    };
}

impl Default for OperatorSettings {
    fn default() -> Self {
        Self {
            version: VERSION.to_owned(),
            cluster_domain: "cluster.local".to_owned(),
            gates: RayGates::default(),
            head_cluster_ip_service: false,
            deterministic_head_name: false,
            login_shell: false,
            random_pod_delete: false,
            inject_probes: true,
            inject_init_container: true,
            redis_cleanup: true,
            delete_finished_jobs: false,
            job_end_grace: Duration::from_secs(300),
            job_check_timeout: Duration::from_secs(300),
            zero_downtime: true,
            pods: RayPodDefaults::default(),
            security: None,
        }
    }
}

impl Default for RayGates {
    fn default() -> Self {
        Self {
            status_conditions: true,
            deletion_policy: true,
            multi_host_indexing: true,
            embedded_storage: false,
            network_policy: false,
            history_server: false,
            sidecar_submitter_restart: false,
            incremental_upgrade: true,
            mtls: false,
            cron_jobs: true,
        }
    }
}
