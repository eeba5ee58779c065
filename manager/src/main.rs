//! `sluice-manager`: the program of the manager cluster.
//!
//! Flags select the components, the configuration file configures them. A component is a set of tasks. A signal stops the leader
//! at once and the servers after a delay (`runtime::Shutdown`); a task that ends earlier ends the process.
//!
//! | module | concept |
//! |---|---|
//! | `args`, `settings`, `components` | flags, configuration file and feature gates, selected components |
//! | `process`, `process_parts` | the tasks of the process, and what they share |
//! | `leader` | leader election, and the tasks of the leader |
//! | `webhook_cache` | the cache of objects that webhooks need |
//! | `first_lists` | how long readiness waits for it, and for the visibility API |
//! | `visibility` | the APIs of pending Workloads, and of pods and logs of Workloads |
//! | `ray_api` | the API of Ray clusters, wherever they run |
//! | `certificates`, `certificate_plan` | the serving certificate of webhooks and APIs, and where it comes from |
//! | `integrations`, `ineffective_settings` | what of the configuration is not built, as metrics |
//! | `access`, `metrics_access` | users and their access by reviews of the API server; that of metrics |
//! | `answer_body` | answers of other servers, passed on |
//! | `build_info`, `listen` | version, bind addresses |
//! | `kueue_metrics` | Kueue's metrics, fed by what control measures |
//! | `in_flight_limits` | counts of requests in flight, by two names |
//! | `resource_names` | names of the resources of external frameworks |

mod access;
mod answer_body;
mod args;
mod build_info;
mod certificate_plan;
mod certificates;
mod components;
mod first_lists;
mod in_flight_limits;
mod ineffective_settings;
mod integrations;
mod kueue_metrics;
mod leader;
mod listen;
mod metrics_access;
mod process;
mod process_parts;
mod ray_api;
mod resource_names;
mod settings;
mod visibility;
mod webhook_cache;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use crate::{args::ManagerArgs, settings::ProcessSettings};

/// Most allocations are strings of decoded objects, made by one thread and dropped by another: a tenth less CPU per Workload than
/// with the allocator of the C library, for the same memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    runtime::huge_pages::disable();
    let args = ManagerArgs::parse();
    // Before the first write, so that a failpoint of the certificates or the Lease is set.
    runtime::failpoint::set_up();
    let outcome = match start_logs(&args) {
        Ok(()) => run(&args).await,
        Err(error) => {
            // Logs are what failed, so the error goes to standard error directly.
            eprintln!("sluice-manager: {}", runtime::error_chain::describe(error.as_ref()));
            return ExitCode::FAILURE;
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", runtime::error_chain::describe(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn start_logs(args: &ManagerArgs) -> anyhow::Result<()> {
    Ok(runtime::telemetry::init(args.logs.format(), &args.logs.filter()?)?)
}

async fn run(args: &ManagerArgs) -> anyhow::Result<()> {
    let components = components::select(&args.components)?;
    let settings = ProcessSettings::load(args)?;
    args.check_metrics_address(&settings.file.metrics.bind_address)?;
    let shutdown = runtime::on_signal(args.shutdown_delay_duration)?;
    tracing::info!(version = build_info::VERSION, ?components, "starting");
    process::run(args, &settings, &components, &shutdown).await?;
    tracing::info!("stopped");
    Ok(())
}
