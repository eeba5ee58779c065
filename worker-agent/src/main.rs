//! `sluice-agent`: runs dispatched Jobs on a worker cluster in agent mode.
//!
//! The agent watches Workloads and Jobs with a manager's origin label, nodes and pods. It admits a Workload when its pods fit,
//! starts the Job, and reports free capacity (`cluster::control::AgentControl`).
//!
//! | module | concept |
//! |---|---|
//! | `args`, `config` | flags, configuration file |
//! | `operators` | RayClusters, RayJobs, RayServices, RayCronJobs and AppWrappers where no official operator runs |
//! | `operator_settings` | what is set for these: flags, files, environment variables |
//! | `process` | the tasks of the process |

mod args;
mod config;
mod operator_settings;
mod operators;
mod process;

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use clap::Parser;
use mimalloc::MiMalloc;
use runtime::telemetry::{self, LogFormat};

use crate::{args::AgentArgs, config::AgentConfiguration};

/// Most allocations are strings of decoded objects, made by one thread and dropped by another: less CPU per Workload
/// than with the allocator of the C library, for the same memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    runtime::huge_pages::disable();
    let args = AgentArgs::parse();
    // Before the first write, so that a failpoint of the Lease is set.
    runtime::failpoint::set_up();
    let format = if args.log_format == "json" { LogFormat::Json } else { LogFormat::Text };
    if let Err(error) = telemetry::init(format, &args.log_level) {
        // Logs are what failed, so the error goes to standard error directly.
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

async fn run(args: &AgentArgs) -> anyhow::Result<()> {
    let config = AgentConfiguration::load(args.config.as_deref())?;
    // Nothing of the agent is called, so no server outlives the leader.
    let stop = runtime::on_signal(Duration::ZERO).context("signals")?.serving().clone();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
    process::run(args, &config, stop).await?;
    tracing::info!("stopped");
    Ok(())
}
