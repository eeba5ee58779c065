//! The installation that all tests share: two workers, and kinds of jobs of which some are served later or not everywhere.

use anyhow::{Context, Result};
use e2e::installation::{Installation, InstallationPlan, InstallationPorts, NAMESPACE, Program};
use harness::{Cluster, LabPlan, TestLab};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::kind_under_test::{
    COURSE, COURSE_CRD, JOB_SET_CRD, KUBEFLOW_CRDS, TRAINING, training_crd, training_definition,
};

/// The group of the made-up kind that no cluster serves before a test installs it.
pub(crate) const SERVED_LATER: &str = "later.example.com";

/// The group of a kind that the manager serves in another version at first.
pub(crate) const OTHER_VERSION: &str = "versions.example.com";

/// The group of the made-up kind that the second worker does not serve before a test installs it.
pub(crate) const SERVED_PARTLY: &str = "partly.example.com";

/// The group of the made-up kind with a CRD that is deleted on the hub.
pub(crate) const DELETED: &str = "deleted.example.com";

/// The group of the made-up kind with a CRD that is deleted on the first worker.
pub(crate) const DELETED_THERE: &str = "partly-deleted.example.com";

/// A lab with two workers and the installation on it.
pub(crate) struct SharedInstallation {
    lab: TestLab,
    ports: InstallationPorts,
    _manager: Program,
    _agents: Vec<Program>,
}

/// The CRD of LeaderWorkerSet.
const LEADER_WORKER_SET_CRD: &str = include_str!("leader-worker-set-crd.yaml");

const FRAMEWORKS: &[&str] = &[
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/jaxjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "deployment",
    "statefulset",
    "pod",
];

const PLAN: InstallationPlan = InstallationPlan { workers: 2, elects: false };

static SHARED: OnceCell<SharedInstallation> = OnceCell::const_new();

impl SharedInstallation {
    pub(crate) async fn get() -> Result<&'static Self> {
        SHARED.get_or_try_init(Self::build).await
    }

    /// The installation, with clients of this test's own.
    pub(crate) async fn installation(&'static self) -> Result<Installation<'static>> {
        Installation::of(&self.lab, PLAN, self.ports).await
    }

    async fn build() -> Result<Self> {
        let lab = TestLab::start(LabPlan { workers: PLAN.workers, audit: true }).await?;
        let ports = InstallationPorts::choose()?;
        let groups = [TRAINING, SERVED_LATER, OTHER_VERSION, SERVED_PARTLY, DELETED, DELETED_THERE];
        let mut definitions = groups.map(training_definition).to_vec();
        definitions.push(COURSE.to_owned());
        let installation = Installation::of(&lab, PLAN, ports).await?;
        let installation = installation.with_job_kinds(&definitions.join("---\n"))?;
        installation.install().await?;
        let (hub, workers) = (&installation.hub, &installation.workers);
        for cluster in std::iter::once(hub).chain(workers) {
            for group in [TRAINING, DELETED, DELETED_THERE] {
                serve(cluster, &training_crd(group)).await?;
            }
            serve(cluster, COURSE_CRD).await?;
            serve(cluster, KUBEFLOW_CRDS).await?;
            serve(cluster, LEADER_WORKER_SET_CRD).await?;
        }
        for cluster in std::iter::once(hub).chain(workers.first()) {
            serve(cluster, &training_crd(SERVED_PARTLY)).await?;
        }
        let frameworks = json!({
            "integrations": {"frameworks": FRAMEWORKS},
        });
        let manager = installation.first_manager_with(&frameworks).await?;
        // JobSet is built in. Its CRD may come after the manager, as on a cluster that gets its operator later.
        for cluster in std::iter::once(hub).chain(workers) {
            serve(cluster, JOB_SET_CRD).await?;
        }
        installation.register().await?;
        let mut agents = Vec::new();
        for worker in workers {
            agents.push(installation.agent(worker, &[]).await?);
        }
        drop(installation);
        Ok(Self { lab, ports, _manager: manager, _agents: agents })
    }
}

/// Installs a CRD and waits until it is served.
pub(crate) async fn serve(cluster: &Cluster, definition: &str) -> Result<()> {
    cluster.apply(definition, NAMESPACE).await.context("installing a CRD")
}
