//! The configuration: the v1beta2 file with its defaults (docs/reference/kueue.md §6.4).
//!
//! Each struct is a block of the file; `Default` is the block when absent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::duration::{GoDuration, nanoseconds_or_text};
use super::multikueue::MultiKueue;
use super::resources::Resources;
use super::selector::ConfiguredSelector;
use super::serving::{
    CertManagement, Health, LeaderElection, Metrics, Tls, VisibilityServer, Webhook,
};

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Configuration {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// The namespace of Kueue's own objects.
    pub namespace: Option<String>,
    /// The webhook server.
    pub webhook: Webhook,
    /// Leader election among replicas.
    pub leader_election: LeaderElection,
    /// The metrics server.
    pub metrics: Metrics,
    /// The probe server.
    pub health: Health,
    /// The bind address of profiling; disabled if empty.
    pub pprof_bind_address: String,
    /// Settings of controllers.
    pub controller: Controller,
    /// TLS settings of servers.
    pub tls: Option<Tls>,
    /// Whether jobs without a queue name are managed.
    pub manage_jobs_without_queue_name: bool,
    /// The namespaces in which jobs are managed. Set while loading.
    pub managed_jobs_namespace_selector: Option<ConfiguredSelector>,
    /// The managed namespaces in which jobs get the LocalQueue `default`; all of them if absent.
    pub local_queue_defaulting_namespace_selector: Option<ConfiguredSelector>,
    /// Certificates of the webhook server.
    pub internal_cert_management: CertManagement,
    /// All-or-nothing scheduling; disabled if absent. Set while loading, except for v1beta1.
    pub wait_for_pods_ready: Option<WaitForPodsReady>,
    /// Limits on requests to the API server.
    pub client_connection: ClientConnection,
    /// Job kinds.
    pub integrations: Integrations,
    /// Dispatch to worker clusters.
    pub multi_kueue: MultiKueue,
    /// Fair sharing in cohorts; disabled if absent.
    pub fair_sharing: Option<FairSharingSettings>,
    /// Fair sharing among LocalQueues; disabled if absent.
    pub admission_fair_sharing: Option<AdmissionFairSharing>,
    /// How requests count against quota.
    pub resources: Resources,
    /// Feature gates by name; see [`super::Configuration::gate_settings`].
    pub feature_gates: BTreeMap<String, Spanned<bool>>,
    /// Retention of finished objects.
    pub object_retention_policies: Option<ObjectRetentionPolicies>,
    /// The visibility server (aggregated API).
    pub visibility_server: VisibilityServer,
    /// Paths of the fields in the file, as `block.field`. Set while loading.
    #[serde(skip)]
    pub(super) set: std::collections::BTreeSet<String>,
}

/// Settings of controllers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Controller {
    /// Concurrency by `Kind.group`; one by default.
    pub group_kind_concurrency: BTreeMap<String, u32>,
    /// The timeout of the first list.
    #[serde(deserialize_with = "nanoseconds_or_text")]
    pub cache_sync_timeout: GoDuration,
}

impl Default for Controller {
    fn default() -> Self {
        Self {
            group_kind_concurrency: BTreeMap::new(),
            cache_sync_timeout: GoDuration::from_secs(120),
        }
    }
}

/// All-or-nothing scheduling.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WaitForPodsReady {
    /// The timeout until all pods are ready.
    pub timeout: GoDuration,
    /// The timeout until a missing pod of a running Workload is replaced; `timeout` if absent.
    pub recovery_timeout: Option<GoDuration>,
    /// Whether admission of other Workloads is blocked meanwhile.
    pub block_admission: bool,
    /// How evicted Workloads are requeued.
    pub requeuing_strategy: RequeuingStrategy,
    /// The longest timeout that a Workload may set for itself. None can.
    pub max_timeout_on_workload: Option<GoDuration>,
}

impl Default for WaitForPodsReady {
    fn default() -> Self {
        Self {
            timeout: GoDuration::from_secs(30 * 60),
            recovery_timeout: None,
            block_admission: false,
            requeuing_strategy: RequeuingStrategy::default(),
            max_timeout_on_workload: None,
        }
    }
}

/// How evicted Workloads are requeued.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RequeuingStrategy {
    /// The timestamp that orders requeued Workloads.
    pub timestamp: RequeuingTimestamp,
    /// Number of retries before deactivation; unlimited if absent.
    pub backoff_limit_count: Option<i32>,
    /// The first delay, in seconds.
    pub backoff_base_seconds: i32,
    /// The maximum delay, in seconds.
    pub backoff_max_seconds: i32,
}

impl Default for RequeuingStrategy {
    fn default() -> Self {
        Self {
            timestamp: RequeuingTimestamp::Eviction,
            backoff_limit_count: None,
            backoff_base_seconds: 60,
            backoff_max_seconds: 3600,
        }
    }
}

/// The timestamp that orders requeued Workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum RequeuingTimestamp {
    /// The creation of the Workload.
    Creation,
    /// The eviction of the Workload.
    Eviction,
}

/// Limits on requests to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientConnection {
    /// Requests per second; unlimited if negative.
    pub qps: f32,
    /// Burst of requests.
    pub burst: i32,
}

impl Default for ClientConnection {
    fn default() -> Self {
        Self { qps: 300.0, burst: 500 }
    }
}

/// Job kinds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Integrations {
    /// Enabled built-in kinds.
    pub frameworks: Vec<String>,
    /// Kinds (`Kind.version.group`) that another controller manages.
    pub external_frameworks: Vec<String>,
    /// Labels that are copied from a job to its Workload.
    pub label_keys_to_copy: Vec<String>,
}

impl Default for Integrations {
    fn default() -> Self {
        Self {
            frameworks: vec!["batch/job".to_owned()],
            external_frameworks: Vec::new(),
            label_keys_to_copy: Vec::new(),
        }
    }
}

/// Fair sharing in a cohort.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FairSharingSettings {
    /// The strategies that select preemption targets, in order.
    pub preemption_strategies: Vec<PreemptionStrategy>,
}

/// A strategy that selects preemption targets (docs/reference/kueue.md §4.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum PreemptionStrategy {
    /// The preemptor's share stays at or below what the target has left.
    LessThanOrEqualToFinalShare,
    /// The preemptor's share stays below what the target had.
    LessThanInitialShare,
}

/// Fair sharing among LocalQueues.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AdmissionFairSharing {
    /// The half-life of usage.
    pub usage_half_life_time: GoDuration,
    /// The sampling interval of usage.
    pub usage_sampling_interval: GoDuration,
    /// Weights of resources; one by default.
    pub resource_weights: BTreeMap<String, f64>,
}

impl Default for AdmissionFairSharing {
    fn default() -> Self {
        Self {
            usage_half_life_time: GoDuration::ZERO,
            usage_sampling_interval: GoDuration::from_secs(5 * 60),
            resource_weights: BTreeMap::new(),
        }
    }
}

/// Retention of finished objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectRetentionPolicies {
    /// Retention of Workloads.
    pub workloads: Option<WorkloadRetention>,
}

/// Retention of Workloads; forever if absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WorkloadRetention {
    /// After they finished.
    pub after_finished: Option<GoDuration>,
    /// After they were deactivated. Deletes the job, too.
    pub after_deactivated_by_kueue: Option<GoDuration>,
}
