//! A worker with an agent and one with queues of its own under one MultiKueueConfig (docs/reference/dispatch.md §2).

use anyhow::{Result, ensure};
use crds::{
    meta::is_true,
    v1alpha1::ClusterCapacity,
    v1beta2::{MultiKueueCluster, Workload},
};
use e2e::{
    installation::{Installation, TIMEOUT},
    objects::{self, LONG},
    waits,
};
use harness::{Cluster, RunVerdict, TestLab};
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, api::PostParams};

/// The first Job takes the room that the agent reports. The second one gets quota, and the queues of the other worker admit it.
/// No agent runs on the third worker yet.
pub(crate) async fn known_room_comes_first_and_then_the_queues(
    lab: &'static TestLab,
    installation: &Installation<'_>,
) -> Result<()> {
    let hub = &installation.hub;
    let [_, queues, rooms] = installation.workers.as_slice() else {
        anyhow::bail!("three workers")
    };
    let _agent = installation.agent(rooms, &[]).await?;
    let space = lab.space("mixed").await?;
    let namespace = space.namespace();
    for worker in [queues, rooms] {
        worker.add_nodes(&objects::own_nodes(namespace, 1, "2")).await?;
    }
    objects::own_queue(queues, namespace, "2", &[]).await?;
    objects::own_queue(hub, namespace, "4", &[queues.name(), rooms.name()]).await?;
    until_known(hub, (queues, rooms), namespace).await?;

    let jobs: Api<Job> = hub.api(namespace);
    for (name, worker) in [("first", rooms), ("second", queues)] {
        let job = serde_json::from_value(objects::job(name, 2, "1", LONG))?;
        jobs.create(&PostParams::default(), &job).await?;
        let admitted = |one: &Workload| is_true(&one.status.conditions, "Admitted");
        let place = (hub, namespace);
        let admitted =
            waits::until_workload(place, (name, "is admitted"), 2 * TIMEOUT, admitted).await?;
        let cluster = admitted.status.cluster_name.as_deref();
        ensure!(cluster == Some(worker.name()), "{name}: {:?}", admitted.status);
    }
    for name in ["first", "second"] {
        let is_complete = |job: &Job| objects::job_is(job, "Complete");
        let complete =
            async { Ok(hub.until(&jobs, name, "is complete", 2 * TIMEOUT, is_complete).await?) };
        waits::while_pods_end(&installation.workers, (namespace, name), complete).await?;
        waits::ensure_verdict(space.observer(), (name, 2), &[RunVerdict::Once]).await?;
    }
    Ok(())
}

/// Waits until the manager reaches the worker with queues, and has the nodes of the other one with their labels.
pub(crate) async fn until_known(
    hub: &Cluster,
    (queues, rooms): (&Cluster, &Cluster),
    namespace: &str,
) -> Result<()> {
    let clusters = hub.cluster_api::<MultiKueueCluster>();
    let active = |one: &MultiKueueCluster| is_true(&one.status.conditions, "Active");
    hub.until(&clusters, queues.name(), "is active", 2 * TIMEOUT, active).await?;
    let copies = hub.cluster_api::<ClusterCapacity>();
    let has_nodes = |one: &ClusterCapacity| objects::own_classes(one, namespace).next().is_some();
    hub.until(&copies, rooms.name(), "has the nodes", 2 * TIMEOUT, has_nodes).await?;
    Ok(())
}
