//! What the process needs to know, taken from flags and the configuration file (spec/kueue-core.md §6.4).

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Context;
use cluster::webhooks::Rules;
use runtime::tls::MinVersion;
use serde::Deserialize;

use crate::{args::Args, certificates::Source};

const SERVICE_ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Settings of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The namespace of the process and of its Secrets.
    pub(crate) namespace: String,
    /// The host that webhooks are served on; empty for all.
    pub(crate) webhook_host: String,
    /// The port that webhooks are served on.
    pub(crate) webhook_port: u16,
    /// Where their certificate comes from.
    pub(crate) certificates: Source,
    /// The lowest version of TLS.
    pub(crate) min_tls: MinVersion,
    /// Where metrics are served.
    pub(crate) metrics_address: String,
    /// Where and how health is served.
    pub(crate) health: Health,
    /// What webhooks look at.
    pub(crate) rules: Rules,
}

/// Where and how health is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) address: String,
    pub(crate) liveness: String,
    pub(crate) readiness: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    namespace: Option<String>,
    webhook: Webhook,
    metrics: Metrics,
    health: HealthFile,
    internal_cert_management: InternalCertManagement,
    tls: Tls,
    feature_gates: BTreeMap<String, bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Webhook {
    host: String,
    port: Option<u16>,
    cert_dir: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metrics {
    bind_address: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HealthFile {
    health_probe_bind_address: Option<String>,
    readiness_endpoint_name: Option<String>,
    liveness_endpoint_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InternalCertManagement {
    enable: Option<bool>,
    webhook_service_name: Option<String>,
    webhook_secret_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tls {
    min_version: Option<String>,
}

impl Settings {
    /// Reads what the flags name.
    ///
    /// # Errors
    /// If the file cannot be read, or says something that cannot be done.
    pub(crate) fn load(args: &Args) -> anyhow::Result<Self> {
        let file = match &args.config {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?
            }
            None => File::default(),
        };
        let mut settings = Self::from_file(file)?;
        for gate in args.feature_gates.iter().flat_map(|gates| gates.split(',')) {
            let (name, value) = gate.split_once('=').with_context(|| format!("{gate:?}"))?;
            set(&mut settings.rules, name, value.parse()?);
        }
        Ok(settings)
    }

    fn from_file(file: File) -> anyhow::Result<Self> {
        let or = |value: Option<String>, default: &str| value.unwrap_or_else(|| default.to_owned());
        let certs = file.internal_cert_management;
        let mut rules = Rules::default();
        for (name, value) in &file.feature_gates {
            set(&mut rules, name, *value);
        }
        Ok(Self {
            namespace: file.namespace.unwrap_or_else(own_namespace),
            webhook_host: file.webhook.host,
            webhook_port: file.webhook.port.unwrap_or(9443),
            certificates: if certs.enable.unwrap_or(true) {
                Source::Own {
                    service: or(certs.webhook_service_name, "kueue-webhook-service"),
                    secret: or(certs.webhook_secret_name, "kueue-webhook-server-cert"),
                }
            } else {
                let default = "/tmp/k8s-webhook-server/serving-certs";
                Source::Directory(file.webhook.cert_dir.unwrap_or_else(|| default.into()))
            },
            min_tls: match file.tls.min_version.as_deref() {
                Some("VersionTLS13") => MinVersion::Tls13,
                None | Some("VersionTLS12") => MinVersion::Tls12,
                Some(other) => anyhow::bail!("tls.minVersion {other:?} is not supported"),
            },
            metrics_address: or(file.metrics.bind_address, ":8443"),
            health: Health {
                address: or(file.health.health_probe_bind_address, ":8081"),
                liveness: or(file.health.liveness_endpoint_name, "healthz"),
                readiness: or(file.health.readiness_endpoint_name, "readyz"),
            },
            rules,
        })
    }
}

fn own_namespace() -> String {
    std::fs::read_to_string(SERVICE_ACCOUNT_NAMESPACE)
        .map(|text| text.trim().to_owned())
        .ok()
        .filter(|namespace| !namespace.is_empty())
        .unwrap_or_else(|| "kueue-system".to_owned())
}

fn set(rules: &mut Rules, gate: &str, value: bool) {
    let rule = match gate {
        "PartialAdmission" => &mut rules.partial_admission,
        "ConcurrentAdmission" => &mut rules.concurrent_admission,
        "PriorityBoost" => &mut rules.priority_boost,
        "AdmissionGatedBy" => &mut rules.admission_gated_by,
        "ElasticJobsViaWorkloadSlices" => &mut rules.elastic_jobs,
        "WorkloadValidateResourcesAreNonNegative" => &mut rules.non_negative_resources,
        "TASValidateWorkloadSliceSize" => &mut rules.slice_size,
        "WorkloadValidationForPodSetMetadata" => &mut rules.pod_set_metadata,
        "TopologyAwareScheduling" => &mut rules.topology_aware_scheduling,
        _ => return,
    };
    *rule = value;
}
