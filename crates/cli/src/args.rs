//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::output::OutputFormat;

/// The namespace of manager and agent.
const NAMESPACE: &str = "kueue-system";

/// Workers, queues and Workloads of a Sluice installation.
#[derive(Debug, Parser)]
#[command(name = "sluicectl", version, after_help = EXIT_CODES)]
pub struct CliArgs {
    /// Kubeconfig of the manager cluster; that of kubectl if absent.
    #[arg(long, global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the manager cluster.
    #[arg(long, global = true)]
    pub context: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: CliCommand,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not reached in time (what was changed stays), 4 refused \
    before anything was changed.";

/// A command.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// List the workers: connection, reported room, work, drain.
    Clusters(OutputArgs),
    /// Explain where a Workload is, or why it is pending.
    Explain(ExplainArgs),
    /// List the ClusterQueues: Workloads, usage and quota by flavor.
    Top(OutputArgs),
    /// Register a worker.
    Join(Box<JoinArgs>),
    /// End a registration that join made.
    Leave(LeaveArgs),
    /// Send no new work to a worker.
    Cordon(ClusterArgs),
    /// Send work to a worker again.
    Uncordon(ClusterArgs),
    /// Send no new work to a worker, and withdraw running work at a deadline.
    Drain(DrainArgs),
    /// Confirm that nothing runs on a lost worker: its work under ExactlyOnce starts elsewhere.
    Fence(FenceArgs),
    /// Recover from the loss of the manager cluster.
    #[command(subcommand)]
    Dr(RecoveryCommand),
    /// Print a completion script for a shell.
    Completion {
        /// The shell.
        shell: Shell,
    },
}

/// How to print.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Format.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// A Workload.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Name of a Workload or a job, or KIND/NAME.
    pub name: String,
    /// Namespace; that of the context if absent.
    #[arg(short, long)]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A worker.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Name of the MultiKueueCluster.
    pub cluster: String,
}

/// A drain.
#[derive(Debug, Args)]
pub struct DrainArgs {
    /// Name of the MultiKueueCluster.
    pub cluster: String,
    /// When running work is withdrawn and starts elsewhere: a duration from now (30m) or a time (2026-12-01T00:00:00Z). Without
    /// it, running work ends by itself.
    #[arg(long)]
    pub deadline: Option<String>,
    /// Wait until no work is there.
    #[arg(long)]
    pub wait: bool,
    /// How long to wait.
    #[arg(long, default_value = "1h", value_parser = duration)]
    pub timeout: Duration,
}

/// A confirmation.
#[derive(Debug, Args)]
pub struct FenceArgs {
    /// Name of the MultiKueueCluster.
    pub cluster: String,
    /// None of its pods runs, and none will: what still runs would run twice.
    #[arg(long)]
    pub yes: bool,
}

/// A recovery.
#[derive(Debug, Subcommand)]
pub enum RecoveryCommand {
    /// Make jobs and Workloads again from their copies on the workers.
    Rebuild(RebuildArgs),
}

/// A rebuild.
#[derive(Debug, Args)]
pub struct RebuildArgs {
    /// Print the plan, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The former manager cluster is gone: two managers would write to the same copies.
    #[arg(long)]
    pub yes: bool,
    /// Origin of the copies; that of the manager's configuration if absent.
    #[arg(long)]
    pub origin: Option<String>,
    /// A worker; all registered ones if absent. Can be repeated.
    #[arg(long = "cluster", value_name = "NAME")]
    pub clusters: Vec<String>,
    /// Namespace of the manager.
    #[arg(long, default_value = NAMESPACE)]
    pub manager_namespace: String,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How the worker is reached by this command.
#[derive(Debug, Args)]
pub struct WorkerAccessArgs {
    /// Kubeconfig of the worker; that of the manager cluster if absent.
    #[arg(long)]
    pub worker_kubeconfig: Option<PathBuf>,
    /// Context of the worker; the current one of its own kubeconfig if absent.
    #[arg(long)]
    pub worker_context: Option<String>,
    /// Namespace of the manager.
    #[arg(long, default_value = NAMESPACE)]
    pub manager_namespace: String,
}

/// A registration.
#[derive(Debug, Args)]
pub struct JoinArgs {
    /// Name of the worker: of its MultiKueueCluster and its Secret.
    pub name: String,
    #[command(flatten)]
    pub(crate) worker: WorkerAccessArgs,
    /// Namespace of the manager's account on the worker.
    #[arg(long, default_value = NAMESPACE)]
    pub worker_namespace: String,
    /// The manager's account on the worker; its roles have the same name.
    #[arg(long, default_value = "sluice-hub")]
    pub service_account: String,
    /// Address by which the manager reaches the worker; that of the worker's kubeconfig if absent.
    #[arg(long)]
    pub server: Option<String>,
    /// File with the certificate authority of that address; that of the worker's kubeconfig if absent.
    #[arg(long)]
    pub certificate_authority: Option<PathBuf>,
    /// Accept a loopback address: manager and worker run on this machine.
    #[arg(long)]
    pub allow_loopback: bool,
    /// Lifetime of the token; the worker may shorten it.
    #[arg(long, default_value = "720h", value_parser = duration, conflicts_with = "permanent_token")]
    pub token_duration: Duration,
    /// A token without an expiry, in a Secret on the worker.
    #[arg(long)]
    pub permanent_token: bool,
    /// File with the kinds of jobs that an administrator declares.
    #[arg(long)]
    pub job_kinds: Option<PathBuf>,
    /// MultiKueueConfig that gets the worker; it is made if it does not exist.
    #[arg(long)]
    pub config: Option<String>,
    /// Print the manifests and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not wait until the manager is connected.
    #[arg(long)]
    pub no_wait: bool,
    /// How long to wait.
    #[arg(long, default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
}

/// The end of a registration.
#[derive(Debug, Args)]
pub struct LeaveArgs {
    /// Name of the MultiKueueCluster.
    pub name: String,
    #[command(flatten)]
    pub(crate) worker: WorkerAccessArgs,
    /// Leave what join made on the worker there.
    #[arg(long)]
    pub hub_only: bool,
    /// Drain the worker first, and wait until no work is there.
    #[arg(long)]
    pub drain: bool,
    /// With --drain: when running work is withdrawn.
    #[arg(long, requires = "drain")]
    pub deadline: Option<String>,
    /// Leave work and its copies behind: it starts elsewhere after `workerLostTimeout`.
    #[arg(long, conflicts_with = "drain")]
    pub force: bool,
    /// How long to wait for the end of work, and of its copies.
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub timeout: Duration,
}

fn duration(text: &str) -> Result<Duration, String> {
    crds::go_duration::parse(text).ok_or_else(|| "not a duration such as 90s or 1h30m".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CliArgs::command().debug_assert();
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for line in [
            "sluicectl leave east --force --drain",
            "sluicectl leave east --deadline 5m",
            "sluicectl join east --token-duration 1h --permanent-token",
            "sluicectl drain east --timeout soon",
            "sluicectl top -o xml",
        ] {
            assert!(CliArgs::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
        assert!(
            CliArgs::try_parse_from("sluicectl join east --permanent-token".split(' ')).is_ok()
        );
    }
}
