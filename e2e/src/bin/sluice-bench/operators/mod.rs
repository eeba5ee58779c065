//! RayClusters that the agent operates: the time until one is ready on the manager, writes and CPU of a large one, and what
//! the agent does while nothing happens.

mod idle;
mod large;
mod ready;
mod sample_cluster;

use anyhow::{Context, Result};
use clap::Args;
use e2e::installation::Program;
use harness::{LabPlan, NodeSpec, RayHeads, TestLab};
use serde_json::{Map, json};

use crate::BenchFiles;
use crate::environment::{BenchEnvironment, EnvironmentPlan};
use crate::figures::{self, Figure, mebibytes};

/// CPUs of the queue.
const QUOTA: u64 = 100;

/// How much is measured.
#[derive(Args)]
pub(crate) struct OperatorOptions {
    #[command(flatten)]
    files: BenchFiles,
    /// RayClusters that are dispatched one after the other.
    #[arg(long, default_value_t = 50)]
    clusters: usize,
    /// Workers of the large RayCluster.
    #[arg(long, default_value_t = 1000)]
    workers: usize,
    /// RayClusters that run while nothing happens.
    #[arg(long, default_value_t = 500)]
    idle: usize,
    /// Seconds for which an idle agent is observed.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// Measures, prints and records.
pub(crate) async fn run(options: &OperatorOptions) -> Result<()> {
    let mut figures = Vec::new();
    empty(options, &mut figures).await?;
    ready(options, &mut figures).await?;
    large(options, &mut figures).await?;
    idle(options, &mut figures).await?;
    let mut details = Map::new();
    details.insert("profile".into(), json!(options.files.profile()));
    println!("\nprofile {}", options.files.profile());
    figures::record(&options.files.results("operators.json"), &figures, details)
}

/// A lab of its own for each part: earlier objects would slow the next one down.
async fn lab() -> Result<TestLab> {
    Ok(TestLab::start(LabPlan { workers: 1, audit: false }).await?)
}

async fn lay<'a>(
    lab: &'a TestLab,
    heads: &RayHeads,
    options: &OperatorOptions,
) -> Result<BenchEnvironment<'a>> {
    // A simulated node takes a thousand pods.
    let count = options.workers.max(options.idle) / 1000 + 1;
    let nodes = NodeSpec { count, cpu: "10000".to_owned(), ..NodeSpec::default() };
    let plan = EnvironmentPlan {
        workers: vec![vec![nodes]],
        quota: vec![("cpu", QUOTA)],
        blocks: json!({
            "integrations": {"frameworks": ["batch/job", "ray.io/raycluster"]},
            "multiKueue": {"dispatcherName": "sluice.dev/capacity"},
        }),
        programs: options.files.programs(),
        head_proxy: Some(heads.proxy()),
    };
    BenchEnvironment::lay(lab, plan).await
}

fn agent<'a>(field: &'a BenchEnvironment<'_>) -> Result<&'a Program> {
    field.agents.first().context("an agent")
}

async fn empty(options: &OperatorOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("an agent with operators and no objects, {} s", options.seconds);
    let (lab, heads) = (lab().await?, RayHeads::start()?);
    let field = lay(&lab, &heads, options).await?;
    let observed = field.explained(idle::observe(&field, options.seconds)).await?;
    figures.push(Figure::at_most("empty_rss_mb", mebibytes(observed.resident), 40.0, 25.0));
    figures.push(Figure::at_most("empty_mcpu", observed.millicpus, 10.0, 5.0));
    Ok(())
}

async fn ready(options: &OperatorOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("{} RayClusters, one after the other", options.clusters);
    let (lab, heads) = (lab().await?, RayHeads::start()?);
    let field = lay(&lab, &heads, options).await?;
    let took = field.explained(Box::pin(ready::measure(&field, options.clusters))).await?;
    let millis = took.p99.as_secs_f64() * 1e3;
    figures.push(Figure::at_most("ready_p99_ms", millis, 1000.0, 300.0));
    figures.push(Figure::plain("ready_p50_ms", took.p50.as_secs_f64() * 1e3));
    Ok(())
}

async fn large(options: &OperatorOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("a RayCluster with {} workers", options.workers);
    let (lab, heads) = (lab().await?, RayHeads::start()?);
    let field = lay(&lab, &heads, options).await?;
    let measured = field.explained(Box::pin(large::measure(&field, options.workers))).await?;
    figures.push(Figure::at_most("large_writes", measured.writes, 15.0, 8.0));
    figures.push(Figure::at_most("large_cpu_s", measured.cpu_seconds, 2.0, 1.0));
    // One of each pod, and a few of the other objects.
    let events = f64::from(u32::try_from(options.workers + 10)?);
    figures.push(Figure::at_most("large_events", measured.events, events, events));
    figures.push(Figure::plain("large_ready_s", measured.took.as_secs_f64()));
    Ok(())
}

async fn idle(options: &OperatorOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("{} RayClusters that run, {} s", options.idle, options.seconds);
    let (lab, heads) = (lab().await?, RayHeads::start()?);
    let field = lay(&lab, &heads, options).await?;
    let observed = async {
        idle::run(&field, options.idle).await?;
        idle::observe(&field, options.seconds).await
    };
    let observed = field.explained(Box::pin(observed)).await?;
    figures.push(Figure::at_most("idle_writes", observed.writes, 0.0, 0.0));
    figures.push(Figure::at_most("idle_requests_per_s", observed.requests_per_second, 1.0, 0.0));
    figures.push(Figure::plain("idle_rss_mb", mebibytes(observed.resident)));
    figures.push(Figure::plain("idle_mcpu", observed.millicpus));
    Ok(())
}
