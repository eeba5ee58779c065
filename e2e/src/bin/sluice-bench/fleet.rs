//! A manager with hundreds of workers, all of them doubles in this process (`e2e::fleet`).

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use e2e::fleet::{AgentFleetPlan, run as run_plan};
use serde_json::{Map, json};

use crate::BenchFiles;
use crate::figures::{self, Figure, mebibytes, per};

/// What is measured.
#[derive(Args)]
pub(crate) struct FleetOptions {
    #[command(flatten)]
    files: BenchFiles,
    /// Workers, with an agent each.
    #[arg(long, default_value_t = 500)]
    agents: usize,
    /// Jobs, of one pod each.
    #[arg(long, default_value_t = 50_000)]
    workloads: usize,
    /// Jobs of which the status changes.
    #[arg(long, default_value_t = 20_000)]
    changes: usize,
    /// Changes of status per second that are offered.
    #[arg(long, default_value_t = 2000)]
    per_second: u32,
}

/// Runs, prints and records.
pub(crate) async fn run(options: &FleetOptions) -> Result<()> {
    println!("{} Jobs on {} workers", options.workloads, options.agents);
    let plan = AgentFleetPlan {
        agents: options.agents,
        workloads: options.workloads,
        changes: options.changes.min(options.workloads),
        per_second: options.per_second,
        within: Duration::from_secs(1800),
        programs: options.files.programs().map(Path::to_owned),
    };
    let report = run_plan(&plan).await?;
    let (dispatch, status) = report.cpu_seconds;
    let per_thousand = |seconds: f64, count: usize| seconds / per(count as u64, 1000);
    let figures = [
        Figure::at_least("fleet_status_per_s", report.statuses_per_second, 1000.0, 1500.0),
        Figure::at_most("fleet_rss_mb", mebibytes(report.resident_bytes), 400.0, 300.0),
        Figure::at_most("fleet_reconnect_s", report.reconnected.as_secs_f64(), 30.0, 15.0),
        Figure::plain("fleet_dispatched_per_s", report.dispatched_per_second),
        Figure::plain("fleet_slowest_status_s", report.slowest_status.as_secs_f64()),
        Figure::plain("fleet_restarted_rss_mb", mebibytes(report.restarted_bytes)),
        Figure::plain("fleet_dispatch_cpu_s_per_1000", per_thousand(dispatch, plan.workloads)),
        Figure::plain("fleet_status_cpu_s_per_1000", per_thousand(status, plan.changes)),
        Figure::plain("fleet_used_workers", per(u64::try_from(report.used_workers)?, 1)),
    ];
    let mut details = Map::new();
    details.insert("fleetProfile".into(), json!(options.files.profile()));
    details.insert("fleetAgents".into(), json!(plan.agents));
    details.insert("fleetWorkloads".into(), json!(plan.workloads));
    figures::record(&options.files.results("fleet.json"), &figures, details)
}
