//! Flags.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, ValueEnum};

/// Runs on a worker cluster what its managers give it, and tells them what it can take.
#[derive(Debug, Parser)]
#[command(name = "sluice-agent", version)]
pub(crate) struct Args {
    /// Configuration file, config.sluice.dev/v1alpha1 AgentConfiguration; defaults apply without it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Kubeconfig of the cluster; without it the service account is used, or what KUBECONFIG names.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// How clones are admitted.
    #[arg(long, value_enum, default_value = "thin")]
    pub(crate) admission: Admission,

    /// Where liveness and readiness are told.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8081")]
    pub(crate) health_probe_bind_address: SocketAddr,

    /// Where metrics are served over plain HTTP; nowhere unless set.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics_bind_address: Option<SocketAddr>,

    /// error, warn, info, debug, trace, or a list of target=level.
    #[arg(long, default_value = "info", env = "SLUICE_LOG")]
    pub(crate) log_level: String,

    /// How lines of the log look.
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    pub(crate) log_format: String,
}

/// How clones are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Admission {
    /// By the room on the nodes.
    Thin,
    /// By ClusterQueues of the worker's own.
    Quota,
}
