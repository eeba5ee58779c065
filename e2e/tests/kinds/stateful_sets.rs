//! StatefulSets on the manager's own cluster and on workers: one Workload for all pods.

use anyhow::{Context, Result, ensure};
use crds::{
    meta::is_true,
    names::{annotations::POD_SUSPENDING_PARENT, labels::POD_GROUP_NAME},
    v1beta2::Workload,
};
use e2e::{installation::TIMEOUT, listed_pods::are_listed, objects::phase, waits};
use harness::{Cluster, annotation};
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    pods::{PodsFixture, is_gated},
    shared_installation::SharedInstallation,
};

fn stateful_set(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "store", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {
            "serviceName": "store", "replicas": replicas,
            "selector": {"matchLabels": {"app": "store"}},
            "template": {
                "metadata": {
                    "labels": {"app": "store"}, "annotations": {annotation::RUN_SECONDS: "3600"},
                },
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}},
                    }],
                },
            },
        },
    })
}

async fn until_scaled(
    fixture: &PodsFixture,
    sets: &Api<StatefulSet>,
    replicas: usize,
) -> Result<()> {
    let scaled = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    sets.patch("store", &PatchParams::default(), &scaled).await?;
    until_running(fixture, replicas).await
}

/// Until there are so many pods, all of one group, and none waits.
async fn until_running(fixture: &PodsFixture, replicas: usize) -> Result<()> {
    let run = |all: &[Pod]| all.len() == replicas && !all.iter().any(is_gated);
    let what = format!("{replicas} pods run");
    let pods = fixture.hub.until_all(&fixture.pods(), "", &what, 2 * TIMEOUT, run).await?;
    let group = |pod: &Pod| pod.annotations().get(POD_GROUP_NAME).cloned();
    ensure!(pods.windows(2).all(|pair| group(&pair[0]) == group(&pair[1])), "one group");
    ensure!(pods.iter().all(|pod| group(pod).is_some()), "every pod is of a group");
    Ok(())
}

/// Until the only Workload asks for so many pods, and has quota or is on hold.
async fn until_workload(fixture: &PodsFixture, pods: i32, admitted: bool) -> Result<()> {
    let is = |all: &[Workload]| {
        let [workload] = all else { return false };
        let count = workload.spec.pod_sets.first().and_then(|set| set.count);
        let conditions = &workload.status.conditions;
        is_true(conditions, "Admitted") == admitted
            && workload.status.is_on_hold() != admitted
            && (count == Some(pods) || !admitted)
    };
    let workloads: Api<Workload> = fixture.hub.api(fixture.space.namespace());
    let what = format!("one Workload of {pods} pods, admitted: {admitted}");
    fixture.hub.until_all(&workloads, "", &what, 2 * TIMEOUT, is).await?;
    Ok(())
}

/// A set runs, goes to zero and gives its quota back, and comes back with another size.
#[tokio::test]
async fn a_stateful_set_has_one_workload_from_zero_to_zero() -> Result<()> {
    let fixture = PodsFixture::new("statefulset", "3").await?;
    let sets: Api<StatefulSet> = fixture.hub.api(fixture.space.namespace());
    let created =
        sets.create(&PostParams::default(), &serde_json::from_value(stateful_set(2))?).await?;
    let template = &serde_json::to_value(&created)?["spec"]["template"]["metadata"];
    ensure!(template["annotations"][POD_SUSPENDING_PARENT] == "statefulset", "{template}");
    until_running(&fixture, 2).await?;
    until_workload(&fixture, 2, true).await?;

    let other = Patch::Merge(json!({"spec": {"replicas": 1}}));
    let refused = sets.patch("store", &PatchParams::default(), &other).await;
    ensure!(refused.is_err(), "a running set changes its size to zero only");
    until_scaled(&fixture, &sets, 0).await?;
    until_workload(&fixture, 0, false).await?;
    fixture.until_quota_is_free().await?;
    until_scaled(&fixture, &sets, 3).await?;
    until_workload(&fixture, 3, true).await?;

    sets.delete("store", &DeleteParams::background()).await?;
    let gone = <[Pod]>::is_empty;
    fixture.hub.until_all(&fixture.pods(), "", "all are gone", 2 * TIMEOUT, gone).await?;
    fixture.until_quota_is_free().await
}

