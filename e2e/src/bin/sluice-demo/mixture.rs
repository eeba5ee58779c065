//! Jobs of other kinds, side by side with the batch: the samples of a group of pods, a JobSet, an AppWrapper and a RayCluster,
//! submitted unchanged. The agents operate Ray and AppWrapper; the controller of JobSets is played on the workers.

use anyhow::{Context, Result};
use e2e::installation::{self, NAMESPACE, TIMEOUT};
use e2e::objects;
use harness::{Cluster, GaveUp, Ledger, PlayedOperator, RunVerdict, resource_of};
use jobs::{Kind, Kinds};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use crate::environment::{DemoEnvironment, TEAM};
use crate::job_table::{JobState, JobTable};

/// Integrations that the manager enables.
const FRAMEWORKS: [&str; 5] = ["batch/job", "pod", JOB_SET, APP_WRAPPER, RAY_CLUSTER];

const JOB_SET: &str = "jobset.x-k8s.io/jobset";
const APP_WRAPPER: &str = "workload.codeflare.dev/appwrapper";
const RAY_CLUSTER: &str = "ray.io/raycluster";

/// The CRD of JobSet, which no program of this repository installs.
const JOB_SET_CRD: &str = include_str!("../../../tests/kinds/jobset-crd.yaml");

/// The samples, and the kind of the Workload's owner of each, as the table names it.
const SAMPLES: [(&str, &str); 4] = [
    ("pod-group.yaml", "pod"),
    ("job-set.yaml", "jobset"),
    ("app-wrapper.yaml", "appwrapper"),
    ("ray-cluster.yaml", "raycluster"),
];

/// The kind that serves and has no end.
const ENDLESS: &str = "raycluster";

/// Name of the sample RayCluster.
const RAY: &str = "ray";

/// What is asked of the pods of a sample that end: the name of their controller, and how many must succeed.
const WORK: [(&str, usize); 2] = [("render", 3), ("wrapped", 2)];

/// Further blocks of the manager's configuration.
pub(crate) fn configuration() -> Value {
    json!({"integrations": {"frameworks": FRAMEWORKS}})
}

/// What the table says about one of them; `None` before it has a Workload.
pub(crate) type OtherState = (&'static str, Option<JobState>);

/// Installs the kinds on the manager cluster, which has no operator of them, and the CRD of JobSet everywhere.
pub(crate) async fn install(hub: &Cluster, workers: &[Cluster]) -> Result<()> {
    installation::operated_kinds(hub).await?;
    for cluster in std::iter::once(hub).chain(workers) {
        cluster.apply(JOB_SET_CRD, NAMESPACE).await.context("installing JobSet")?;
    }
    Ok(())
}

/// Plays the controller of JobSets.
pub(crate) fn operators(workers: &[Cluster]) -> Result<Vec<PlayedOperator>> {
    let kind = kind(JOB_SET)?;
    Ok(workers.iter().map(|worker| PlayedOperator::start(worker, &kind, TEAM)).collect())
}

fn kind(framework: &str) -> Result<Kind> {
    let kind = Kinds::built_in().of_framework(framework);
    Ok(kind.with_context(|| format!("no kind {framework}"))?.clone())
}

fn api(cluster: &Cluster, kind: &Kind) -> Api<DynamicObject> {
    Api::namespaced_with(cluster.client(), TEAM, &resource_of(kind))
}

/// Submits the samples as they are.
pub(crate) async fn submit(hub: &Cluster) -> Result<()> {
    let folder = installation::root().join("config/samples/kinds");
    for (file, _) in SAMPLES {
        let text = std::fs::read_to_string(folder.join(file)).context("reading a sample")?;
        for object in serde_saphyr::from_multiple::<Value>(&text)? {
            let text = |field: &str| object[field].as_str().unwrap_or_default();
            let kind = Kinds::built_in().find(text("apiVersion"), text("kind"));
            let kind = kind.with_context(|| format!("{file}: an unknown kind"))?.clone();
            let object: DynamicObject = serde_json::from_value(object)?;
            let created = api(hub, &kind).create(&PostParams::default(), &object).await;
            created.with_context(|| format!("submitting {} of {file}", object.name_any()))?;
        }
    }
    Ok(())
}

/// Whether all of them are over, or run if they have no end.
pub(crate) fn is_over(table: &JobTable) -> bool {
    SAMPLES.iter().all(|(_, name)| {
        let state = table.row(name).map(|row| row.state);
        let wanted = if *name == ENDLESS { JobState::Running } else { JobState::Finished };
        state == Some(wanted) || state == Some(JobState::Failed)
    })
}

/// Waits until the manager's RayCluster shows that its copy is ready, and deletes it.
pub(crate) async fn end_ray_cluster(hub: &Cluster) -> Result<()> {
    let clusters = api(hub, &kind(RAY_CLUSTER)?);
    let ready = |one: &DynamicObject| {
        one.data.pointer("/status/state").is_some_and(|state| state == "ready")
    };
    hub.until(&clusters, RAY, "is ready", TIMEOUT, ready).await?;
    clusters.delete(RAY, &DeleteParams::background()).await?;
    Ok(hub.until_gone(&clusters, RAY, TIMEOUT).await?)
}

/// What is not as it should be. `states` is from before the RayCluster was deleted.
pub(crate) async fn faults(
    stage: &DemoEnvironment<'_>,
    ledger: &Ledger,
    states: &[OtherState],
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (name, state) in states {
        let wanted = if *name == ENDLESS { JobState::Running } else { JobState::Finished };
        if *state != Some(wanted) {
            faults.push(format!("{name} is {state:?}"));
        }
    }
    for (controller, work) in WORK {
        let judgement = ledger.judge(controller, work);
        if judgement.verdict != RunVerdict::Once {
            faults.push(judgement.to_string());
        }
    }
    let ray = ledger.judge(RAY, 1);
    if ray.runs.len() != 1 {
        faults.push(format!("the RayCluster ran {} times: {ray}", ray.runs.len()));
    }
    let pods = stage.installation.hub.api::<Pod>(TEAM).list(&Default::default()).await?;
    let ended = pods.iter().filter(|pod| objects::phase(pod) == "Succeeded");
    if ended.count() != 2 {
        faults.push("the two pods of the group do not show the end of their copies".to_owned());
    }
    faults.extend(left_behind(stage).await?.into_iter().map(|gave_up| gave_up.to_string()));
    Ok(faults)
}

/// The state of each of them.
pub(crate) fn states(table: &JobTable) -> Vec<OtherState> {
    SAMPLES.iter().map(|(_, name)| (*name, table.row(name).map(|row| row.state))).collect()
}

/// Copies that stay on workers.
async fn left_behind(stage: &DemoEnvironment<'_>) -> Result<Vec<GaveUp>> {
    let mut left = Vec::new();
    for framework in [JOB_SET, APP_WRAPPER, RAY_CLUSTER] {
        let kind = kind(framework)?;
        for worker in &stage.installation.workers {
            let none = |all: &[DynamicObject]| all.is_empty();
            let what = format!("no {} is left", kind.name());
            let gone = worker.until_all(&api(worker, &kind), "", &what, TIMEOUT, none).await;
            left.extend(gone.err());
        }
    }
    Ok(left)
}
