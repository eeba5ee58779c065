//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use crds::worker_drain::DrainWindow;

use crate::{drain::window_argument, output::OutputFormat};

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
    /// Print the logs of a Workload's pods, wherever they run.
    Logs(LogsArgs),
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

impl CliCommand {
    /// Whether the command changes objects.
    #[must_use]
    pub fn changes(&self) -> bool {
        match self {
            Self::Clusters(_)
            | Self::Explain(_)
            | Self::Logs(_)
            | Self::Top(_)
            | Self::Completion { .. } => false,
            Self::Leave(_)
            | Self::Cordon(_)
            | Self::Uncordon(_)
            | Self::Drain(_)
            | Self::Fence(_) => true,
            Self::Join(join) => !join.dry_run,
            Self::Dr(RecoveryCommand::Rebuild(rebuild)) => !rebuild.dry_run,
        }
    }
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

/// Logs.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Name of a Workload or a job, or KIND/NAME.
    pub name: String,
    /// Namespace; that of the context if absent.
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Read on as logs grow.
    #[arg(short, long)]
    pub follow: bool,
    /// The pod; the head or the one with the lowest index if absent.
    #[arg(long, conflicts_with = "all_pods")]
    pub pod: Option<String>,
    /// All pods; each line begins with the name of its pod.
    #[arg(long)]
    pub all_pods: bool,
    /// The container; the first one if absent.
    #[arg(short, long, conflicts_with = "all_containers")]
    pub container: Option<String>,
    /// All containers; each line begins with the names of its pod and container.
    #[arg(long)]
    pub all_containers: bool,
    /// Only so many of the last lines.
    #[arg(long, value_name = "LINES")]
    pub tail: Option<u64>,
    /// Only lines that are younger, such as 90s or 1h.
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub since: Option<u64>,
    /// The log before the last start of the container.
    #[arg(short, long, conflicts_with = "follow")]
    pub previous: bool,
    /// Begin each line with its time.
    #[arg(long)]
    pub timestamps: bool,
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
    /// Drain from a time until another one, as FROM/UNTIL (2026-12-01T22:00:00Z/2026-12-02T04:00:00Z); one of both may be missing.
    /// A deadline that is a duration counts from the beginning.
    #[arg(long, value_parser = window_argument)]
    pub window: Option<DrainWindow>,
    /// Wait until no work is there.
    #[arg(long, conflicts_with = "window")]
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
    /// File with the kinds of jobs that an administrator declares.
    #[arg(long)]
    pub job_kinds: Option<PathBuf>,
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
    /// Give the manager no right to read pods and their logs.
    #[arg(long)]
    pub no_logs: bool,
    /// The registration of this name changes to another cluster: work that is recorded there is not followed any more.
    #[arg(long)]
    pub replace_cluster: bool,
    /// Take over the account that another manager cluster has made: that one is lost.
    #[arg(long)]
    pub take_over: bool,
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

/// A duration in whole seconds, rounded up.
fn seconds(text: &str) -> Result<u64, String> {
    let duration = duration(text)?;
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    if seconds == 0 { Err("not longer than 0s".to_owned()) } else { Ok(seconds) }
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
            "sluicectl drain east --window tonight",
            "sluicectl drain east --wait --window 2026-12-01T22:00:00Z/",
            "sluicectl top -o xml",
            "sluicectl logs train --pod a --all-pods",
            "sluicectl logs train -c a --all-containers",
            "sluicectl logs train -f --previous",
            "sluicectl logs train --since 0s",
            "sluicectl logs train --tail -1",
            "sluicectl logs",
        ] {
            assert!(CliArgs::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
        assert!(
            CliArgs::try_parse_from("sluicectl join east --permanent-token".split(' ')).is_ok()
        );
    }
}
