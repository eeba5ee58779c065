//! GPU jobs over three unequal workers: makespan, mean wait, jobs with pods that cannot be bound, and clones.

mod observation;
mod run;
mod scenario;
mod svg;

use anyhow::{Context, Result};
use clap::Args;
use harness::{LabPlan, TestLab};
use serde_json::{Map, Value};

use run::BalanceRun;
use scenario::Scenario;

use crate::BenchFiles;
use crate::environment::{BenchEnvironment, EnvironmentPlan};
use crate::figures::{self, Figure};

/// Name and text of each scenario.
const SCENARIOS: [(&str, &str); 3] = [
    ("a", include_str!("../../../../bench/balance/a-burst.json")),
    ("b", include_str!("../../../../bench/balance/b-gangs.json")),
    ("c", include_str!("../../../../bench/balance/c-openloop.json")),
];

/// Targets: key, makespan (must, aim), mean wait (must, aim), in seconds.
type ScenarioTarget = (&'static str, Option<(f64, f64)>, (f64, f64));

const TARGETS: [ScenarioTarget; 4] = [
    ("a", Some((268.0, 258.0)), (105.0, 100.0)),
    ("b", Some((375.0, 345.0)), (85.0, 80.0)),
    ("c", None, (18.0, 17.0)),
    ("b_undeclared", Some((390.0, 375.0)), (95.0, 88.0)),
];

/// Which scenarios run.
#[derive(Args)]
pub(crate) struct BalanceOptions {
    #[command(flatten)]
    files: BenchFiles,
    /// Runs of each scenario, with jittered arrivals.
    #[arg(long, default_value_t = 5)]
    runs: u64,
    /// `b_undeclared` is `b` without run times.
    #[arg(long, value_delimiter = ',', default_values = ["a", "b", "c", "b_undeclared"])]
    scenarios: Vec<String>,
}

/// Runs, prints and records.
pub(crate) async fn run(options: &BalanceOptions) -> Result<()> {
    let mut figures = Vec::new();
    let (mut unbindable, mut clones) = (0_usize, 0.0_f64);
    for name in &options.scenarios {
        let runs = runs(options, name).await?;
        figures.extend(measures(name, &runs));
        unbindable = unbindable.max(runs.iter().map(|run| run.unbindable).max().unwrap_or(0));
        clones = runs.iter().map(|run| run.clones_per_job).fold(clones, f64::max);
    }
    #[expect(clippy::cast_precision_loss, reason = "some hundred jobs")]
    figures.push(Figure::at_most("unbindable", unbindable as f64, 0.0, 0.0));
    figures.push(Figure::at_most("clones_per_job", clones, 1.0, 1.0));
    let mut details = Map::new();
    details.insert("balanceRuns".into(), Value::from(options.runs));
    figures::record(&options.files.results("lab.json"), &figures, details)
}

async fn runs(options: &BalanceOptions, name: &str) -> Result<Vec<BalanceRun>> {
    let (base, declared) = match name {
        "b_undeclared" => ("b", false),
        other => (other, other == "b"),
    };
    let known = SCENARIOS.iter().find(|(one, _)| *one == base);
    let (_, text) = known.with_context(|| format!("no scenario {name:?}"))?;
    let scenario = Scenario::parse(text)?;
    let workers = scenario.clusters.len();
    let lab = TestLab::start(LabPlan { workers, audit: false }).await?;
    let (cpu, gpu) = scenario.capacity();
    let plan = EnvironmentPlan {
        workers: scenario.clusters.iter().map(scenario::ScenarioCluster::node_specs).collect(),
        quota: vec![("cpu", cpu), ("nvidia.com/gpu", gpu)],
        blocks: Value::Null,
        programs: options.files.programs(),
        head_proxy: None,
    };
    let field = BenchEnvironment::lay(&lab, plan).await?;
    let mut runs = Vec::new();
    for seed in 1..=options.runs {
        let played = Box::pin(run::play(&field, &scenario, seed, declared));
        let run = field.explained(played).await?;
        println!(
            "{name}, run {seed}: makespan {:.1} s, mean wait {:.1} s, {} unbindable, {} never whole",
            run.makespan, run.mean_wait, run.unbindable, run.never_whole
        );
        save_svg(options, name, seed, &run)?;
        runs.push(run);
    }
    Ok(runs)
}

fn save_svg(options: &BalanceOptions, name: &str, seed: u64, run: &BalanceRun) -> Result<()> {
    let path = options.files.results(&format!("balance-{name}-{seed}.svg"));
    figures::write(&path, &svg::draw(run))
}

/// Means over the runs.
#[expect(clippy::cast_precision_loss, reason = "a handful of runs")]
fn measures(name: &str, runs: &[BalanceRun]) -> Vec<Figure> {
    let mean =
        |of: fn(&BalanceRun) -> f64| runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64;
    let key = |measure: &str| format!("balance.{name}.{measure}");
    let target = TARGETS.iter().find(|(key, ..)| *key == name);
    let figure = |measure, value, target: Option<(f64, f64)>| match target {
        Some((must, aim)) => Figure::at_most(&key(measure), value, must, aim),
        None => Figure::plain(&key(measure), value),
    };
    vec![
        figure(
            "makespan_s",
            mean(|run| run.makespan),
            target.and_then(|(_, makespan, _)| *makespan),
        ),
        figure("mean_wait_s", mean(|run| run.mean_wait), target.map(|(_, _, wait)| *wait)),
        Figure::at_most(&key("never_whole"), mean(|run| run.never_whole as f64), 0.0, 0.0),
    ]
}
