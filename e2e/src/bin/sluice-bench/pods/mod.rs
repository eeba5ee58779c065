//! Plain pods and groups of pods on the manager's own cluster: the time to their start, writes, and memory.

mod gates;
mod group;
mod held;
mod sample_pod;

use anyhow::Result;
use clap::Args;
use harness::{LabPlan, NodeSpec, TestLab};
use serde_json::{Map, json};

use crate::BenchFiles;
use crate::environment::{BenchEnvironment, EnvironmentPlan};
use crate::figures::{self, Figure, mebibytes};

/// CPUs of the queue.
const QUOTA: u64 = 10;

/// How much is measured.
#[derive(Args)]
pub(crate) struct PlainPodOptions {
    #[command(flatten)]
    files: BenchFiles,
    /// Pods that start one after the other.
    #[arg(long, default_value_t = 100)]
    gates: usize,
    /// Members of the group.
    #[arg(long, default_value_t = 2000)]
    group: usize,
    /// Pods that wait for quota.
    #[arg(long, default_value_t = 20_000)]
    held: usize,
}

/// Measures, prints and records.
pub(crate) async fn run(options: &PlainPodOptions) -> Result<()> {
    let mut figures = Vec::new();
    gates(options, &mut figures).await?;
    group(options, &mut figures).await?;
    held(options, &mut figures).await?;
    let mut details = Map::new();
    details.insert("podsProfile".into(), json!(options.files.profile()));
    println!("\nprofile {}", options.files.profile());
    figures::record(&options.files.results("cluster.json"), &figures, details)
}

/// A control plane of its own for each part: earlier objects would slow the next one down.
async fn lab() -> Result<TestLab> {
    Ok(TestLab::start(LabPlan { workers: 0, audit: false }).await?)
}

async fn lay<'a>(lab: &'a TestLab, options: &PlainPodOptions) -> Result<BenchEnvironment<'a>> {
    let plan = EnvironmentPlan {
        workers: Vec::new(),
        quota: vec![("cpu", QUOTA)],
        blocks: json!({"integrations": {"frameworks": ["batch/job", "pod"]}}),
        programs: options.files.programs(),
        head_proxy: None,
    };
    let field = BenchEnvironment::lay(lab, plan).await?;
    // A simulated node takes a thousand pods.
    let count = options.group / 1000 + 1;
    let nodes = NodeSpec { count, cpu: "1000".to_owned(), ..NodeSpec::default() };
    field.installation.hub.add_nodes(&nodes).await?;
    Ok(field)
}

async fn gates(options: &PlainPodOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("{} pods, one after the other", options.gates);
    let lab = lab().await?;
    let field = lay(&lab, options).await?;
    let measured = field.explained(Box::pin(gates::measure(&field, options.gates))).await?;
    let millis = measured.ungated.p99.as_secs_f64() * 1e3;
    figures.push(Figure::at_most("gate_p99_ms", millis, 100.0, 50.0));
    figures.push(Figure::plain("gate_p50_ms", measured.ungated.p50.as_secs_f64() * 1e3));
    figures.push(Figure::at_most("writes_per_pod", measured.writes, 7.0, 7.0));
    Ok(())
}

async fn group(options: &PlainPodOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("a group of {} pods", options.group);
    let lab = lab().await?;
    let field = lay(&lab, options).await?;
    let measured = field.explained(Box::pin(group::measure(&field, options.group))).await?;
    let millis = measured.to_workload.as_secs_f64() * 1e3;
    let decision = f64::from(u32::try_from(measured.longest_decision_ms).unwrap_or(u32::MAX));
    figures.push(Figure::at_most("group_decision_ms", decision, 50.0, 20.0));
    figures.push(Figure::plain("group_workload_ms", millis));
    let grown = measured.grown_bytes;
    figures.push(Figure::at_most("group_rss_mb", mebibytes(grown), 20.0, 12.0));
    figures.push(Figure::plain("group_started_s", measured.to_start.as_secs_f64()));
    Ok(())
}

async fn held(options: &PlainPodOptions, figures: &mut Vec<Figure>) -> Result<()> {
    println!("{} pods that wait", options.held);
    let lab = lab().await?;
    let mut field = lay(&lab, options).await?;
    let resident = Box::pin(held::resident(&mut field, options.held)).await?;
    figures.push(Figure::at_most("pods_rss_mb", mebibytes(resident), 150.0, 100.0));
    Ok(())
}
