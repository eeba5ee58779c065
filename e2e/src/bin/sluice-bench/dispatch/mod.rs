//! Jobs over workers: single Jobs on an idle installation, bursts, and the failover of a lost worker.

mod audit;
mod burst;
mod failover;
mod report;
mod sequence;
mod timestamps;

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use harness::{LabPlan, NodeSpec, TestLab};
use serde_json::{Value, json};

use burst::Burst;
use report::DispatchReport;
use sequence::Sequence;

use crate::BenchFiles;
use crate::environment::{BenchEnvironment, EnvironmentPlan};
use crate::figures;

/// More quota and capacity than the Jobs need.
const QUOTA: &[(&str, u64)] = &[("cpu", 4000)];

/// How much is measured.
#[derive(Args)]
pub(crate) struct DispatchOptions {
    #[command(flatten)]
    files: BenchFiles,
    /// Jobs that are submitted one after the other.
    #[arg(long, default_value_t = 20)]
    sequential: usize,
    /// Jobs that are submitted at once.
    #[arg(long, default_value_t = 1000)]
    burst: usize,
    /// Numbers of workers of the bursts.
    #[arg(long, value_delimiter = ',', default_values_t = [3, 6])]
    workers: Vec<usize>,
    /// Jobs that run on the worker that is lost; 0 leaves failover out.
    #[arg(long, default_value_t = 10)]
    lost: usize,
}

/// Measures, prints and records.
pub(crate) async fn run(options: &DispatchOptions) -> Result<()> {
    let begun = Instant::now();
    let unloaded = unloaded(options).await?;
    let audited = audited(options).await?;
    let mut bursts = Vec::new();
    for workers in &options.workers {
        bursts.push(burst(options, *workers).await?);
    }
    let failover = if options.lost > 0 { Some(failover(options).await?) } else { None };
    let report = DispatchReport { unloaded, bursts, audited, failover };
    println!("\nprofile {}, {:.0} s in all\n{report}", options.files.profile(), secs(begun));
    let mut details = report.details();
    details.insert("profile".into(), json!(options.files.profile()));
    details
        .insert("cpus".into(), json!(std::thread::available_parallelism().map_or(0, usize::from)));
    figures::record(&options.files.results("lab.json"), &report.figures(), details)
}

fn secs(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64()
}

/// Single Jobs, on three workers.
async fn unloaded(options: &DispatchOptions) -> Result<Sequence> {
    println!("{} Jobs, one after the other, 3 workers", options.sequential);
    let lab = TestLab::start(LabPlan { workers: 3, audit: false }).await?;
    let field = BenchEnvironment::lay(&lab, plan(options, 3, Value::Null)).await?;
    field.explained(Box::pin(sequence::run(&field, options.sequential, false))).await
}

/// Single Jobs once more, on one worker, counted by the API servers too.
async fn audited(options: &DispatchOptions) -> Result<Sequence> {
    println!("{} Jobs, one after the other, 1 worker, with audit logs", options.sequential);
    let lab = TestLab::start(LabPlan { workers: 1, audit: true }).await?;
    let field = BenchEnvironment::lay(&lab, plan(options, 1, Value::Null)).await?;
    field.explained(Box::pin(sequence::run(&field, options.sequential, true))).await
}

async fn burst(options: &DispatchOptions, workers: usize) -> Result<Burst> {
    println!("{} Jobs at once, {workers} workers", options.burst);
    let lab = TestLab::start(LabPlan { workers, audit: false }).await?;
    let field = BenchEnvironment::lay(&lab, plan(options, workers, Value::Null)).await?;
    field.explained(Box::pin(burst::run(&field, options.burst))).await
}

async fn failover(options: &DispatchOptions) -> Result<f64> {
    println!("{} Jobs on a worker that is lost", options.lost);
    let lab = TestLab::start(LabPlan { workers: 2, audit: false }).await?;
    let field = BenchEnvironment::lay(&lab, plan(options, 2, failover::settings())).await?;
    field.explained(Box::pin(failover::run(&field, options.lost))).await
}

fn plan(options: &DispatchOptions, workers: usize, blocks: Value) -> EnvironmentPlan<'_> {
    let nodes = vec![NodeSpec { count: 4, cpu: "1000".to_owned(), ..NodeSpec::default() }];
    EnvironmentPlan {
        workers: vec![nodes; workers],
        quota: QUOTA.to_vec(),
        blocks,
        programs: options.files.programs(),
        head_proxy: None,
    }
}
