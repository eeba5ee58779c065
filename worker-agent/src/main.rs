//! `sluice-agent`: runs on a worker cluster what its managers give it.
//!
//! It watches Workloads and Jobs that carry a manager's mark, and the cluster's nodes and pods; it admits a Workload when
//! its pods find room, lets its Job run, and reports what is left (`cluster::control` in the role of a thin worker).

mod args;
mod config;
mod process;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use runtime::telemetry::{self, LogFormat};

use crate::{
    args::{Admission, Args},
    config::AgentConfiguration,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    runtime::failpoint::set_up();
    let format = if args.log_format == "json" { LogFormat::Json } else { LogFormat::Text };
    if let Err(error) = telemetry::init(format, &args.log_level) {
        eprintln!("sluice-agent: {error}");
        return ExitCode::FAILURE;
    }
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.admission == Admission::Thin,
        "--admission=quota: this version admits by the room on the nodes only"
    );
    let config = AgentConfiguration::load(args.config.as_deref())?;
    let stop = runtime::on_signal().context("signals")?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
    process::run(args, &config, stop).await?;
    tracing::info!("stopped");
    Ok(())
}
