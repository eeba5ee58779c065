//! What is tested on any manager with two workers (`e2e::cluster_cases`), on the nodes of these clusters, all cases at once.

use anyhow::Result;
use e2e::cluster_cases::{CaseNodes, CasePlace, ClusterCase};
use futures::future::join_all;
use harness::{Cluster, Observer, make_namespace};

use crate::clusters::{STARTED, TestClusters, kueue_crds};
use crate::deleted_programs;

/// Runs all of them, and deletes what they made. Those that look at the room of nodes run after the others, one by one, and at last the
/// programs are deleted while Jobs run.
pub(crate) async fn run_all(clusters: &TestClusters) -> Result<()> {
    let all: Vec<Cluster> = clusters.all().cloned().collect();
    let (alone, beside): (Vec<_>, Vec<_>) =
        ClusterCase::ALL.into_iter().partition(|case| case.runs_alone());
    let nodes = clusters.nodes();
    let cases = beside.into_iter().map(|case| Box::pin(run((&all, nodes), case)));
    join_all(cases).await.into_iter().collect::<Result<()>>()?;
    for case in alone {
        run((&all, nodes), case).await?;
    }
    deleted_programs::lose_no_job(clusters).await?;
    delete(&all, deleted_programs::PLACE).await
}

/// Deletes what cases left that did not end.
pub(crate) async fn delete_all(clusters: &TestClusters) -> Result<()> {
    let all: Vec<Cluster> = clusters.all().cloned().collect();
    // A test that failed early has installed no CRDs, and run no case.
    if kueue_crds(&all[0]).await?.is_empty() {
        return Ok(());
    }
    let cases = ClusterCase::ALL.map(ClusterCase::name);
    for name in cases.into_iter().chain([deleted_programs::PLACE]) {
        delete(&all, name).await?;
    }
    Ok(())
}

async fn run((all, nodes): (&[Cluster], CaseNodes), case: ClusterCase) -> Result<()> {
    let ended = observed((all, nodes), case).await;
    if let Err(error) = &ended {
        // Only one of several is the error of the test.
        eprintln!("{error:#}");
    }
    ended.and(delete(all, case.name()).await)
}

async fn observed((all, nodes): (&[Cluster], CaseNodes), case: ClusterCase) -> Result<()> {
    for cluster in all {
        make_namespace(cluster, case.name()).await?;
    }
    let observer = Observer::start(all, case.name(), STARTED).await?;
    let place = CasePlace {
        hub: &all[0],
        workers: &all[1..],
        namespace: case.name(),
        observer: &observer,
        nodes,
    };
    case.run(&place).await
}

/// Deletes jobs first, then what they use, while the manager lets them go.
async fn delete(all: &[Cluster], name: &str) -> Result<()> {
    const KINDS: [&str; 6] = [
        "clusterqueue",
        "admissioncheck",
        "multikueueconfig",
        "dispatchpolicy",
        "resourceflavor",
        "workloadpriorityclass",
    ];
    let delete = ["delete", "--ignore-not-found", "--timeout=180s"];
    let hub = &all[0];
    hub.kubectl(&[&delete[..], &["jobs,pods", "--all", "-n", name]].concat()).await?;
    let objects = KINDS.map(|kind| format!("{kind}/{name}"));
    let objects = objects.each_ref().map(String::as_str);
    let namespace = format!("namespace/{name}");
    hub.kubectl(&[&delete[..], &[&namespace]].concat()).await?;
    hub.kubectl(&[&delete[..], &objects].concat()).await?;
    for worker in &all[1..] {
        worker.kubectl(&[&delete[..], &[&namespace]].concat()).await?;
    }
    Ok(())
}
