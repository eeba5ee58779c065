//! Command-line flags. Flags of Kueue keep their names and meaning (docs/reference/kueue.md §6.4).

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Parser};
use config::{
    GoDuration,
    support::{IneffectiveSetting, ineffective_flag},
};
use remote::KUBECONFIG_DIRECTORY;
use runtime::telemetry::LogFormat;

use crate::components::{self, ManagerComponent};

/// The beginning of the names of Kueue's objects in the manifests.
pub(crate) const NAME_PREFIX: &str = "kueue";

/// Queues Jobs with Kueue's API and dispatches them to worker clusters.
#[derive(Debug, Parser)]
#[command(name = "sluice-manager", version)]
pub(crate) struct ManagerArgs {
    /// Configuration file, config.kueue.x-k8s.io v1beta1 or v1beta2; defaults apply without it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Definitions of further kinds of jobs, as YAML documents (docs/kinds.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) job_kinds: Option<PathBuf>,

    /// How RayClusters are secured, in the form of CodeFlare's configuration (docs/reference/ray.md §14); not at all unless set.
    /// Agents need the same.
    #[arg(long, value_name = "FILE")]
    pub(crate) ray_security: Option<PathBuf>,

    /// Kubeconfig of the cluster; without it KUBECONFIG or the service account is used.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Directory of the files that MultiKueueClusters with locationType Path may name.
    #[arg(long, value_name = "DIRECTORY", default_value = KUBECONFIG_DIRECTORY)]
    pub(crate) worker_kubeconfig_directory: PathBuf,

    /// Feature gates as Name=true,Name=false; not together with featureGates in the file.
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    pub(crate) feature_gates: String,

    /// Components to run.
    #[arg(long, value_delimiter = ',', value_enum, default_value = components::DEFAULT)]
    pub(crate) components: Vec<ManagerComponent>,

    /// How the names of its webhook configurations and of the Service of the visibility API begin, as Helm names them.
    #[arg(long, value_name = "PREFIX", default_value = NAME_PREFIX)]
    pub(crate) name_prefix: String,

    /// Serve metrics over plain HTTP without authorization, instead of HTTPS with it.
    #[arg(long)]
    pub(crate) metrics_plain: bool,

    /// Authenticate and authorize requests for metrics by reviews of the API server. Without, metrics.bindAddress has to be a
    /// loopback IP and a port.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) metrics_authentication: bool,

    /// How long webhooks, visibility, Ray API and metrics are served after SIGTERM, while /readyz fails and another replica
    /// leads. A second signal ends it.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) shutdown_delay_duration: Duration,

    /// The least time between two writes of the status of one queue or Cohort; the first change is written at once.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub(crate) queue_status_period: Duration,

    #[command(flatten)]
    pub(crate) ray_api: RayApiArgs,

    #[command(flatten)]
    pub(crate) logs: LogArgs,
}

/// Flags of the component `ray-api`.
#[derive(Debug, clap::Args)]
pub(crate) struct RayApiArgs {
    /// Where the component ray-api serves the API of Ray clusters, over HTTPS.
    #[arg(long, value_name = "ADDRESS", default_value = ":8888")]
    pub(crate) ray_api_bind_address: String,

    /// Directory with tls.crt and tls.key of that server; without it the manager creates a certificate.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) ray_api_cert_dir: Option<PathBuf>,
}

impl ManagerArgs {
    /// Refuses to serve metrics without authentication where other pods and hosts reach them.
    ///
    /// # Errors
    /// If the address is no loopback IP with a port, and is not disabled.
    pub(crate) fn check_metrics_address(&self, address: &str) -> anyhow::Result<()> {
        if self.metrics_authentication || self.metrics_plain || address == "0" {
            return Ok(());
        }
        let parsed: SocketAddr = address.parse().map_err(|error| {
            anyhow::anyhow!(
                "--metrics-authentication=false requires metrics.bindAddress to be an explicit loopback IP and port (for example 127.0.0.1:8443 or [::1]:8443), got {address:?}: {error}"
            )
        })?;
        anyhow::ensure!(
            parsed.ip().to_canonical().is_loopback(),
            "--metrics-authentication=false requires a loopback metrics.bindAddress (for example 127.0.0.1:8443 or [::1]:8443), got {address:?}; use --metrics-authentication=true for other addresses"
        );
        Ok(())
    }

    /// Flags that are given and have no effect.
    pub(crate) fn ineffective_flags(&self) -> Vec<IneffectiveSetting> {
        let logs = &self.logs;
        let given = [
            ("zap-devel", &logs.zap_devel),
            ("zap-stacktrace-level", &logs.zap_stacktrace_level),
            ("zap-time-encoding", &logs.zap_time_encoding),
        ];
        given
            .into_iter()
            .filter(|(_, value)| value.is_some())
            .filter_map(|one| ineffective_flag(one.0))
            .collect()
    }
}

/// Flags of logging.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// error, warn, info, debug, trace, one of Kueue's numbers, or a list of target=level.
    #[arg(long, alias = "zap-log-level", default_value = "info", env = "SLUICE_LOG")]
    log_level: String,

    /// text (also: console) or json.
    #[arg(long, alias = "zap-encoder", default_value = "text", value_parser = ["text", "console", "json"])]
    log_format: String,

    /// Accepted for Kueue's manifests, without effect.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    zap_devel: Option<String>,

    /// Accepted for Kueue's manifests, without effect.
    #[arg(long, hide = true)]
    zap_stacktrace_level: Option<String>,

    /// Accepted for Kueue's manifests, without effect.
    #[arg(long, hide = true)]
    zap_time_encoding: Option<String>,
}

