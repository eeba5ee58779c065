//! The configuration as the product sees it: the v1beta2 file with its defaults (docs/reference/kueue.md §6.4).
//!
//! Each struct is one block of the file; `Default` is the block that nobody wrote.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::duration::GoDuration;
use super::multikueue::MultiKueue;
use super::resources::Resources;
use super::selector::LabelSelector;
use super::serving::{
    CertManagement, Health, LeaderElection, Metrics, Tls, VisibilityServer, Webhook,
};

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Configuration {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Where the product's own objects live.
    pub namespace: Option<String>,
    /// The webhook server.
    pub webhook: Webhook,
    /// Who may write when several replicas run.
    pub leader_election: LeaderElection,
    /// The metrics server.
    pub metrics: Metrics,
    /// The probe server.
    pub health: Health,
    /// Where profiles are served; empty for nowhere.
    pub pprof_bind_address: String,
    /// How controllers work.
    pub controller: Controller,
    /// What TLS servers accept.
    pub tls: Option<Tls>,
    /// Whether jobs without a queue are held too.
    pub manage_jobs_without_queue_name: bool,
    /// In which namespaces jobs are managed; filled in by loading.
    pub managed_jobs_namespace_selector: Option<LabelSelector>,
    /// Whether certificates are made by the product.
    pub internal_cert_management: CertManagement,
    /// All-or-nothing starts; absent for no waiting. Filled in by loading, unless the file is an older one.
    pub wait_for_pods_ready: Option<WaitForPodsReady>,
    /// Limits on requests to the API server.
    pub client_connection: ClientConnection,
    /// Job kinds.
    pub integrations: Integrations,
    /// Dispatch to other clusters.
    pub multi_kueue: MultiKueue,
    /// Fair sharing in a cohort; absent for off.
    pub fair_sharing: Option<FairSharing>,
    /// Fair sharing among LocalQueues; absent for off.
    pub admission_fair_sharing: Option<AdmissionFairSharing>,
    /// How requests are counted.
    pub resources: Resources,
    /// Gates by name; see [`super::Configuration::gate_settings`].
    pub feature_gates: BTreeMap<String, Spanned<bool>>,
    /// How long finished objects stay.
    pub object_retention_policies: Option<ObjectRetentionPolicies>,
    /// The aggregated API.
    pub visibility_server: VisibilityServer,
    /// Paths of what the file sets, as `block.field`; filled in by loading.
    #[serde(skip)]
    pub(super) set: std::collections::BTreeSet<String>,
}

/// How controllers work.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Controller {
    /// Objects of a `Kind.group` handled at once; one where nothing is said.
    pub group_kind_concurrency: BTreeMap<String, u32>,
    /// How long the first lists may take.
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

/// All-or-nothing starts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WaitForPodsReady {
    /// How long pods may take to become ready.
    pub timeout: GoDuration,
    /// How long a running Workload may be without one of its pods; `timeout` when absent.
    pub recovery_timeout: Option<GoDuration>,
    /// Whether nothing else is admitted meanwhile.
    pub block_admission: bool,
    /// How an evicted Workload is queued again.
    pub requeuing_strategy: RequeuingStrategy,
}

impl Default for WaitForPodsReady {
    fn default() -> Self {
        Self {
            timeout: GoDuration::from_secs(30 * 60),
            recovery_timeout: None,
            block_admission: false,
            requeuing_strategy: RequeuingStrategy::default(),
        }
    }
}

/// How an evicted Workload is queued again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RequeuingStrategy {
    /// Which time decides its place.
    pub timestamp: RequeuingTimestamp,
    /// How often it is tried before it is deactivated; for ever when absent.
    pub backoff_limit_count: Option<i32>,
    /// The first wait.
    pub backoff_base_seconds: i32,
    /// The longest wait.
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

/// Which time decides the place of an evicted Workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum RequeuingTimestamp {
    /// When it was created.
    Creation,
    /// When it was evicted.
    Eviction,
}

/// Limits on requests to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientConnection {
    /// Requests per second; negative for no limit.
    pub qps: f32,
    /// Requests that may be sent at once.
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
    /// Built-in kinds that are on.
    pub frameworks: Vec<String>,
    /// Kinds (`Kind.version.group`) that another controller manages.
    pub external_frameworks: Vec<String>,
    /// Labels that go from a job to its Workload.
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
pub struct FairSharing {
    /// Rules by which a victim is chosen, tried in this order.
    pub preemption_strategies: Vec<PreemptionStrategy>,
}

/// A rule by which a victim is chosen (docs/reference/kueue.md §4.10).
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
    /// After how long usage counts half.
    pub usage_half_life_time: GoDuration,
    /// How often usage is sampled.
    pub usage_sampling_interval: GoDuration,
    /// What a resource counts; one where nothing is said.
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

/// How long finished objects stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectRetentionPolicies {
    /// Of Workloads.
    pub workloads: Option<WorkloadRetention>,
}

/// How long Workloads stay; for ever where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WorkloadRetention {
    /// After they finished.
    pub after_finished: Option<GoDuration>,
    /// After they were deactivated; this deletes the job.
    pub after_deactivated_by_kueue: Option<GoDuration>,
}
