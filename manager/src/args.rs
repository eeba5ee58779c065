//! Flags. Those that upstream has keep their names and meaning (docs/reference/kueue.md §6.4).

use std::path::PathBuf;

use clap::{ArgAction, Parser};
use runtime::telemetry::LogFormat;

use crate::components::{self, Component};

/// Queues and dispatches work over clusters, speaking Kueue's API.
#[derive(Debug, Parser)]
#[command(name = "sluice-manager", version)]
pub(crate) struct Args {
    /// Configuration file, config.kueue.x-k8s.io v1beta1 or v1beta2; defaults apply without it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Kubeconfig of the cluster; without it the service account is used, or what KUBECONFIG names.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Feature gates as Name=true,Name=false; not together with featureGates in the file.
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    pub(crate) feature_gates: String,

    /// What to run.
    #[arg(long, value_delimiter = ',', value_enum, default_value = components::DEFAULT)]
    pub(crate) components: Vec<Component>,

    /// Serve metrics over plain HTTP to everybody, instead of HTTPS to those who may read them.
    #[arg(long)]
    pub(crate) metrics_plain: bool,

    #[command(flatten)]
    pub(crate) logs: Logs,
}

/// Flags of the logs.
#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    /// error, warn, info, debug, trace, a number as upstream takes it, or a list of target=level.
    #[arg(long, alias = "zap-log-level", default_value = "info", env = "SLUICE_LOG")]
    log_level: String,

    /// text (also: console) or json.
    #[arg(long, alias = "zap-encoder", default_value = "text", value_parser = ["text", "console", "json"])]
    log_format: String,

    /// Accepted for upstream's manifests, without effect.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    zap_devel: Option<String>,

    /// Accepted for upstream's manifests, without effect.
    #[arg(long, hide = true)]
    zap_stacktrace_level: Option<String>,

    /// Accepted for upstream's manifests, without effect.
    #[arg(long, hide = true)]
    zap_time_encoding: Option<String>,
}

impl Logs {
    /// How lines look.
    pub(crate) fn format(&self) -> LogFormat {
        match self.log_format.as_str() {
            "json" => LogFormat::Json,
            _ => LogFormat::Text,
        }
    }

    /// The filter. Upstream's numbers begin at 1 for debug; what lies above 4 is trace here.
    pub(crate) fn filter(&self) -> anyhow::Result<String> {
        let Ok(number) = self.log_level.parse::<u32>() else {
            return Ok(match self.log_level.as_str() {
                "panic" => "error".to_owned(),
                level => level.to_owned(),
            });
        };
        anyhow::ensure!(number > 0, "a numeric --log-level begins at 1");
        Ok(if number > 4 { "trace" } else { "debug" }.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from([&["sluice-manager"], args].concat())
    }

    #[test]
    fn upstreams_flags_are_understood() {
        let args = parse(&[
            "--config=/c.yaml",
            "--feature-gates=PartialAdmission=false",
            "--zap-log-level=3",
            "--zap-encoder=json",
            "--zap-devel",
        ]);
        let args = args.expect("flags");
        assert_eq!(args.logs.filter().expect("a filter"), "debug");
        assert_eq!(args.logs.format(), LogFormat::Json);
        assert_eq!(args.components.len(), 5, "everything runs unless something is named");
    }

    #[test]
    fn levels_are_names_numbers_or_lists() {
        for (given, filter) in [
            ("info", "info"),
            ("2", "debug"),
            ("9", "trace"),
            ("panic", "error"),
            ("a=debug", "a=debug"),
        ] {
            let args = parse(&["--log-level", given]).expect("flags");
            assert_eq!(args.logs.filter().expect("a filter"), filter, "{given}");
        }
        assert!(parse(&["--log-level=0"]).expect("flags").logs.filter().is_err());
    }

    #[test]
    fn an_unknown_component_is_refused() {
        let error = parse(&["--components=webhooks,kitchen"]).expect_err("no such component");
        assert!(error.to_string().contains("kitchen"), "{error}");
    }
}
