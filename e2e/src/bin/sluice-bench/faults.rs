//! Two managers under a steady load of Jobs and pods, while leaders are killed and the API server hangs (`e2e::fault_run`).
//!
//! There are figures only if everything ran once, quota was never exceeded, and the status of queues agrees with the objects.

use std::{path::Path, time::Duration};

use anyhow::Result;
use clap::Args;
use e2e::fault_run::{FaultPlan, run as run_plan};
use harness::secs;
use serde_json::{Map, json};

use crate::BenchFiles;
use crate::figures::{self, Figure};

/// Between two kills of a leader, in seconds: a new leader has a lease of 15 s.
const KILL_EVERY: std::ops::RangeInclusive<u64> = 20..=40;

/// What is measured.
#[derive(Args)]
pub(crate) struct FaultOptions {
    #[command(flatten)]
    files: BenchFiles,
    /// For how many seconds work is submitted.
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// Jobs per minute, and as many pods.
    #[arg(long, default_value_t = 200)]
    per_minute: u32,
    /// For how many seconds the API server hangs, once.
    #[arg(long, default_value_t = 30)]
    outage: u64,
    /// Members of the group of pods.
    #[arg(long, default_value_t = 2000)]
    group: usize,
    /// Of the random pauses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs, prints and records.
pub(crate) async fn run(options: &FaultOptions) -> Result<()> {
    println!("{} s with {} Jobs and pods a minute each", options.seconds, options.per_minute);
    let plan = FaultPlan {
        per_minute: options.per_minute,
        lasts: secs(options.seconds),
        kill_every: KILL_EVERY,
        outage: secs(options.outage),
        group: options.group,
        seed: options.seed,
        programs: options.files.programs().map(Path::to_owned),
    };
    let report = run_plan(&plan).await?;
    let seconds = |duration: Duration| duration.as_secs_f64();
    let figures = [
        Figure::plain("faults_ran_once", count(report.submitted + options.group)),
        Figure::plain("faults_kills", count(report.kills)),
        Figure::plain("faults_sent_again", count(report.sent_again)),
        Figure::plain("faults_longest_pause_s", seconds(report.longest_pause)),
        Figure::plain("faults_drained_s", seconds(report.drained_in)),
    ];
    let mut details = Map::new();
    details.insert("faultsProfile".into(), json!(options.files.profile()));
    figures::record(&options.files.results("cluster.json"), &figures, details)
}

#[expect(clippy::cast_precision_loss, reason = "thousands")]
fn count(number: usize) -> f64 {
    number as f64
}
