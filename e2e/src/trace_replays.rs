//! Replays recorded lives of jobs: a complete installation in one cluster, whose pods are played.

use anyhow::{Context, Result};
use harness::{LabPlan, NodeSpec, TestLab, secs};
use jobs::{Kind, Kinds};
use k8s_openapi::api::core::v1::Taint;
use replay::{ReplayClusters, ReplayReport, ReplayTarget, TraceCase, TraceSettings};
use serde_json::{Value, json};

use crate::garbage_collector;
use crate::installation::{Installation, InstallationPlan, InstallationPorts, NAMESPACE, Program};

/// CRDs of the kinds that no program of this repository installs.
const FOREIGN_KINDS: [&str; 7] = [
    include_str!("../../crates/appwrapper/manifests/workload.codeflare.dev_appwrappers.yaml"),
    include_str!("../tests/kinds/jobset-crd.yaml"),
    include_str!("../tests/kinds/kubeflow-crds.yaml"),
    include_str!("../tests/kinds/leader-worker-set-crd.yaml"),
    include_str!("../tests/kinds/ray-crds.yaml"),
    include_str!("../tests/kinds/spark-crd.yaml"),
    include_str!("../tests/kinds/trainer-crds.yaml"),
];

/// Objects that are there before any case.
const SETUP: &str = include_str!("../replay/trace-setup.yaml");

/// The queue of a manager cluster that dispatches to its worker.
const DISPATCHING_SETUP: &str = include_str!("../replay/dispatching-setup.yaml");

/// Replays cases, with a manager for each of the settings that they were recorded with, and a worker for those of two clusters.
///
/// # Errors
/// If a control plane or a manager does not start.
pub async fn replay(cases: &[TraceCase]) -> Result<ReplayReport> {
    let mut report = ReplayReport::default();
    let (dispatched, alone): (Vec<_>, Vec<_>) =
        cases.iter().cloned().partition(TraceCase::is_of_several_clusters);
    for settings in [TraceSettings::Base, TraceSettings::WithoutQueueName, TraceSettings::PodsReady]
    {
        for (cases, workers) in [(&alone, 0), (&dispatched, 1)] {
            let of_settings = |case: &&TraceCase| case.config.unwrap_or_default() == settings;
            let chosen: Vec<TraceCase> = cases.iter().filter(of_settings).cloned().collect();
            if !chosen.is_empty() {
                report.absorb(replay_with(settings, workers, &chosen).await?);
            }
        }
    }
    Ok(report)
}

async fn replay_with(
    settings: TraceSettings,
    workers: usize,
    cases: &[TraceCase],
) -> Result<ReplayReport> {
    let lab = TestLab::start(LabPlan { workers, audit: false }).await?;
    let plan = InstallationPlan { workers, elects: false };
    let installation = Installation::of(&lab, plan, InstallationPorts::choose()?).await?;
    installation.install().await?;
    let blocks = configuration(settings);
    let of_manager = started(&installation, &blocks).await.context("the manager cluster")?;
    let mut of_worker = None;
    let worker = match installation.workers.first() {
        None => None,
        Some(worker) => {
            let ports = InstallationPorts::choose()?;
            let alone = Installation::of_worker(&lab, worker.name(), ports).await?;
            alone.install().await?;
            of_worker = Some(started(&alone, &blocks).await.context("the worker")?);
            installation.register().await?;
            installation.hub.apply(DISPATCHING_SETUP, "base").await?;
            Some(ReplayTarget::new(worker.client()))
        }
    };
    let manager = ReplayTarget::new(installation.hub.client());
    let report = replay::run_traces(&ReplayClusters { manager, worker }, cases).await;
    drop((of_manager, of_worker));
    report
}

/// Starts the manager of a cluster, and makes what every case finds there.
async fn started(installation: &Installation<'_>, blocks: &Value) -> Result<Program> {
    let cluster = &installation.hub;
    for definition in FOREIGN_KINDS {
        cluster.apply(definition, NAMESPACE).await.context("installing a CRD")?;
    }
    for nodes in nodes() {
        cluster.add_nodes(&nodes).await?;
    }
    let manager = installation.first_manager_with(blocks).await?;
    replay::until_served(&ReplayTarget::new(cluster.client()), secs(60)).await?;
    cluster.apply(SETUP, "base").await.context("installing the objects of the recording")?;
    garbage_collector::until_it_knows_queues(cluster, "base")
        .await
        .context("waiting for the garbage collector")?;
    Ok(manager)
}

fn nodes() -> [NodeSpec; 2] {
    let label = |value: &str| [("oracle.example/pool".to_owned(), value.to_owned())].into();
    let of = |prefix: &str, count| NodeSpec {
        prefix: prefix.to_owned(),
        count,
        cpu: "1000".to_owned(),
        memory: "1000Gi".to_owned(),
        ..NodeSpec::default()
    };
    let taint = Taint {
        key: "oracle.example/dedicated".to_owned(),
        value: Some("yes".to_owned()),
        effect: "NoSchedule".to_owned(),
        time_added: None,
    };
    [
        NodeSpec { labels: label("plain"), ..of("node", 3) },
        NodeSpec {
            labels: label("tainted"),
            taints: vec![taint],
            extended: [("example.com/gpu".to_owned(), "100".to_owned())].into(),
            ..of("gpu", 2)
        },
    ]
}

/// The settings that the cases were recorded with.
fn configuration(settings: TraceSettings) -> Value {
    let frameworks: Vec<&str> = Kinds::built_in().iter().map(Kind::framework).collect();
    // The usual dispatcher and timeout of upstream.
    let mut file = json!({
        "integrations": {"frameworks": frameworks}, "multiKueue": {},
        "featureGates": {"SparkApplicationIntegration": true},
    });
    match settings {
        TraceSettings::Base => file["waitForPodsReady"] = json!({"timeout": "30m"}),
        TraceSettings::WithoutQueueName => {
            file["waitForPodsReady"] = json!({"timeout": "30m"});
            file["manageJobsWithoutQueueName"] = json!(true);
        }
        TraceSettings::PodsReady => {
            file["waitForPodsReady"] = json!({
                "timeout": "12s", "recoveryTimeout": "12s", "blockAdmission": false,
                "requeuingStrategy": {
                    "timestamp": "Eviction", "backoffLimitCount": 1, "backoffBaseSeconds": 12,
                    "backoffMaxSeconds": 60,
                },
            });
        }
    }
    file
}
