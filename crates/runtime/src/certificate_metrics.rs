//! The expiry of client certificates, by the cluster that they are for.

use jiff::Timestamp;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CertificateLabels {
    cluster: String,
}

/// Expiry of the client certificates of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CertificateMetrics {
    expiry: Family<CertificateLabels, Gauge>,
}

impl CertificateMetrics {
    /// Registers the metric.
    pub fn register(&self, registry: &mut Registry) {
        let help =
            "Time at which the client certificate for a cluster expires, in seconds since 1970";
        registry.register("client_certificate_expiry_timestamp_seconds", help, self.expiry.clone());
    }

    /// Sets the expiry for a cluster. A cluster that is reached without a certificate has no series.
    pub fn set(&self, cluster: &str, expires: Option<Timestamp>) {
        let labels = CertificateLabels { cluster: cluster.to_owned() };
        match expires {
            Some(expires) => {
                self.expiry.get_or_create(&labels).set(expires.as_second());
            }
            None => {
                self.expiry.remove(&labels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn a_cluster_has_a_series_while_it_is_reached_with_a_certificate() {
        let (metrics, mut registry) = (CertificateMetrics::default(), Registry::default());
        metrics.register(&mut registry);
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("metrics");
            text
        };
        metrics.set("east", Some(Timestamp::from_second(1_800_000_000).expect("a time")));
        let series = "client_certificate_expiry_timestamp_seconds{cluster=\"east\"} 1800000000";
        assert!(text().contains(series), "{}", text());
        metrics.set("east", None);
        assert!(!text().contains("east"), "{}", text());
    }
}
