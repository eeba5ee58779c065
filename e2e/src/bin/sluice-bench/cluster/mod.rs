//! Workloads and Jobs under the quotas of one cluster.
//!
//! The baseline is that of upstream's scheduler benchmark, but its Workloads end without delay: upstream's five owners bound the
//! rate of both schedulers. The share of the ceiling compares the rate with that of the same writes sent without decisions, on the
//! same machine at the same time.

mod generator;
mod job_lives;
mod pending_jobs;
mod play;
mod replay;
mod restart;
mod status_writes;
mod takeover;
mod turnover;

use anyhow::Result;
use clap::{Args, ValueEnum};
use harness::{LabPlan, TestLab};
use serde_json::{Map, Value, json};

use play::PlayedRun;

use crate::BenchFiles;
use crate::counters::Counters;
use crate::environment::{BenchEnvironment, EnvironmentPlan};
use crate::figures::{self, Figure, mebibytes, per};
use crate::usage::ProcessUsage;

const BASELINE: &str = include_str!("../../../../bench/baseline.yaml");

/// CPUs of the queue in which turnover and restart are measured.
const QUOTA: u64 = 10;

/// Kinds of objects of which writes count for a Workload. Events and queue status are counted separately.
const OBJECTS: &[&str] = &["workloads", "workloads/status"];

/// How much is measured.
#[derive(Args)]
pub(crate) struct ClusterOptions {
    #[command(flatten)]
    files: BenchFiles,
    /// The share of the baseline's 15,000 Workloads.
    #[arg(long, default_value_t = 1.0)]
    share: f64,
    /// Workloads of the replay of writes.
    #[arg(long, default_value_t = 3000)]
    replayed: usize,
    /// Ends that are measured in a full queue.
    #[arg(long, default_value_t = 200)]
    ends: usize,
    /// Jobs that live on the manager's cluster.
    #[arg(long, default_value_t = 1000)]
    jobs: usize,
    /// Jobs that are pending when the manager restarts, and when the leader of two is killed.
    #[arg(long, default_value_t = 10_000)]
    pending: usize,
    /// Measures these parts only.
    #[arg(long, value_enum, value_delimiter = ',')]
    parts: Vec<ClusterBenchPart>,
}

/// What is measured on a control plane of its own.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClusterBenchPart {
    /// The baseline, and the ceiling that it is compared with.
    Baseline,
    Turnover,
    Lives,
    Restart,
    Takeover,
}

impl ClusterOptions {
    fn measures(&self, part: ClusterBenchPart) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

/// Measures, prints and records.
pub(crate) async fn run(options: &ClusterOptions) -> Result<()> {
    let mut figures = Vec::new();
    let mut details = Map::new();
    details.insert("profile".into(), json!(options.files.profile()));
    if options.measures(ClusterBenchPart::Baseline) {
        let ceiling = ceiling(options).await?;
        figures.push(Figure::plain("ceiling_per_s", ceiling));
        baseline(options, ceiling, &mut figures, &mut details).await?;
    }
    if options.measures(ClusterBenchPart::Turnover) {
        turnover(options, &mut figures).await?;
    }
    if options.measures(ClusterBenchPart::Lives) {
        lives(options, &mut figures).await?;
    }
    if options.measures(ClusterBenchPart::Restart) {
        restart(options, &mut figures).await?;
    }
    if options.measures(ClusterBenchPart::Takeover) {
        takeover(options, &mut figures).await?;
    }
    println!("\nprofile {}", options.files.profile());
    figures::record(&options.files.results("cluster.json"), &figures, details)
}

/// A control plane of its own for each part: earlier objects would slow the next one down.
async fn lab() -> Result<TestLab> {
    Ok(TestLab::start(LabPlan { workers: 0, audit: false }).await?)
}

fn plan(options: &ClusterOptions) -> EnvironmentPlan<'_> {
    EnvironmentPlan {
        workers: Vec::new(),
        quota: vec![("cpu", QUOTA)],
        blocks: Value::Null,
        programs: options.files.programs(),
        head_proxy: None,
    }
}

async fn ceiling(options: &ClusterOptions) -> Result<f64> {
    println!("{} Workloads without decisions", options.replayed);
    let lab = lab().await?;
    let field = BenchEnvironment::lay(&lab, plan(options)).await?;
    // No manager: it would write as well, and be asked about each write.
    field.stop_manager().await?;
    field.remove_webhooks().await?;
    field.explained(replay::rate(&field.installation.hub, options.replayed)).await
}