impl LogArgs {
    /// The format of log lines.
    pub(crate) fn format(&self) -> LogFormat {
        match self.log_format.as_str() {
            "json" => LogFormat::Json,
            // `console` is the name of text in Kueue's flag; clap has refused all other values.
            _ => LogFormat::Text,
        }
    }

    /// The log filter. Kueue's number 1 is debug; numbers above 4 are trace.
    pub(crate) fn filter(&self) -> anyhow::Result<String> {
        let Ok(number) = self.log_level.parse::<u32>() else {
            return Ok(match self.log_level.as_str() {
                // A level of Kueue's flag that the filter does not have; `error` is the nearest.
                "panic" => "error".to_owned(),
                level => level.to_owned(),
            });
        };
        anyhow::ensure!(number > 0, "a numeric --log-level begins at 1");
        Ok(if number > 4 { "trace" } else { "debug" }.to_owned())
    }
}

/// A duration as Kubernetes' flags take it.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed = GoDuration::parse(text).and_then(GoDuration::positive);
    parsed.ok_or_else(|| format!("{text:?} is no duration such as 5s"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use config::support::{SettingKind, rows};

    use super::*;

    fn parse(args: &[&str]) -> Result<ManagerArgs, clap::Error> {
        ManagerArgs::try_parse_from([&["sluice-manager"], args].concat())
    }

    #[test]
    fn flags_of_kueue_are_accepted() {
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
        assert_eq!(args.components.len(), 6, "everything runs unless something is named");
    }

    #[test]
    fn the_delay_of_the_stop_is_a_duration() {
        let delay = |flag: &str| parse(&[flag]).ok().map(|args| args.shutdown_delay_duration);
        assert_eq!(delay("--metrics-plain"), Some(Duration::ZERO));
        let table = [("5s", Some(5_000)), ("1m500ms", Some(60_500)), ("5", None), ("-5s", None)];
        for (text, millis) in table {
            let flag = format!("--shutdown-delay-duration={text}");
            assert_eq!(delay(&flag), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn the_default_period_of_queue_status_is_that_of_an_agent() {
        let period = |args| parse(args).expect("flags").queue_status_period;
        assert_eq!(period(&[]), cluster::control::QUEUE_STATUS_PERIOD);
        assert_eq!(period(&["--queue-status-period=1m"]), Duration::from_secs(60));
    }

    #[test]
    fn every_flag_of_kueue_has_a_row_and_every_row_a_flag() {
        let command = ManagerArgs::command();
        let names = |one: &clap::Arg| -> Vec<String> {
            let aliases = one.get_all_aliases().unwrap_or_default();
            one.get_long().into_iter().chain(aliases).map(str::to_owned).collect()
        };
        let known: Vec<String> = command.get_arguments().flat_map(names).collect();
        for row in rows().filter(|row| row.kind == SettingKind::Flag) {
            assert!(known.contains(&row.name.to_owned()), "{row:?}");
        }
        let zap = known.iter().filter(|name| name.starts_with("zap-"));
        let others = ["config", "feature-gates", "kubeconfig", "metrics-authentication"];
        for name in zap.chain(&others.map(str::to_owned)) {
            let mut all = rows().filter(|row| row.kind == SettingKind::Flag);
            assert!(all.any(|row| row.name == *name), "{name}");
        }
    }

    #[test]
    fn flags_without_effect_are_named_when_they_are_given() {
        let ineffective = |args: &[&str]| -> Vec<String> {
            let ineffective = parse(args).expect("flags").ineffective_flags();
            ineffective.into_iter().map(|one| one.name).collect()
        };
        assert_eq!(ineffective(&["--zap-log-level=3"]), [""; 0]);
        let given = ["--zap-devel", "--zap-time-encoding=iso8601", "--zap-stacktrace-level=error"];
        assert_eq!(
            ineffective(&given),
            ["--zap-devel", "--zap-stacktrace-level", "--zap-time-encoding"]
        );
    }

    #[test]
    fn metrics_without_authentication_are_served_on_loopback_alone() {
        let check = |args: &[&str], address| {
            let args = parse(args).expect("flags");
            args.check_metrics_address(address).map_err(|error| error.to_string())
        };
        let off = ["--metrics-authentication=false"];
        for address in
            ["127.0.0.1:8443", "127.23.45.67:1", "[::1]:8443", "[::ffff:127.0.0.1]:0", "0"]
        {
            assert_eq!(check(&off, address), Ok(()), "{address}");
        }
        for address in [":8443", "localhost:8443", "127.0.0.1", "127.0.0.1:65536", "::1:8443", ""] {
            let error = check(&off, address).expect_err(address);
            assert!(error.contains("to be an explicit loopback IP and port"), "{error}");
        }
        for address in ["0.0.0.0:8443", "[::]:8443", "192.0.2.1:8443", "[::ffff:192.0.2.1]:1"] {
            let error = check(&off, address).expect_err(address);
            assert!(error.contains("requires a loopback metrics.bindAddress"), "{error}");
        }
        for args in [&[][..], &["--metrics-authentication"], &["--metrics-authentication=true"]] {
            assert_eq!(check(args, ":8443"), Ok(()), "{args:?}");
        }
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
