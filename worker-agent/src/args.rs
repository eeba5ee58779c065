//! Command-line flags.

use std::{net::SocketAddr, path::PathBuf};

use clap::{
    Parser,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use cluster::control::AdmissionMode;
use ray::settings::RayGates;

use crate::operators::OperatorMode;

/// Runs the Jobs that managers dispatch to this worker cluster, and reports its free capacity.
#[derive(Debug, Parser)]
#[command(name = "sluice-agent", version)]
pub(crate) struct AgentArgs {
    /// Configuration file, config.sluice.dev/v1alpha1 AgentConfiguration; defaults apply without it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Definitions of further kinds of jobs, as YAML documents (docs/kinds.md). The manager needs the same.
    #[arg(long, value_name = "FILE")]
    pub(crate) job_kinds: Option<PathBuf>,

    /// Kubeconfig of the cluster; without it KUBECONFIG or the service account is used.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// How dispatched Workloads are admitted.
    #[arg(long, value_parser = admission_modes(), default_value = "thin")]
    pub(crate) admission: AdmissionMode,

    /// Whether the agent operates RayClusters, RayJobs, RayServices, RayCronJobs and AppWrappers itself.
    #[arg(long, value_enum, default_value = "off")]
    pub(crate) operators: OperatorMode,

    /// HTTP proxy to Ray heads, as host:port; without it their Services are asked directly.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) ray_head_proxy: Option<String>,

    /// Feature gates of the operators of Ray, such as RayClusterNetworkPolicy=true,RayCronJob=false (docs/reference/ray.md §1);
    /// those of KubeRay.
    #[arg(long, value_name = "GATES")]
    pub(crate) ray_feature_gates: Option<RayGates>,

    /// Configuration file of KubeRay's operator, config.ray.io/v1alpha1 Configuration (docs/operators.md). Its environment
    /// variables count as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) ray_config: Option<PathBuf>,

    /// Configuration file of AppWrapper's operator, that of its ConfigMap appwrapper-operator-config (docs/operators.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) appwrapper_config: Option<PathBuf>,

    /// How RayClusters are secured, in the form of CodeFlare's configuration (docs/reference/ray.md §14); not at all unless set.
    /// The manager needs the same.
    #[arg(long, value_name = "FILE")]
    pub(crate) ray_security: Option<PathBuf>,

    /// Bind address of liveness and readiness probes.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8081")]
    pub(crate) health_probe_bind_address: SocketAddr,

    /// Bind address of metrics over plain HTTP; disabled unless set.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics_bind_address: Option<SocketAddr>,

    /// error, warn, info, debug, trace, or a list of target=level.
    #[arg(long, default_value = "info", env = "SLUICE_LOG")]
    pub(crate) log_level: String,

    /// Format of log lines.
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    pub(crate) log_format: String,
}

/// The modes of admission by their names.
fn admission_modes() -> impl TypedValueParser<Value = AdmissionMode> {
    let names = [
        PossibleValue::new("thin").help("By the free capacity of nodes"),
        PossibleValue::new("quota")
            .help("By the ClusterQueues of the worker, and the free capacity of nodes"),
    ];
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        "quota" => AdmissionMode::Quota,
        _ => AdmissionMode::Thin,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_of_ray_are_read_or_refused() {
        let parse =
            |gates: &str| AgentArgs::try_parse_from(["sluice-agent", "--ray-feature-gates", gates]);
        let gates = parse("RayClusterNetworkPolicy=true").expect("flags").ray_feature_gates;
        assert!(gates.expect("gates").network_policy);
        let error = parse("Nope=true").expect_err("refused").to_string();
        assert!(error.contains("unknown feature gate \"Nope\""), "{error}");
    }
}
