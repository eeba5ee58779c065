//! `sluice-bench`: what Sluice costs on the lab: latency, rates, writes, CPU and memory.
//!
//! * [`dispatch`]: Jobs over workers. Writes are counted twice: by the metrics of the programs and by the audit logs.
//! * [`balance`]: scenarios of GPU jobs over three unequal workers: makespan and mean wait.
//! * [`cluster`]: raw Workloads and Jobs under the quotas of one cluster.
//! * [`pods`]: plain pods and groups of pods in one cluster.
//! * [`faults`]: two managers under load, with faults.
//! * [`operators`]: RayClusters that the agent operates.
//! * [`fleet`]: hundreds of workers that are doubles: rates of status, memory, reconnection.
//! * [`matrix`]: each part fails in each phase of a dispatched Job.
//!
//! Times are those of watch events in this process, not timestamps of objects. The results are tables and JSON files with a key
//! per figure; a missed target is marked. Targets are in docs/reference/performance.md.
#![expect(clippy::print_stdout, reason = "a command line tool's output")]

mod balance;
mod cluster;
mod counters;
mod dispatch;
mod environment;
mod faults;
mod figures;
mod fleet;
mod matrix;
mod operators;
mod pods;
mod quantiles;
mod sample_job;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use e2e::usage;

/// Rates, latency, writes, CPU and memory on the lab.
#[derive(Parser)]
#[command(name = "sluice-bench", version)]
struct BenchCli {
    #[command(subcommand)]
    part: BenchPart,
}

#[derive(Subcommand)]
enum BenchPart {
    /// Jobs over workers: bursts, single Jobs, failover.
    Dispatch(dispatch::DispatchOptions),
    /// GPU jobs over three unequal workers.
    Balance(balance::BalanceOptions),
    /// Raw Workloads and Jobs in one cluster.
    Cluster(cluster::ClusterOptions),
    /// Plain pods and groups of pods in one cluster.
    Pods(pods::PlainPodOptions),
    /// Two managers under load, with faults.
    Faults(faults::FaultOptions),
    /// RayClusters that the agent operates.
    Operators(operators::OperatorOptions),
    /// Hundreds of workers that are doubles.
    Fleet(fleet::FleetOptions),
    /// Each part fails in each phase of a dispatched Job.
    Matrix(matrix::MatrixOptions),
}

/// Where the measured programs and the results are.
#[derive(Args)]
pub(crate) struct BenchFiles {
    /// The folder of the measured manager and agent; by default that of this program.
    #[arg(long)]
    programs: Option<PathBuf>,
    /// The folder of the results.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
}

impl BenchFiles {
    /// The folder of the measured programs, if not that of this program.
    pub(crate) fn programs(&self) -> Option<&Path> {
        self.programs.as_deref()
    }

    /// The file of results of this name.
    pub(crate) fn results(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }

    /// The measured build: the name of the given folder, or this program's profile.
    pub(crate) fn profile(&self) -> String {
        let given = self.programs.as_ref().and_then(|folder| folder.file_name());
        let own = if cfg!(debug_assertions) { "dev" } else { "release" };
        given.map_or_else(|| own.to_owned(), |name| name.to_string_lossy().into_owned())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(BenchCli::parse().part).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sluice-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(part: BenchPart) -> Result<()> {
    match part {
        BenchPart::Dispatch(options) => dispatch::run(&options).await,
        BenchPart::Balance(options) => balance::run(&options).await,
        BenchPart::Cluster(options) => cluster::run(&options).await,
        BenchPart::Pods(options) => pods::run(&options).await,
        BenchPart::Faults(options) => faults::run(&options).await,
        BenchPart::Operators(options) => operators::run(&options).await,
        BenchPart::Fleet(options) => fleet::run(&options).await,
        BenchPart::Matrix(options) => matrix::run(&options).await,
    }
}
