//! `sluice-demo`: Jobs are submitted to one cluster and run on two others, with control planes on this machine.
//!
//! The demo starts a lab, installs from `config/`, submits a mixed batch, shows the state of every Job, and checks the outcome
//! with its own observer. It removes everything at its end. See e2e/README.md.
#![expect(clippy::print_stdout, reason = "a command line tool's output")]

mod batch;
mod environment;
mod job_table;
mod mixture;
mod outcome;
mod run;
mod screen;
mod stopwatch;
mod teardown;
mod view;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use harness::{LabPlan, TestLab};
use tokio::signal::unix::{SignalKind, signal};

use environment::{DemoEnvironment, WORKERS};
use stopwatch::Stopwatch;

/// The exit code of a process that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Jobs over several clusters, from submission to their end.
#[derive(Parser)]
#[command(name = "sluice-demo", version)]
struct DemoCli {
    /// Small Jobs to submit beside the samples.
    #[arg(long, default_value_t = 36)]
    jobs: usize,
}

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return print_error(&error.into()),
    };
    let ended = runtime.block_on(run_or_interrupt(DemoCli::parse()));
    // Blocking tasks may still use the lab; it ends after them.
    runtime.shutdown_background();
    match ended {
        Ok(code) => code,
        Err(error) => print_error(&error),
    }
}

fn print_error(error: &anyhow::Error) -> ExitCode {
    eprintln!("sluice-demo: {error:#}");
    ExitCode::FAILURE
}

async fn run_or_interrupt(cli: DemoCli) -> Result<ExitCode> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut watch = Stopwatch::start();
    let ended = tokio::select! {
        ended = Box::pin(run(cli, &mut watch)) => ended,
        _ = tokio::signal::ctrl_c() => Ok(interrupted()),
        _ = terminated.recv() => Ok(interrupted()),
    };
    // All that held the lab is dropped by now.
    teardown::wait_until_gone().await?;
    watch.lap("taking everything down");
    println!("\n{watch}");
    ended
}

fn interrupted() -> ExitCode {
    println!("\ninterrupted; taking everything down");
    ExitCode::from(INTERRUPTED)
}

async fn run(cli: DemoCli, watch: &mut Stopwatch) -> Result<ExitCode> {
    println!("starting a manager cluster and {WORKERS} workers");
    let lab = TestLab::start(LabPlan { workers: WORKERS, audit: false }).await?;
    watch.lap("control planes");
    let stage = DemoEnvironment::set(&lab, watch).await?;
    let outcome = run::run(&stage, batch::read(&stage, cli.jobs).await?, watch).await?;
    println!("\n{outcome}");
    Ok(if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
