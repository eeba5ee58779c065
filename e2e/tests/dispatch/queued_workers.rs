//! Two workers with queues, of which only the second one has quota.

use anyhow::Result;
use crds::v1beta2::Workload;
use e2e::{installation::TIMEOUT, objects};
use harness::Cluster;
use kube::Api;

/// Makes queues of two CPUs on the manager and on both workers; the first worker has no quota.
pub(crate) async fn queues(
    hub: &Cluster,
    (without, with): (&Cluster, &Cluster),
    namespace: &str,
) -> Result<()> {
    for (worker, cpu) in [(without, "0"), (with, "2")] {
        worker.add_nodes(&objects::own_nodes(namespace, 1, "2")).await?;
        objects::own_queue(worker, namespace, cpu, &[]).await?;
    }
    objects::own_queue(hub, namespace, "2", &[without.name(), with.name()]).await
}

/// Waits until no worker has a clone.
pub(crate) async fn no_clone_is_left(workers: [&Cluster; 2], namespace: &str) -> Result<()> {
    for worker in workers {
        let clones: Api<Workload> = worker.api(namespace);
        let none = |all: &[Workload]| all.is_empty();
        worker.until_all(&clones, "", "no clone is left", TIMEOUT, none).await?;
    }
    Ok(())
}
