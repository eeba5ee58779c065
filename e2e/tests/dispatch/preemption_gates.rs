//! Orchestrated preemption between two workers with queues of their own (docs/reference/multikueue.md §2.6).

use anyhow::{Result, ensure};
use crds::{meta::is_true, names::gates::MULTI_KUEUE, v1beta2::Workload};
use e2e::{
    installation::{Installation, TIMEOUT},
    objects::{self, LONG},
    waits,
};
use harness::{Cluster, TestLab};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;

/// Both workers are full of a Job of low priority, and would preempt it for one of a higher priority. One of them does.
pub(crate) async fn one_of_two_workers_preempts(
    lab: &'static TestLab,
    installation: &Installation<'_>,
    workers: [&Cluster; 2],
) -> Result<()> {
    let hub = &installation.hub;
    let space = lab.space("gates").await?;
    let namespace = space.namespace();
    for worker in workers {
        worker.add_nodes(&objects::own_nodes(namespace, 1, "2")).await?;
        objects::own_queue(worker, namespace, "2", &[]).await?;
    }
    objects::own_queue(hub, namespace, "6", &workers.map(Cluster::name)).await?;
    let class = json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
        "metadata": {"name": "urgent"}, "value": 100});
    hub.apply(&class.to_string(), namespace).await?;

    let jobs: Api<Job> = hub.api(namespace);
    let admitted = |one: &Workload| is_true(&one.status.conditions, "Admitted");
    for name in ["low-1", "low-2", "urgent"] {
        let mut job = objects::job(name, 2, "1", LONG);
        if name == "urgent" {
            job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!(name);
        }
        jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
        let what = (name, "is admitted");
        waits::until_workload((hub, namespace), what, 2 * TIMEOUT, admitted).await?;
    }
    // The victim's statistics are not ordered with the admission of another Workload.
    let workloads = hub.api::<Workload>(namespace);
    let is_counted = |all: &[Workload]| all.iter().any(was_evicted);
    hub.until_all(&workloads, "", "one has an eviction", TIMEOUT, is_counted).await?;
    let (mut n_open, mut evictions) = (0, Vec::new());
    for worker in workers {
        let clones = worker.api::<Workload>(namespace).list(&ListParams::default()).await?.items;
        n_open += clones.iter().filter(|one| one.status.open_gate(MULTI_KUEUE).is_some()).count();
    }
    for low in workloads.list(&ListParams::default()).await?.items.into_iter().filter(was_evicted) {
        evictions.push((low.metadata.name, low.status.scheduling_stats, low.status.conditions));
    }
    ensure!((n_open, evictions.len()) == (1, 1), "{n_open} open, evicted: {evictions:#?}");
    for name in ["low-1", "low-2", "urgent"] {
        jobs.delete(name, &DeleteParams::background()).await?;
    }
    for worker in workers {
        let none = |all: &[Workload]| all.is_empty();
        worker.until_all(&worker.api(namespace), "", "no clone is left", TIMEOUT, none).await?;
    }
    Ok(())
}

/// Whether the statistics of a Workload name an eviction.
fn was_evicted(workload: &Workload) -> bool {
    workload.status.scheduling_stats.as_ref().is_some_and(|stats| !stats.evictions.is_empty())
}
