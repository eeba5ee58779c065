//! Work that waits for the queue of a worker moves to an agent's worker that gets room (docs/reference/dispatch.md §3).

use anyhow::{Context, Result, ensure};
use crds::{meta::is_true, v1beta2::Workload};
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, TIMEOUT},
    objects::{self, LONG},
    waits,
};
use harness::{Cluster, LabPlan, RunVerdict, TestLab};
use k8s_openapi::api::{batch::v1::Job, events::v1::Event};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::mixed_workers::until_known;

/// One of its workers has queues, so the other tests have labs of their own.
static LAB: OnceCell<TestLab> = OnceCell::const_new();

/// The first Job takes the room that the agent reports. The second one waits for the queue of the other worker, which has no
/// quota. When the first Job is deleted, the second one moves, runs once, and leaves nothing behind.
#[tokio::test]
async fn queued_work_moves_to_a_worker_that_gets_room() -> Result<()> {
    let lab = LAB.get_or_try_init(|| TestLab::start(LabPlan { workers: 2, audit: true })).await?;
    let plan = InstallationPlan { workers: 2, elects: false };
    let installation = Installation::of(lab, plan, InstallationPorts::choose()?).await?;
    installation.install().await?;
    let [queues, rooms] = installation.workers.as_slice() else { anyhow::bail!("two workers") };
    let own = Installation::of_worker(lab, queues.name(), InstallationPorts::choose()?).await?;
    own.install().await?;
    let _queues = own.first_manager().await?;
    let _manager = installation.first_manager().await?;
    let _agent = installation.agent(rooms, &[]).await?;
    installation.register().await?;

    let space = lab.space("moves").await?;
    let (namespace, hub) = (space.namespace(), &installation.hub);
    for worker in [queues, rooms] {
        worker.add_nodes(&objects::own_nodes(namespace, 1, "2")).await?;
    }
    objects::own_queue(queues, namespace, "0", &[]).await?;
    objects::own_queue(hub, namespace, "4", &[queues.name(), rooms.name()]).await?;
    rebalance(hub, [queues, rooms], namespace).await?;
    until_known(hub, (queues, rooms), namespace).await?;

    let (jobs, place): (Api<Job>, _) = (hub.api(namespace), (hub, namespace));
    submit(&jobs, "first", LONG).await?;
    let admitted = |one: &Workload| is_true(&one.status.conditions, "Admitted");
    waits::until_workload(place, ("first", "is admitted"), 2 * TIMEOUT, admitted).await?;
    submit(&jobs, "second", 1).await?;
    let clones: Api<Workload> = queues.api(namespace);
    let waits_there = |all: &[Workload]| all.len() == 1;
    queues.until_all(&clones, "", "the clone waits", 2 * TIMEOUT, waits_there).await?;

    jobs.delete("first", &DeleteParams::background()).await?;
    let second =
        waits::until_workload(place, ("second", "is admitted"), 2 * TIMEOUT, admitted).await?;
    let cluster = second.status.cluster_name.as_deref();
    ensure!(cluster == Some(rooms.name()), "{:?}", second.status);
    let none = |all: &[Workload]| all.is_empty();
    queues.until_all(&clones, "", "no clone is left", TIMEOUT, none).await?;
    let is_complete = |job: &Job| objects::job_is(job, "Complete");
    hub.until(&jobs, "second", "is complete", 2 * TIMEOUT, is_complete).await?;
    waits::ensure_verdict(space.observer(), ("second", 2), &[RunVerdict::Once]).await?;
    is_reported(hub, namespace, rooms.name()).await
}

async fn submit(jobs: &Api<Job>, name: &str, seconds: u32) -> Result<()> {
    let job = serde_json::from_value(objects::job(name, 2, "1", seconds))?;
    jobs.create(&PostParams::default(), &job).await?;
    Ok(())
}

/// Gives the MultiKueueConfig of the test a policy under which queued work moves.
async fn rebalance(hub: &Cluster, workers: [&Cluster; 2], name: &str) -> Result<()> {
    let text = [
        json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "DispatchPolicy",
            "metadata": {"name": name}, "spec": {"rebalance": {"enabled": true, "cooldown": "1s"}},
        }),
        json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
            "metadata": {"name": name, "annotations": {"sluice.dev/policy": name}},
            "spec": {"clusters": workers.map(Cluster::name)},
        }),
    ];
    Ok(hub.apply(&text.map(|one| one.to_string()).join("\n---\n"), name).await?)
}

/// The Workload says once where it went.
async fn is_reported(hub: &Cluster, namespace: &str, to: &str) -> Result<()> {
    let events: Api<Event> = hub.api(namespace);
    let moves = |one: &&Event| one.reason.as_deref() == Some("Rebalanced");
    let published = |all: &[Event]| all.iter().any(|one| moves(&one));
    let all = hub.until_all(&events, "", "has the Event", TIMEOUT, published).await?;
    let [note] = all.iter().filter(moves).map(|one| &one.note).collect::<Vec<_>>()[..] else {
        anyhow::bail!("one Event: {all:?}")
    };
    let note = note.as_deref().context("a note")?;
    ensure!(note.starts_with(&format!("Worker cluster \"{to}\" has room")), "{note}");
    Ok(())
}
