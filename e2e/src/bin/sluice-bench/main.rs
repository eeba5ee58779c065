//! `sluice-bench`: the cost of dispatching Jobs on the lab: latency, writes, CPU and memory.
//!
//! Times are those of watch events in this process, not timestamps of objects. Writes are counted twice in a second lab: by the
//! metrics of the programs and by the audit logs of the API servers. The result is a table and JSON. Targets are in
//! docs/reference/dispatch.md §10 and in the cost budget; a missed target is marked.
#![expect(clippy::print_stdout, reason = "a command line tool's output")]

mod audit;
mod burst;
mod counters;
mod environment;
mod quantiles;
mod report;
mod sequence;
mod timestamps;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use harness::{LabPlan, TestLab};

use burst::Burst;
use environment::BenchEnvironment;
use report::BenchReport;
use sequence::Sequence;

/// Time, writes, CPU and memory of dispatch on the lab.
#[derive(Parser)]
#[command(name = "sluice-bench", version)]
struct BenchCli {
    /// Jobs that are submitted one after the other.
    #[arg(long, default_value_t = 20)]
    sequential: usize,
    /// Jobs that are submitted at once.
    #[arg(long, default_value_t = 200)]
    burst: usize,
    /// The folder of the measured manager and agent; by default that of this program.
    #[arg(long)]
    programs: Option<PathBuf>,
    /// Where the figures are written.
    #[arg(long, default_value = "target/bench/lab.json")]
    out: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(BenchCli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sluice-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: BenchCli) -> Result<()> {
    let begun = Instant::now();
    let (unloaded, burst) = without_audit(&cli).await?;
    let audited = with_audit(&cli).await?;
    let took = begun.elapsed();
    let report = BenchReport { profile: cli.profile(), unloaded, burst, audited, took };
    println!("\n{report}");
    if let Some(folder) = cli.out.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let text = serde_json::to_string_pretty(&report.to_json())?;
    std::fs::write(&cli.out, text).with_context(|| format!("writing {}", cli.out.display()))?;
    println!("\nwritten to {}", cli.out.display());
    Ok(())
}

impl BenchCli {
    /// The measured build: the given folder, or this program's.
    fn profile(&self) -> String {
        let given = self.programs.as_ref().and_then(|folder| folder.file_name());
        let own = if cfg!(debug_assertions) { "dev" } else { "release" };
        given.map_or_else(|| own.to_owned(), |name| name.to_string_lossy().into_owned())
    }
}

/// Times, on two workers.
async fn without_audit(cli: &BenchCli) -> Result<(Sequence, Burst)> {
    let lab = TestLab::start(LabPlan { workers: 2, audit: false }).await?;
    let field = BenchEnvironment::lay(&lab, 2, cli.programs.as_deref()).await?;
    println!("{} Jobs, one after the other", cli.sequential);
    let unloaded =
        print_state_on_failure(&field, Box::pin(sequence::run(&field, cli.sequential, false)))
            .await?;
    println!("{} Jobs at once", cli.burst);
    Ok((unloaded, print_state_on_failure(&field, Box::pin(burst::run(&field, cli.burst))).await?))
}

/// Writes once more, on one worker, counted by the API servers too.
async fn with_audit(cli: &BenchCli) -> Result<Sequence> {
    let lab = TestLab::start(LabPlan { workers: 1, audit: true }).await?;
    let field = BenchEnvironment::lay(&lab, 1, cli.programs.as_deref()).await?;
    println!("{} Jobs, one after the other, with audit logs", cli.sequential);
    print_state_on_failure(&field, Box::pin(sequence::run(&field, cli.sequential, true))).await
}

/// A failed measurement prints the state of the installation.
async fn print_state_on_failure<T>(
    field: &BenchEnvironment<'_>,
    measured: impl Future<Output = Result<T>>,
) -> Result<T> {
    let measured = measured.await;
    if measured.is_err() {
        eprintln!("{}", field.circumstances().await);
    }
    measured
}