async fn baseline(
    options: &ClusterOptions,
    ceiling: f64,
    figures: &mut Vec<Figure>,
    details: &mut Map<String, Value>,
) -> Result<()> {
    let lab = lab().await?;
    let field = BenchEnvironment::lay(&lab, plan(options)).await?;
    let queues = generator::queues(BASELINE)?;
    field.apply(&[generator::flavor()]).await?;
    let mut streams = Vec::new();
    for queue in &queues {
        field.apply(&queue.objects()).await?;
        field.until_active(&queue.name, &queue.name).await?;
        streams.extend(queue.streams(options.share)?);
    }
    let before = ProcessUsage::of(field.manager.process.pid())?;
    let counted = Counters::read(&field).await?;
    println!("{} ClusterQueues, {} streams of Workloads", queues.len(), streams.len());
    let played = field.explained(Box::pin(play::play(&field.installation.hub, streams))).await?;
    let after = ProcessUsage::of(field.manager.process.pid())?;
    let counters = Counters::read(&field).await?.since(&counted);
    let cpu = after.cpu_since(&before);
    figures.extend(rates(&played, ceiling));
    let per_thousand = cpu * 1000.0 / count(played.workloads);
    figures.push(Figure::at_most("cpu_s_per_1000", per_thousand, 0.5, 0.3));
    figures.push(Figure::at_most("peak_rss_mb", mebibytes(after.peak_bytes), 60.0, 40.0));
    figures.push(Figure::at_most("writes", writes(&played, &counters), 3.1, 3.02));
    figures.push(Figure::at_most("events", events(&played, &counters), 2.0, 2.0));
    details.insert("baseline".into(), summary(&played));
    Ok(())
}

fn rates(played: &PlayedRun, ceiling: f64) -> [Figure; 2] {
    let rate = count(played.workloads) / played.wall.as_secs_f64();
    [
        Figure::at_least("admissions_per_s", rate, 86.0, 100.0),
        Figure::at_least("ceiling_share", rate / ceiling, 0.75, 0.85),
    ]
}

/// Writes per Workload: the manager's, the creation, the end, and the end of each eviction.
fn writes(played: &PlayedRun, counters: &Counters) -> f64 {
    let of_manager = counters.writes_of(|resource| OBJECTS.contains(&resource));
    let of_owners = 2 * played.workloads + played.evictions;
    per(of_manager + of_owners as u64, played.workloads)
}

fn events(played: &PlayedRun, counters: &Counters) -> f64 {
    per(counters.writes_of(|resource| resource == "events"), played.workloads)
}

fn summary(played: &PlayedRun) -> Value {
    let waits = played.waits.iter().map(|(class, wait)| (class.clone(), json!(wait.as_secs_f64())));
    json!({
        "workloads": played.workloads,
        "wallSeconds": played.wall.as_secs_f64(),
        "evictions": played.evictions,
        "meanSecondsToAdmission": waits.collect::<Map<_, _>>(),
    })
}

async fn turnover(options: &ClusterOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("{} ends in a full queue", options.ends);
    let lab = lab().await?;
    let field = BenchEnvironment::lay(&lab, plan(options)).await?;
    let measured = turnover::measure(&field.installation.hub, options.ends);
    let quantiles = field.explained(Box::pin(measured)).await?;
    let millis = quantiles.p99.as_secs_f64() * 1e3;
    figures.push(Figure::at_most("turnover_p99_ms", millis, 50.0, 25.0));
    figures.push(Figure::plain("turnover_p50_ms", quantiles.p50.as_secs_f64() * 1e3));
    Ok(())
}

async fn lives(options: &ClusterOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("{} Jobs on the manager's cluster", options.jobs);
    let lab = lab().await?;
    let field = BenchEnvironment::lay(&lab, plan(options)).await?;
    let measured = job_lives::cpu_seconds(&field, options.jobs);
    let cpu = field.explained(Box::pin(measured)).await?;
    let per_thousand = cpu * 1000.0 / count(options.jobs);
    figures.push(Figure::at_most("cpu_s_per_1000_jobs", per_thousand, 1.5, 1.0));
    Ok(())
}

async fn restart(options: &ClusterOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("a restart with {} pending Jobs", options.pending);
    let lab = lab().await?;
    let mut field = BenchEnvironment::lay(&lab, plan(options)).await?;
    let measured = Box::pin(restart::measure(&mut field, options.pending)).await?;
    let resident = mebibytes(measured.usage.resident_bytes);
    figures.push(Figure::at_most("rss_10k_mb", resident, 120.0, 80.0));
    figures.push(Figure::at_most("restart_s", measured.first_admission, 5.0, 2.0));
    Ok(())
}

async fn takeover(options: &ClusterOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("a killed leader with {} pending Jobs", options.pending);
    let lab = lab().await?;
    let mut field = BenchEnvironment::lay(&lab, plan(options)).await?;
    let measured = Box::pin(takeover::measure(&mut field, options.pending)).await?;
    figures.push(Figure::at_most("takeover_s", measured.first_admission, 1.0, 0.5));
    figures.push(Figure::plain("takeover_cpu_s", measured.cpu));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "thousands")]
fn count(number: usize) -> f64 {
    number as f64
}
