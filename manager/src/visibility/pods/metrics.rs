//! Requests about pods of Workloads, as a metric.

use http::StatusCode;
use leader::HOME;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use visibility::workload_pods::WorkloadPart;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PodsLabels {
    cluster: String,
    part: &'static str,
    code: u16,
}

/// Counts requests. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodsMetrics(Family<PodsLabels, Counter>);

impl PodsMetrics {
    /// Registers `sluice_workload_pod_requests`.
    pub(crate) fn register(&self, sluice: &mut Registry) {
        let help = "Requests for the pods and logs of Workloads by cluster, part and status code";
        sluice.register("workload_pod_requests", help, self.0.clone());
    }

    /// Counts a request about a Workload on a cluster: `None` if no cluster runs it, empty for the manager cluster.
    pub(super) fn count(&self, cluster: Option<&str>, part: WorkloadPart, code: StatusCode) {
        let cluster = match cluster {
            None => "",
            Some("") => HOME,
            Some(name) => name,
        };
        let part = match part {
            WorkloadPart::Pods => "pods",
            WorkloadPart::Log => "log",
        };
        let labels = PodsLabels { cluster: cluster.to_owned(), part, code: code.as_u16() };
        self.0.get_or_create(&labels).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_cluster_part_and_code() {
        let metrics = PodsMetrics::default();
        metrics.count(None, WorkloadPart::Pods, StatusCode::CONFLICT);
        metrics.count(Some(""), WorkloadPart::Log, StatusCode::OK);
        metrics.count(Some("east"), WorkloadPart::Log, StatusCode::GATEWAY_TIMEOUT);
        let mut registry = Registry::default();
        metrics.register(registry.sub_registry_with_prefix("sluice"));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        for series in [
            r#"{cluster="",part="pods",code="409"} 1"#.to_owned(),
            format!(r#"{{cluster="{HOME}",part="log",code="200"}} 1"#),
            r#"{cluster="east",part="log",code="504"} 1"#.to_owned(),
        ] {
            let line = format!("sluice_workload_pod_requests_total{series}");
            assert!(text.contains(&line), "{line} is not in {text}");
        }
    }
}
