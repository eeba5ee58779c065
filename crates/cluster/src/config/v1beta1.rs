//! The file's older version, turned into the one shape the product knows.
//!
//! Only four blocks differ; all others are read by the types of the newer version.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::duration::GoDuration;
use super::multikueue::MultiKueue;
use super::resources::Resources;
use super::selector::LabelSelector;
use super::serving::{
    CertManagement, Health, LeaderElection, Metrics, Tls, VisibilityServer, Webhook,
};
use super::shape::{
    AdmissionFairSharing, ClientConnection, Configuration, Controller, FairSharing, Integrations,
    ObjectRetentionPolicies, PreemptionStrategy, RequeuingStrategy, WaitForPodsReady,
};

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct File {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    webhook: Webhook,
    leader_election: LeaderElection,
    metrics: Metrics,
    health: Health,
    pprof_bind_address: String,
    controller: Controller,
    tls: Option<Tls>,
    manage_jobs_without_queue_name: bool,
    managed_jobs_namespace_selector: Option<LabelSelector>,
    internal_cert_management: CertManagement,
    wait_for_pods_ready: Option<OldWait>,
    client_connection: ClientConnection,
    integrations: OldIntegrations,
    multi_kueue: MultiKueue,
    fair_sharing: Option<OldFairSharing>,
    admission_fair_sharing: Option<AdmissionFairSharing>,
    resources: Resources,
    feature_gates: BTreeMap<String, Spanned<bool>>,
    object_retention_policies: Option<ObjectRetentionPolicies>,
    visibility_server: VisibilityServer,
    #[serde(rename = "queueVisibility")]
    _queue_visibility: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct OldWait {
    enable: bool,
    timeout: Option<GoDuration>,
    recovery_timeout: Option<GoDuration>,
    block_admission: Option<bool>,
    requeuing_strategy: RequeuingStrategy,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct OldIntegrations {
    frameworks: Vec<String>,
    external_frameworks: Vec<String>,
    label_keys_to_copy: Vec<String>,
    #[serde(rename = "podOptions")]
    _pod_options: Option<PodOptions>,
}

impl Default for OldIntegrations {
    fn default() -> Self {
        Self {
            frameworks: Integrations::default().frameworks,
            external_frameworks: Vec::new(),
            label_keys_to_copy: Vec::new(),
            _pod_options: None,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct PodOptions {
    #[serde(rename = "namespaceSelector")]
    _namespace_selector: Option<LabelSelector>,
    #[serde(rename = "podSelector")]
    _pod_selector: Option<LabelSelector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct OldFairSharing {
    enable: bool,
    preemption_strategies: Vec<PreemptionStrategy>,
}

impl From<File> for Configuration {
    fn from(old: File) -> Self {
        Self {
            api_version: old.api_version,
            kind: old.kind,
            namespace: old.namespace,
            webhook: old.webhook,
            leader_election: old.leader_election,
            metrics: old.metrics,
            health: old.health,
            pprof_bind_address: old.pprof_bind_address,
            controller: old.controller,
            tls: old.tls,
            manage_jobs_without_queue_name: old.manage_jobs_without_queue_name,
            managed_jobs_namespace_selector: old.managed_jobs_namespace_selector,
            internal_cert_management: old.internal_cert_management,
            wait_for_pods_ready: old.wait_for_pods_ready.and_then(wait),
            client_connection: old.client_connection,
            integrations: Integrations {
                frameworks: old.integrations.frameworks,
                external_frameworks: old.integrations.external_frameworks,
                label_keys_to_copy: old.integrations.label_keys_to_copy,
            },
            multi_kueue: old.multi_kueue,
            fair_sharing: old.fair_sharing.and_then(fair_sharing),
            admission_fair_sharing: old.admission_fair_sharing,
            resources: old.resources,
            feature_gates: old.feature_gates,
            object_retention_policies: old.object_retention_policies,
            visibility_server: old.visibility_server,
            set: std::collections::BTreeSet::new(),
        }
    }
}

/// A block that is not enabled is no block. The older defaults were a shorter timeout and a blocked admission.
fn wait(old: OldWait) -> Option<WaitForPodsReady> {
    old.enable.then(|| WaitForPodsReady {
        timeout: old.timeout.unwrap_or(GoDuration::from_secs(5 * 60)),
        recovery_timeout: old.recovery_timeout,
        block_admission: old.block_admission.unwrap_or(true),
        requeuing_strategy: old.requeuing_strategy,
    })
}

/// Enabled without a list means both strategies.
fn fair_sharing(old: OldFairSharing) -> Option<FairSharing> {
    use PreemptionStrategy::{LessThanInitialShare, LessThanOrEqualToFinalShare};
    let mut preemption_strategies = old.preemption_strategies;
    if preemption_strategies.is_empty() {
        preemption_strategies = vec![LessThanOrEqualToFinalShare, LessThanInitialShare];
    }
    old.enable.then_some(FairSharing { preemption_strategies })
}
