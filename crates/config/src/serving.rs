//! The blocks about servers, probes, certificates and leader election.

use serde::Deserialize;

use super::duration::GoDuration;
use super::selector::ConfiguredSelector;

/// The webhook server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Webhook {
    /// The address; empty for all.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The directory of `tls.crt` and `tls.key`.
    pub cert_dir: String,
}

impl Default for Webhook {
    fn default() -> Self {
        Self {
            host: String::new(),
            port: 9443,
            cert_dir: "/tmp/k8s-webhook-server/serving-certs".to_owned(),
        }
    }
}

/// Leader election among replicas.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElection {
    /// Whether leader election is enabled.
    pub leader_elect: bool,
    /// The name of the Lease.
    pub resource_name: String,
    /// The namespace of the Lease; Kueue's own if empty.
    pub resource_namespace: String,
    /// The kind of the lock.
    pub resource_lock: String,
    /// The lease duration.
    pub lease_duration: GoDuration,
    /// The renew deadline.
    pub renew_deadline: GoDuration,
    /// The retry period.
    pub retry_period: GoDuration,
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            leader_elect: true,
            resource_name: "c1f6bfd2.kueue.x-k8s.io".to_owned(),
            resource_namespace: String::new(),
            resource_lock: "leases".to_owned(),
            lease_duration: GoDuration::from_secs(15),
            renew_deadline: GoDuration::from_secs(10),
            retry_period: GoDuration::from_secs(2),
        }
    }
}

/// The metrics server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Metrics {
    /// The bind address.
    pub bind_address: String,
    /// Whether metrics of ClusterQueue resources are enabled.
    pub enable_cluster_queue_resources: bool,
    /// Labels from objects.
    pub custom_labels: Vec<CustomLabel>,
    /// Metrics of LocalQueues.
    pub local_queue_metrics: LocalQueueMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            bind_address: ":8443".to_owned(),
            enable_cluster_queue_resources: false,
            custom_labels: Vec::new(),
            local_queue_metrics: LocalQueueMetrics::default(),
        }
    }
}

/// A metric label from an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomLabel {
    /// The metric label, without `custom_`.
    pub name: String,
    /// The label of the object.
    pub source_label_key: Option<String>,
    /// The annotation of the object, instead of a label.
    pub source_annotation_key: Option<String>,
    /// The kind of the object.
    #[serde(default)]
    pub source_kind: SourceKind,
    /// The values that series have; other values are one and the same. Empty for any value, except for Workloads.
    #[serde(default)]
    pub tracked_values: Vec<String>,
}

/// The kind of object of a metric label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum SourceKind {
    /// A ClusterQueue.
    #[default]
    ClusterQueue,
    /// A LocalQueue.
    LocalQueue,
    /// A Cohort.
    Cohort,
    /// A Workload.
    Workload,
}

/// Metrics of LocalQueues.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LocalQueueMetrics {
    /// Whether they are enabled.
    pub enable: bool,
    /// Selects LocalQueues; all if absent.
    pub local_queue_selector: Option<ConfiguredSelector>,
}

impl Default for LocalQueueMetrics {
    fn default() -> Self {
        Self { enable: true, local_queue_selector: None }
    }
}

/// The probe server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Health {
    /// The bind address.
    pub health_probe_bind_address: String,
    /// The readiness path, without the slash.
    pub readiness_endpoint_name: String,
    /// The liveness path, without the slash.
    pub liveness_endpoint_name: String,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            health_probe_bind_address: ":8081".to_owned(),
            readiness_endpoint_name: "readyz".to_owned(),
            liveness_endpoint_name: "healthz".to_owned(),
        }
    }
}

/// TLS settings of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Tls {
    /// `VersionTLS12` or `VersionTLS13`.
    pub min_version: Option<String>,
    /// Cipher suites, for TLS 1.2 only.
    pub cipher_suites: Vec<String>,
    /// Curves, by Go's numbers.
    pub curve_preferences: Vec<i32>,
}

/// Certificates of the webhook server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CertManagement {
    /// Whether the manager creates them; otherwise they are mounted.
    pub enable: bool,
    /// The Service of the webhooks.
    pub webhook_service_name: String,
    /// The Secret of the certificates.
    pub webhook_secret_name: String,
}

impl Default for CertManagement {
    fn default() -> Self {
        Self {
            enable: true,
            webhook_service_name: "kueue-webhook-service".to_owned(),
            webhook_secret_name: "kueue-webhook-server-cert".to_owned(),
        }
    }
}

/// The visibility server (aggregated API).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VisibilityServer {
    /// The address; empty for all.
    pub bind_address: String,
    /// The port.
    pub bind_port: u16,
}

impl Default for VisibilityServer {
    fn default() -> Self {
        Self { bind_address: String::new(), bind_port: 8082 }
    }
}
