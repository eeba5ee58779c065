//! `sluice-manager`: the program of the manager cluster.
//!
//! Flags say which components run, the configuration file says how. A component is a set of tasks; all stop on one
//! token, and a task that ends before that ends the process.

mod args;
mod build_info;
mod certificates;
mod chain;
mod components;
mod decide;
mod listen;
mod metrics_access;
mod process;
mod remote;
mod settings;
mod webhook_cache;

use std::process::ExitCode;

use clap::Parser;

use crate::{args::Args, settings::Settings};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    runtime::failpoint::set_up();
    let outcome = match start_logs(&args) {
        Ok(()) => run(&args).await,
        Err(error) => {
            eprintln!("sluice-manager: {}", chain::describe(error.as_ref()));
            return ExitCode::FAILURE;
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", chain::describe(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn start_logs(args: &Args) -> anyhow::Result<()> {
    Ok(runtime::telemetry::init(args.logs.format(), &args.logs.filter()?)?)
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let components = components::together(&args.components)?;
    let settings = Settings::load(args)?;
    let stop = runtime::on_signal()?;
    tracing::info!(version = build_info::VERSION, ?components, "starting");
    process::run(args, &settings, &components, stop).await?;
    tracing::info!("stopped");
    Ok(())
}
