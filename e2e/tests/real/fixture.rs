//! The installation on real nodes that the tests share, and a namespace of each test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use crds::v1beta2::{ClusterQueue, Workload};
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT},
    objects, waits,
};
use harness::{Cluster, LabPlan, RunVerdict, Space, TestLab};
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use lab::real_nodes::configuration::BUSYBOX_IMAGE;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

const PLAN: InstallationPlan = InstallationPlan { workers: 2, elects: false };

/// The directory of a node in which containers write down what they do, one directory per test.
const DIARIES: &str = "/var/lib/diaries";

struct SharedInstallation {
    lab: TestLab,
    ports: InstallationPorts,
    _programs: Vec<Program>,
}

static SHARED: OnceCell<SharedInstallation> = OnceCell::const_new();

impl SharedInstallation {
    async fn build() -> Result<Self> {
        let plan = LabPlan { workers: PLAN.workers, audit: false };
        let lab = TestLab::start_with_real_nodes(plan, 1).await?;
        let ports = InstallationPorts::choose()?;
        let installation = Installation::of(&lab, PLAN, ports).await?;
        installation.install().await?;
        let frameworks = json!({"integrations": {"frameworks": ["batch/job", "pod"]}});
        let mut programs = vec![installation.manager_with(true, &frameworks, &[]).await?];
        installation.register().await?;
        for worker in &installation.workers {
            programs.push(installation.agent(worker, &[]).await?);
        }
        drop(installation);
        Ok(Self { lab, ports, _programs: programs })
    }
}

/// A namespace with a queue of both workers.
pub(crate) struct RealFixture {
    pub(crate) hub: Cluster,
    workers: Vec<Cluster>,
    space: Space,
}

impl RealFixture {
    pub(crate) async fn open(test: &str) -> Result<Self> {
        let shared = SHARED.get_or_try_init(SharedInstallation::build).await?;
        let installation = Installation::of(&shared.lab, PLAN, shared.ports).await?;
        let space = shared.lab.space(test).await?;
        let workers = ["worker-1", "worker-2"];
        objects::queue(&installation.hub, space.namespace(), "2", &workers).await?;
        cover_memory(&installation.hub, space.namespace()).await?;
        Ok(Self { hub: installation.hub, workers: installation.workers, space })
    }

    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    /// Submits an object of this shape to the manager.
    pub(crate) async fn submit(&self, object: &Value) -> Result<()> {
        Ok(self.hub.apply(&object.to_string(), self.namespace()).await?)
    }

    /// The Workload of a job, once it has a worker, and that worker.
    pub(crate) async fn until_placed(&self, job: &str) -> Result<(Workload, &Cluster)> {
        let place = (&self.hub, self.namespace());
        let placed = |one: &Workload| one.status.cluster_name.is_some();
        let workload = waits::until_workload(place, (job, "has a worker"), TIMEOUT, placed).await?;
        let name = workload.status.cluster_name.clone().unwrap_or_default();
        let worker = self.workers.iter().find(|worker| worker.name() == name);
        Ok((workload, worker.with_context(|| format!("no worker {name}"))?))
    }

    /// The pods of the test on a worker, once so many run.
    pub(crate) async fn until_running(&self, worker: &Cluster, count: usize) -> Result<Vec<Pod>> {
        let run = |all: &[Pod]| {
            let phases = all.iter().filter_map(|pod| pod.status.as_ref()?.phase.as_deref());
            phases.filter(|phase| *phase == "Running").count() == count
        };
        let pods: Api<Pod> = worker.api(self.namespace());
        Ok(worker.until_all(&pods, "", &format!("{count} run"), 2 * TIMEOUT, run).await?)
    }

    /// The condition with which a Job ends.
    pub(crate) async fn until_ended(&self, job: &str, end: &str) -> Result<JobCondition> {
        let condition = |job: &Job| {
            let all = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
            all.into_iter().find(|one| one.type_ == end && one.status == "True").cloned()
        };
        let ended = |job: &Job| condition(job).is_some();
        let what = format!("is {end}");
        let jobs: Api<Job> = self.hub.api(self.namespace());
        let job = self.hub.until(&jobs, job, &what, 2 * TIMEOUT, ended).await?;
        condition(&job).with_context(|| format!("{} has no condition {end}", job.name_any()))
    }

