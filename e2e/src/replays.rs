//! Replays recorded cases on a fresh control plane with the CRDs and webhooks.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Context;
use harness::{Cluster, Component, LabPlan, Launch, Process, TestLab, free_port, secs};
use jobs::{Kind, Kinds};
use replay::{Case, Config, RecordedCases, ReplayReport, ReplayTarget};
use serde_json::json;

use crate::{local_webhooks, trace_replays};

/// The program under test.
const MANAGER: &str = "sluice-manager";

/// The namespace of the manager.
const NAMESPACE: &str = "kueue-system";

/// Two cores with other work on them are slow.
const TIMEOUT: Duration = secs(60);

/// Loads the cases of all files and replays them, one manager after another for the settings they were recorded with.
///
/// # Errors
/// If a file cannot be read, or the control plane or the manager does not start.
pub async fn replay(files: &[PathBuf]) -> anyhow::Result<ReplayReport> {
    let mut recording = RecordedCases::default();
    for file in files {
        replay::load(file, &mut recording)?;
    }
    let mut report = replay::run_operators(&recording.operators);
    if recording.answers.is_empty() && recording.traces.is_empty() {
        // In memory: no program is needed.
        return Ok(report);
    }
    build_what_is_missing()?;
    report.absorb(replay_answers(&recording.answers).await?);
    report.absorb(trace_replays::replay(&recording.traces).await?);
    Ok(report)
}

/// Replays single requests on a control plane without controllers.
async fn replay_answers(cases: &[Case]) -> anyhow::Result<ReplayReport> {
    if cases.is_empty() {
        return Ok(ReplayReport::default());
    }
    let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
    let cluster = lab.cluster("manager").await?;
    // The cases were recorded without: they would change Jobs and pods before those are read back.
    for component in [Component::ControllerManager, Component::Scheduler] {
        cluster.kill(component)?;
    }
    let setting = Setting::choose(&lab)?;
    install(&cluster, &setting).await?;
    let target = ReplayTarget::new(cluster.client());
    let mut report = ReplayReport::default();
    for config in [Config::Base, Config::Variant1, Config::Variant2] {
        let chosen: Vec<Case> =
            cases.iter().filter(|case| case.config == config).cloned().collect();
        if chosen.is_empty() {
            continue;
        }
        let manager = start_manager(&lab, &cluster, &setting, config).await?;
        replay::until_served(&target, TIMEOUT).await.with_context(|| manager.log_tail(40))?;
        report.absorb(replay::run(&target, &chosen).await.with_context(|| manager.log_tail(40))?);
        manager.terminate(TIMEOUT).await?;
    }
    Ok(report)
}

/// A build of this tool alone builds the manager too, in the same profile. The tool itself is running and stays.
fn build_what_is_missing() -> anyhow::Result<()> {
    if harness::program(MANAGER).is_ok() {
        return Ok(());
    }
    eprintln!("building {MANAGER}");
    let own = std::env::current_exe()?;
    let optimised = own.components().any(|part| part.as_os_str() == "release");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--workspace", "--exclude", "e2e", "--bins"]).current_dir(root());
    if optimised {
        cargo.arg("--release");
    }
    let status = cargo.status().context("running cargo")?;
    anyhow::ensure!(status.success(), "cargo build: {status}");
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where the manager listens, and where its files are.
struct Setting {
    webhooks: u16,
    health: u16,
    metrics: u16,
    folder: PathBuf,
}

impl Setting {
    fn choose(lab: &TestLab) -> anyhow::Result<Self> {
        let folder = lab.state().directory.clone();
        Ok(Self { webhooks: free_port()?, health: free_port()?, metrics: free_port()?, folder })
    }
}

/// The manifests that users apply, webhooks on loopback.
async fn install(cluster: &Cluster, setting: &Setting) -> anyhow::Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    cluster.apply(&namespace.to_string(), NAMESPACE).await?;
    for folder in ["crds/manifests", "config/webhook"] {
        let manifests = local_webhooks::manifests(&root().join(folder), setting.webhooks)?;
        cluster.apply(&manifests, NAMESPACE).await?;
    }
    Ok(())
}

async fn start_manager(
    lab: &TestLab,
    cluster: &Cluster,
    setting: &Setting,
    config: Config,
) -> anyhow::Result<Process> {
    let file = setting.folder.join(format!("{config:?}.yaml"));
    std::fs::write(&file, configuration(setting, config))
        .with_context(|| format!("writing {}", file.display()))?;
    let manager = Launch::of(MANAGER)
        .arg("--components=webhooks")
        .arg("--config")
        .arg(&file)
        .arg("--kubeconfig")
        .arg(cluster.state().kubeconfig())
        .start(lab)?;
    let health = SocketAddr::from((Ipv4Addr::LOCALHOST, setting.health));
    manager.ready(health, "/readyz", TIMEOUT).await?;
    Ok(manager)
}

/// The settings that the cases were recorded with.
fn configuration(setting: &Setting, config: Config) -> String {
    let Setting { webhooks, health, metrics, .. } = setting;
    let frameworks: Vec<&str> = Kinds::built_in().iter().map(Kind::framework).collect();
    let mut file = json!({
        "integrations": {"frameworks": frameworks},
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "webhook": {"host": "127.0.0.1", "port": webhooks},
        "health": {"healthProbeBindAddress": format!("127.0.0.1:{health}")},
        "metrics": {"bindAddress": format!("127.0.0.1:{metrics}")},
    });
    match config {
        Config::Base => {}
        Config::Variant1 => {
            file["manageJobsWithoutQueueName"] = true.into();
            file["featureGates"] = json!({"ConcurrentAdmission": true, "PriorityBoost": true, "PartialAdmission": false});
        }
        Config::Variant2 => {
            file["managedJobsNamespaceSelector"] = json!({"matchLabels": {"kueue": "yes"}});
            let off = VARIANT_2_OFF.iter().map(|gate| ((*gate).to_owned(), false.into()));
            let mut gates: serde_json::Map<_, _> = off.collect();
            gates.insert("RejectUpdatesToCQWithInvalidOnFlavors".into(), true.into());
            file["featureGates"] = gates.into();
        }
    }
    file.to_string()
}

/// Feature gates that are off in the second variant; those of topology-aware scheduling go together.
const VARIANT_2_OFF: &[&str] = &[
    "TopologyAwareScheduling",
    "TASProfileMixed",
    "TASFailedNodeReplacement",
    "TASFailedNodeReplacementFailFast",
    "TASReplaceNodeOnPodTermination",
    "TASReplaceNodeOnNodeTaints",
    "TASAssignmentsEncodingByHostnamePrefix",
    "TASMultiLayerTopology",
    "TASHandleOverlappingFlavors",
    "TASRecomputeAssignmentWithinSchedulingCycle",
    "TASCacheNodeMatchResults",
    "TASCachingRemainingResources",
    "TASCacheTopologyTree",
    "TASValidateWorkloadSliceSize",
    "WorkloadIdentifierAnnotations",
    "AdmissionGatedBy",
    "ElasticJobsViaWorkloadSlices",
    "WorkloadPriorityClassDefaulting",
    "WorkloadValidateResourcesAreNonNegative",
    "WorkloadValidationForPodSetMetadata",
];
