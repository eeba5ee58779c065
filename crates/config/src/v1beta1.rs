//! The v1beta1 file, converted to [`Configuration`].
//!
//! Four blocks differ; all others use the types of v1beta2.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::configuration::{
    AdmissionFairSharing, ClientConnection, Configuration, Controller, FairSharingSettings,
    Integrations, ObjectRetentionPolicies, PreemptionStrategy, RequeuingStrategy, WaitForPodsReady,
};
use super::duration::GoDuration;
use super::multikueue::MultiKueue;
use super::resources::Resources;
use super::selector::ConfiguredSelector;
use super::serving::{
    CertManagement, Health, LeaderElection, Metrics, Tls, VisibilityServer, Webhook,
};

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct V1Beta1File {
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
    managed_jobs_namespace_selector: Option<ConfiguredSelector>,
    internal_cert_management: CertManagement,
    wait_for_pods_ready: Option<V1Beta1WaitForPodsReady>,
    client_connection: ClientConnection,
    integrations: V1Beta1Integrations,
    multi_kueue: MultiKueue,
    fair_sharing: Option<V1Beta1FairSharing>,
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
struct V1Beta1WaitForPodsReady {
    enable: bool,
    timeout: Option<GoDuration>,
    recovery_timeout: Option<GoDuration>,
    block_admission: Option<bool>,
    requeuing_strategy: RequeuingStrategy,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct V1Beta1Integrations {
    frameworks: Vec<String>,
    external_frameworks: Vec<String>,
    label_keys_to_copy: Vec<String>,
    #[serde(rename = "podOptions")]
    _pod_options: Option<PodOptions>,
}

impl Default for V1Beta1Integrations {
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
    _namespace_selector: Option<ConfiguredSelector>,
    #[serde(rename = "podSelector")]
    _pod_selector: Option<ConfiguredSelector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct V1Beta1FairSharing {
    enable: bool,
    preemption_strategies: Vec<PreemptionStrategy>,
}

impl From<V1Beta1File> for Configuration {
    fn from(old: V1Beta1File) -> Self {
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
            // Younger than v1beta1.
            local_queue_defaulting_namespace_selector: None,
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
            // Read from the file itself, whatever its version.
            set: std::collections::BTreeSet::new(),
        }
    }
}

/// A disabled block is an absent block. The defaults of v1beta1 are a shorter timeout and blocked admission.
fn wait(old: V1Beta1WaitForPodsReady) -> Option<WaitForPodsReady> {
    old.enable.then(|| WaitForPodsReady {
        timeout: old.timeout.unwrap_or(GoDuration::from_secs(5 * 60)),
        recovery_timeout: old.recovery_timeout,
        block_admission: old.block_admission.unwrap_or(true),
        requeuing_strategy: old.requeuing_strategy,
        max_timeout_on_workload: None,
    })
}

/// Without a list, both strategies are used.
fn fair_sharing(old: V1Beta1FairSharing) -> Option<FairSharingSettings> {
    use PreemptionStrategy::{LessThanInitialShare, LessThanOrEqualToFinalShare};
    let mut preemption_strategies = old.preemption_strategies;
    if preemption_strategies.is_empty() {
        preemption_strategies = vec![LessThanOrEqualToFinalShare, LessThanInitialShare];
    }
    old.enable.then_some(FairSharingSettings { preemption_strategies })
}