/// Until a cluster has so many pods of the set, and all of them run.
async fn until_pods_run(cluster: &Cluster, namespace: &str, number: usize) -> Result<()> {
    let run = |all: &[Pod]| {
        all.len() == number && all.iter().all(|pod| !is_gated(pod) && phase(pod) == "Running")
    };
    let what = format!("{number} pods run");
    cluster.until_all(&cluster.api::<Pod>(namespace), "", &what, 2 * TIMEOUT, run).await?;
    Ok(())
}

/// Until a worker has nothing of the set.
async fn until_nothing_is_left(worker: &Cluster, namespace: &str) -> Result<()> {
    let none = |all: &[StatefulSet]| all.is_empty();
    let sets: Api<StatefulSet> = worker.api(namespace);
    worker.until_all(&sets, "", "no set is left", 2 * TIMEOUT, none).await?;
    let none = |all: &[Workload]| all.is_empty();
    let clones: Api<Workload> = worker.api(namespace);
    worker.until_all(&clones, "", "no clone is left", 2 * TIMEOUT, none).await?;
    waits::until_no_pod_is_left(worker, namespace, 2 * TIMEOUT).await
}

/// The pods are made on one of two workers from a copy of the set; those of the hub stay gated.
#[tokio::test]
async fn a_stateful_set_runs_on_one_worker() -> Result<()> {
    let (fixture, workers) = PodsFixture::on_workers("dispatched_statefulset", "3").await?;
    let namespace = fixture.space.namespace();
    let sets: Api<StatefulSet> = fixture.hub.api(namespace);
    sets.create(&PostParams::default(), &serde_json::from_value(stateful_set(2))?).await?;
    let admitted = |all: &[Workload]| {
        all.iter().any(|one| {
            is_true(&one.status.conditions, "Admitted") && one.status.cluster_name.is_some()
        })
    };
    let hub = &fixture.hub;
    let workloads = fixture.workloads();
    let all = hub.until_all(&workloads, "", "it is admitted", 2 * TIMEOUT, admitted).await?;
    let chosen = all.first().and_then(|one| one.status.cluster_name.clone());
    let (runs, idle): (Vec<&Cluster>, Vec<&Cluster>) =
        workers.iter().partition(|worker| Some(worker.name()) == chosen.as_deref());
    let (Some(runs), Some(idle)) = (runs.first(), idle.first()) else {
        anyhow::bail!("one of the workers runs it: {chosen:?}")
    };
    until_pods_run(runs, namespace, 2).await?;
    until_nothing_is_left(idle, namespace).await?;
    let home = fixture.pods().list(&Default::default()).await?;
    ensure!(home.iter().all(is_gated), "the pods of the hub stay gated");
    let workload = all.first().context("a Workload")?.name_any();
    let installation = SharedInstallation::get().await?.installation().await?;
    are_listed(&installation, (namespace, &workload), 2).await?;

    // It goes to zero, and comes back with another size.
    let scale = |replicas: u32| Patch::Merge(json!({"spec": {"replicas": replicas}}));
    sets.patch("store", &PatchParams::default(), &scale(0)).await?;
    until_workload(&fixture, 0, false).await?;
    until_nothing_is_left(runs, namespace).await?;
    fixture.until_quota_is_free().await?;
    sets.patch("store", &PatchParams::default(), &scale(3)).await?;
    until_workload(&fixture, 3, true).await?;
    let all = workloads.list(&Default::default()).await?;
    let chosen = all.iter().find_map(|one| one.status.cluster_name.clone());
    let runs = workers.iter().find(|worker| Some(worker.name()) == chosen.as_deref());
    until_pods_run(runs.context("a worker")?, namespace, 3).await?;

    sets.delete("store", &DeleteParams::background()).await?;
    for worker in &workers {
        until_nothing_is_left(worker, namespace).await?;
    }
    fixture.until_quota_is_free().await
}
