//! The clusters of the test: those that `SLUICE_E2E_KUBECONFIGS` names, or else a lab with real nodes.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use e2e::cluster_cases::{CaseNodes, ClusterCase};
use e2e::installation::{NAMESPACE, TIMEOUT, root};
use e2e::program_image;
use harness::{Cluster, GivenClusters, LabPlan, TestLab, program, secs};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use lab::ClusterState;
use lab::real_nodes::node::{GATEWAY, RealNodeCounts};
use tempfile::TempDir;

use crate::deleted_programs;

const PLAN: LabPlan = LabPlan { workers: 2, audit: false };

/// The workers are of unequal size, as those of kind are.
const NODES: RealNodeCounts = RealNodeCounts { manager: 1, each_worker: 1, more_of_last: 1 };

/// The namespace of the sample queue, and the name of its LocalQueue.
pub(crate) const TEAM: &str = "team-a";

/// The API group of the CRDs that the test installs.
const KUEUE: &str = "kueue.x-k8s.io";

/// From the first write of a Deployment until its pods are ready.
pub(crate) const STARTED: Duration = secs(120);

/// A manager and two workers. Their nodes have the images of manager, agent and busybox.
pub(crate) struct TestClusters {
    pub(crate) given: GivenClusters,
    pub(crate) folder: TempDir,
    /// The lab, unless the clusters are those of the environment. It ends with this value.
    lab: Option<TestLab>,
}

impl TestClusters {
    pub(crate) async fn open() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (given, lab) = match GivenClusters::of_environment(folder.path()).await? {
            Some(given) => (given, None),
            None => {
                let lab = TestLab::start_with_real_nodes(PLAN, NODES).await?;
                (of_lab(&lab, &folder).await?, Some(lab))
            }
        };
        let clusters = Self { given, folder, lab };
        for cluster in clusters.all() {
            ensure_unused(cluster).await?;
        }
        Ok(clusters)
    }

    pub(crate) fn hub(&self) -> &Cluster {
        &self.given.manager
    }

    pub(crate) fn workers(&self) -> &[Cluster] {
        &self.given.workers
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Cluster> {
        [self.hub()].into_iter().chain(self.workers())
    }

    /// What the cases know about the nodes.
    pub(crate) fn nodes(&self) -> CaseNodes {
        if self.lab.is_some() { CaseNodes::Unequal } else { CaseNodes::OfClusters }
    }

    /// The workers of the lab with their real nodes, unless the clusters are those of the environment.
    pub(crate) fn states_of_lab_workers(&self) -> Option<&[ClusterState]> {
        self.lab.as_ref()?.state().clusters.get(1..)
    }

    /// Deletes what was installed, and what was submitted before it: the manager lets queues and jobs go.
    pub(crate) async fn clean(&self) -> Result<()> {
        let delete = ["delete", "--ignore-not-found", "--timeout=120s"];
        let jobs = ["jobs", "--all", "-n", TEAM];
        self.hub().kubectl(&[&delete[..], &jobs[..]].concat()).await?;
        for (cluster, folders) in self.all().zip([
            &["config/samples/multikueue", "config/default"][..],
            &["config/samples/multikueue/namespace", "config/worker"],
            &["config/samples/multikueue/namespace", "config/worker"],
        ]) {
            for folder in folders {
                let folder = root().join(folder).display().to_string();
                cluster.kubectl(&[&delete[..], &["-k", &folder]].concat()).await?;
            }
        }
        for cluster in self.all() {
            let namespaces: Api<Namespace> = cluster.cluster_api();
            for namespace in made_namespaces() {
                cluster.until_gone(&namespaces, namespace, TIMEOUT).await?;
            }
            let left = kueue_crds(cluster).await?;
            ensure!(left.is_empty(), "{} has {left}", cluster.name());
        }
        Ok(())
    }
}

/// The namespaces that the test makes and deletes. Those of cases have objects of all namespaces by the same name.
fn made_namespaces() -> impl Iterator<Item = &'static str> {
    [NAMESPACE, TEAM, deleted_programs::PLACE]
        .into_iter()
        .chain(ClusterCase::ALL.map(ClusterCase::name))
}

/// Refuses a cluster with something that the test would take for its own, and delete.
async fn ensure_unused(cluster: &Cluster) -> Result<()> {
    let (name, there) = (cluster.name(), names(cluster).await?);
    if let Some(namespace) = made_namespaces().find(|made| there.iter().any(|one| one == made)) {
        bail!(
            "{name} has the namespace {namespace}, which the test makes and deletes: use clusters without it"
        );
    }
    ensure!(
        kueue_crds(cluster).await?.is_empty(),
        "{name} has CRDs of {KUEUE}, which the test installs and deletes: use clusters without them"
    );
    Ok(())
}

/// The CRDs of [`KUEUE`] that a cluster has, a line each.
pub(crate) async fn kueue_crds(cluster: &Cluster) -> Result<String> {
    let all = cluster.kubectl(&["get", "crds", "-o", "name"]).await?;
    let of_kueue: Vec<&str> = all.lines().filter(|line| line.contains(KUEUE)).collect();
    Ok(of_kueue.join("\n"))
}

/// The names of a cluster's namespaces.
async fn names(cluster: &Cluster) -> Result<Vec<String>> {
    let names = cluster.kubectl(&["get", "namespaces", "-o", "name"]).await?;
    Ok(names
        .lines()
        .filter_map(|line| line.strip_prefix("namespace/"))
        .map(str::to_owned)
        .collect())
}

/// The clusters of a lab as those of anybody: by their kubeconfigs. Their nodes get the images.
async fn of_lab(lab: &TestLab, folder: &TempDir) -> Result<GivenClusters> {
    let clusters = &lab.state().clusters;
    for (place, cluster) in clusters.iter().enumerate() {
        let image = if place == 0 { "sluice-manager" } else { "sluice-agent" };
        let archive = program_image::archive(folder.path(), image)?;
        let cluster = lab.cluster(&cluster.name).await?;
        for node in &cluster.state().real_nodes {
            cluster.running_node(node)?.import(&program("sluice-lab")?, &archive)?;
        }
    }
    let kubeconfigs: Vec<_> = clusters.iter().map(|cluster| cluster.kubeconfig()).collect();
    // Pods reach the API servers of other clusters through the gateway.
    let workers = clusters.iter().skip(1);
    let servers = workers.map(|worker| format!("https://{GATEWAY}:{}", worker.api_port)).collect();
    Ok(GivenClusters::of(&kubeconfigs, Some(servers), folder.path()).await?)
}