    /// Waits until no worker has a pod in the namespace.
    pub(crate) async fn until_no_pod_is_left(&self) -> Result<()> {
        for worker in &self.workers {
            let pods: Api<Pod> = worker.api(self.namespace());
            worker.until_all(&pods, "", "no pod is left", TIMEOUT, <[Pod]>::is_empty).await?;
        }
        Ok(())
    }

    /// The observer saw the Job run once.
    pub(crate) async fn ensure_once(&self, job: &str, pods: usize) -> Result<()> {
        let judgement = self.space.observer().judge(job, pods, TIMEOUT).await?;
        ensure!(judgement.verdict == RunVerdict::Once, "{judgement}");
        Ok(())
    }

    /// What the containers of the test wrote on all nodes of a worker, in order per container.
    pub(crate) fn diary(&self, worker: &Cluster) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for node in &worker.state().real_nodes {
            let path = self.diary_below(&node.directory.join("var-lib"));
            if path.exists() {
                let text = std::fs::read_to_string(&path);
                let text = text.with_context(|| path.display().to_string())?;
                lines.extend(text.lines().map(str::to_owned));
            }
        }
        Ok(lines)
    }

    /// The containers wrote on no other worker.
    pub(crate) fn ensure_only_on(&self, worker: &Cluster) -> Result<()> {
        for other in self.workers.iter().filter(|other| other.name() != worker.name()) {
            let lines = self.diary(other)?;
            ensure!(lines.is_empty(), "{} ran containers, too: {lines:?}", other.name());
        }
        Ok(())
    }

    /// The file `diary` of this test, below what a node has in place of `/var/lib`.
    fn diary_below(&self, var_lib: &Path) -> PathBuf {
        let below = DIARIES.trim_start_matches("/var/lib/");
        var_lib.join(below).join(self.namespace()).join("diary")
    }

    /// The spec of a pod whose container runs a script; `note WORD` writes a line `POD WORD` to the diary.
    pub(crate) fn pod_spec(&self, script: &str) -> Value {
        let note = "note() { echo \"$(hostname) $1\" >>/diaries/diary; }";
        json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 20,
            "containers": [{
                "name": "main",
                "image": BUSYBOX_IMAGE,
                "command": ["sh", "-c", format!("{note}\n{script}")],
                "resources": {"requests": {"cpu": "100m"}},
                "volumeMounts": [{"name": "diaries", "mountPath": "/diaries"}],
            }],
            "volumes": [{
                "name": "diaries",
                "hostPath": {
                    "path": format!("{DIARIES}/{}", self.namespace()),
                    "type": "DirectoryOrCreate",
                },
            }],
        })
    }

    /// A Job of such pods, which fails with its first pod.
    pub(crate) fn job(&self, name: &str, pods: usize, script: &str) -> Value {
        let mut job = objects::job(name, pods, "100m", 1);
        job["spec"]["backoffLimit"] = json!(0);
        job["spec"]["template"] = json!({"spec": self.pod_spec(script)});
        job
    }
}

/// Gives the queue of a test quota of memory as well: a container with a memory limit requests as much.
async fn cover_memory(hub: &Cluster, queue: &str) -> Result<()> {
    let quota = [("cpu", "2"), ("memory", "1Gi")]
        .map(|(resource, quota)| json!({"name": resource, "nominalQuota": quota}));
    let groups = json!([{
        "coveredResources": ["cpu", "memory"],
        "flavors": [{"name": queue, "resources": quota}],
    }]);
    let queues: Api<ClusterQueue> = hub.cluster_api();
    let patch = Patch::Merge(json!({"spec": {"resourceGroups": groups}}));
    queues.patch(queue, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The pods that noted a word, each once: a second line of a pod is an error.
pub(crate) fn noted(diary: &[String], word: &str) -> Result<BTreeSet<String>> {
    let mut pods = BTreeSet::new();
    for line in diary {
        if let Some(pod) = line.strip_suffix(word) {
            ensure!(pods.insert(pod.trim_end().to_owned()), "{line:?} is there twice: {diary:?}");
        }
    }
    Ok(pods)
}
