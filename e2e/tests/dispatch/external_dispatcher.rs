//! Clusters that another program nominates (docs/reference/multikueue.md §1.10, §2.4).

use anyhow::{Result, ensure};
use crds::{meta::is_true, v1beta2::Workload};
use e2e::{
    installation::{Installation, TIMEOUT},
    objects, waits,
};
use harness::{Cluster, TestLab};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::queued_workers::{no_clone_is_left, queues};

/// The program that nominates, as dispatcher of the configuration and as field manager.
const DISPATCHER: &str = "example.com/by-name";

/// The block `multiKueue` of the configuration.
pub(crate) fn configuration() -> Value {
    json!({"multiKueue": {"dispatcherName": DISPATCHER}})
}

/// Nothing is sent before the program nominates. The first cluster, that of `without`, never admits the Workload; the second one is
/// added, admits it, and the Job runs there. The list goes, though the program owns it by server-side apply.
pub(crate) async fn another_program_nominates(
    lab: &'static TestLab,
    installation: &Installation<'_>,
) -> Result<()> {
    let [without, with, _] = installation.workers.as_slice() else {
        anyhow::bail!("three workers")
    };
    let space = lab.space("external").await?;
    let (namespace, hub) = (space.namespace(), &installation.hub);
    queues(hub, (without, with), namespace).await?;
    let jobs: Api<Job> = hub.api(namespace);
    let job = serde_json::from_value(objects::job("named", 1, "1", 1))?;
    jobs.create(&PostParams::default(), &job).await?;

    let workloads: Api<Workload> = hub.api(namespace);
    let reserved = |one: &Workload| is_true(&one.status.conditions, "QuotaReserved");
    let (place, what) = ((hub, namespace), ("named", "has quota"));
    let name = waits::until_workload(place, what, TIMEOUT, reserved).await?.name_any();
    nominate(&workloads, &name, &[without.name()]).await?;
    has_clone(without, namespace).await?;
    let early = with.api::<Workload>(namespace).list(&ListParams::default()).await?;
    ensure!(early.items.is_empty(), "only what is nominated gets a clone: {early:?}");

    nominate(&workloads, &name, &[without.name(), with.name()]).await?;
    let finished = |one: &Workload| is_true(&one.status.conditions, "Finished");
    let end = hub.until(&workloads, &name, "the Job is over", 2 * TIMEOUT, finished).await?;
    let status = &end.status;
    ensure!(status.cluster_name.as_deref() == Some(with.name()), "{status:?}");
    ensure!(status.nominated_cluster_names.is_empty(), "{status:?}");
    no_clone_is_left([without, with], namespace).await
}

/// Nominates clusters as another program does, under a field manager of its own.
async fn nominate(workloads: &Api<Workload>, name: &str, clusters: &[&str]) -> Result<()> {
    let list = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "status": {"nominatedClusterNames": clusters},
    });
    let as_dispatcher = PatchParams::apply(DISPATCHER);
    workloads.patch_status(name, &as_dispatcher, &Patch::Apply(list)).await?;
    Ok(())
}

async fn has_clone(worker: &Cluster, namespace: &str) -> Result<()> {
    let one = |all: &[Workload]| all.len() == 1;
    let clones = worker.api::<Workload>(namespace);
    worker.until_all(&clones, "", "the nominated worker has a clone", TIMEOUT, one).await?;
    Ok(())
}
