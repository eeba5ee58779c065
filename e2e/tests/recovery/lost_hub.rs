//! Jobs, a group of pods and jobs of other kinds run on two workers. Their manager ends for good; another control plane without any
//! of their objects becomes the manager cluster. The command is killed before and after each of its writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use crds::{
    meta::is_true,
    v1alpha1::ClusterCapacity,
    v1beta2::{ClusterQueue, MultiKueueCluster, Workload},
};
use e2e::{
    installation::{
        Installation, InstallationPlan, InstallationPorts, NAMESPACE, Program, TIMEOUT,
    },
    objects::{self, LONG},
};
use harness::{Cluster, RayHeads, Space, TestLab, annotation, program, secs};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::other_kinds;

/// The end of the work, on a busy machine.
const END: Duration = secs(400);

/// Number of pods of all work.
const PODS: usize = 4 + other_kinds::PODS;

/// Number of Workloads of all work.
const WORKLOADS: usize = 6;

/// Cpu of the queue.
const QUOTA: &str = "16";

/// Writes about a Workload, in their order.
const WRITES: [&str; 8] = [
    "rebuild-job",
    "rebuild-workload",
    "rebuild-reserve",
    "rebuild-admit",
    "rebuild-stamp-job",
    "rebuild-stamp-clone",
    "rebuild-unmark-job",
    "rebuild-unmark-workload",
];

#[tokio::test]
async fn running_work_goes_on_under_a_new_manager_cluster() -> Result<()> {
    let lab = TestLab::shared(3).await?;
    let space = lab.space("lost_hub").await?;
    let namespace = space.namespace();
    let heads = RayHeads::start().context("playing Ray heads")?;
    let plan = InstallationPlan { workers: 2, elects: true };
    let lost = Installation::of(lab, plan, InstallationPorts::choose()?).await?;
    let lost = lost.with_operators(heads.proxy());
    lost.install().await?;
    other_kinds::install(&lost.hub).await?;
    let _controllers = other_kinds::play(&lost.workers, namespace).await?;
    lost.register().await?;
    let manager = lost.first_manager_with(&enabled()).await?;
    let mut agents = Vec::new();
    for worker in &lost.workers {
        worker.add_nodes(&objects::own_nodes(namespace, 4, "2")).await?;
        agents.push(lost.agent(worker, &[]).await?);
    }
    objects::own_queue(&lost.hub, namespace, QUOTA, &["worker-1", "worker-2"]).await?;
    start_work(&lost.hub, namespace).await?;
    let before = until_running(&lost, namespace).await?;
    let admitted_before = admitted(&lost.hub, namespace).await?;
    let submitted = other_kinds::submitted(&lost.hub, namespace).await?;
    manager.process.terminate(TIMEOUT).await?;

    let next = Installation::of(lab, plan, InstallationPorts::choose()?).await?;
    let next = next.with_operators(heads.proxy()).led_from("worker-3").await?;
    let manager = take_over(&next, namespace).await?;
    let lab = RebuiltLab { hub: &next.hub, workers: &next.workers, space: &space };
    lab.plan_only().await?;
    lab.die_at_every_write().await?;
    lab.rebuild().await?;
    ensure!(before == running(&next.workers, namespace).await?, "a pod was started again");
    let admitted_after = admitted(&next.hub, namespace).await?;
    ensure!(admitted_before == admitted_after, "{admitted_before:?}, then {admitted_after:?}");
    other_kinds::until_restored(&next.hub, namespace, &submitted).await?;
    lab.expect_end(&before).await?;
    drop((manager, agents));
    Ok(())
}

/// The new manager cluster, with everything but jobs and Workloads.
async fn take_over(next: &Installation<'_>, namespace: &str) -> Result<Program> {
    next.install().await?;
    other_kinds::install(&next.hub).await?;
    configure(&next.hub).await?;
    next.register().await?;
    let manager = next.first_manager_with(&enabled()).await?;
    objects::own_queue(&next.hub, namespace, QUOTA, &["worker-1", "worker-2"]).await?;
    until_shared(&next.hub).await?;
    Ok(manager)
}

fn enabled() -> Value {
    let frameworks: Vec<&str> =
        ["batch/job", "pod"].into_iter().chain(other_kinds::FRAMEWORKS).collect();
    json!({ "integrations": { "frameworks": frameworks } })
}

/// The ConfigMap that the command reads, and that a manager in a pod would read.
async fn configure(hub: &Cluster) -> Result<()> {
    let mut text = enabled();
    text["apiVersion"] = json!("config.kueue.x-k8s.io/v1beta2");
    text["kind"] = json!("Configuration");
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "kueue-manager-config", "namespace": NAMESPACE },
        "data": { "controller_manager_config.yaml": text.to_string() },
    });
    Ok(hub.apply(&map.to_string(), NAMESPACE).await?)
}

/// Two Jobs, a group of pods, and jobs of other kinds.
async fn start_work(hub: &Cluster, namespace: &str) -> Result<()> {
    for name in ["train-a", "train-b"] {
        let mut job = objects::job(name, 1, "2", LONG);
        job["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
        job["spec"]["ttlSecondsAfterFinished"] = json!(3600);
        hub.apply(&job.to_string(), namespace).await?;
    }
    for name in ["member-0", "member-1"] {
        let pod = objects::in_group(objects::pod(name, "queue", LONG), "group", 2);
        hub.apply(&pod.to_string(), namespace).await?;
    }
    other_kinds::submit(hub, namespace).await
}

fn is_running(pod: &Pod) -> bool {
    objects::phase(pod) == "Running"
}

/// The pods of all workers, by cluster and uid.
type PodUids = BTreeSet<(String, String)>;

async fn running(workers: &[Cluster], namespace: &str) -> Result<PodUids> {
    let mut uids = PodUids::new();
    for worker in workers {
        let pods: Api<Pod> = worker.api(namespace);
        let pods = pods.list(&ListParams::default()).await?.items.into_iter();
        let uids_there = pods.filter_map(|pod| pod.metadata.uid);
        uids.extend(uids_there.map(|uid| (worker.name().to_owned(), uid)));
    }
    Ok(uids)
}

/// Waits until the manager shows that all of it runs.
async fn until_running(lost: &Installation<'_>, namespace: &str) -> Result<PodUids> {
    let (jobs, pods): (Api<Job>, Api<Pod>) = (lost.hub.api(namespace), lost.hub.api(namespace));
    let is_ready = |job: &Job| job.status.as_ref().and_then(|status| status.ready) == Some(1);
    for name in ["train-a", "train-b"] {
        lost.hub.until(&jobs, name, "is ready", 3 * TIMEOUT, is_ready).await?;
    }
    for name in ["member-0", "member-1"] {
        lost.hub.until(&pods, name, "runs", 3 * TIMEOUT, is_running).await?;
    }
    other_kinds::until_running(&lost.hub, namespace).await?;
    let uids = running(&lost.workers, namespace).await?;
    ensure!(uids.len() == PODS, "{uids:?}");
    Ok(uids)
}

/// Lets all pods of the workers end, but for those of RayClusters, which would be made again.
async fn end_pods(workers: &[Cluster], namespace: &str) -> Result<()> {
    let ends = Patch::Merge(json!({"metadata": {"annotations": {annotation::RUN_SECONDS: "1"}}}));
    for worker in workers {
        let pods: Api<Pod> = worker.api(namespace);
        let ending = ListParams::default().labels("!ray.io/cluster");
        for pod in pods.list(&ending).await?.items {
            pods.patch(&pod.name_any(), &PatchParams::default(), &ends).await?;
        }
    }
    Ok(())
}

/// The worker of each admitted Workload, by name.
async fn admitted(hub: &Cluster, namespace: &str) -> Result<BTreeMap<String, String>> {
    let workloads: Api<Workload> = hub.api(namespace);
    let all = workloads.list(&ListParams::default()).await?.items.into_iter();
    let admitted = all.filter(|one| is_true(&one.status.conditions, "Admitted"));
    Ok(admitted.filter_map(|one| Some((one.metadata.name?, one.status.cluster_name?))).collect())
}

/// Waits until the new manager has observed that the workers name another one.
async fn until_shared(hub: &Cluster) -> Result<()> {
    let clusters: Api<MultiKueueCluster> = hub.cluster_api();
    for name in ["worker-1", "worker-2"] {
        let is_shared = |one: &MultiKueueCluster| {
            one.status.conditions.iter().any(|one| one.reason == "OriginShared")
        };
        hub.until(&clusters, name, "names another manager", 2 * TIMEOUT, is_shared).await?;
    }
    Ok(())
}

struct RebuiltLab<'a> {
    hub: &'a Cluster,
    workers: &'a [Cluster],
    space: &'a Space,
}

impl RebuiltLab<'_> {
    /// Runs the command. Gives whether it succeeded, and what it printed.
    async fn run(&self, further: &[&str], failpoint: Option<&str>) -> Result<(bool, String)> {
        let mut command = Command::new(program("sluicectl")?);
        command.env("KUBECONFIG", self.hub.state().kubeconfig());
        if let Some(failpoint) = failpoint {
            command.env("FAILPOINTS", format!("{failpoint}=return"));
        }
        let output = command.args(["dr", "rebuild", "-o", "json"]).args(further).output().await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ok = output.status.success();
        Ok((ok, if ok { text(&output.stdout) } else { text(&output.stderr) }))
    }

    /// The states of the rows of a run that succeeds.
    async fn states(&self, further: &[&str]) -> Result<Vec<String>> {
        let (ok, out) = self.run(further, None).await?;
        ensure!(ok, "{further:?}: {out}");
        let report: Value = serde_json::from_str(&out).context("JSON")?;
        let rows = report["workloads"].as_array().cloned().unwrap_or_default();
        let own = rows.iter().filter(|row| row["namespace"] == self.space.namespace());
        Ok(own
            .map(|row| format!("{} {}", row["state"].as_str().unwrap_or_default(), row["reason"]))
            .collect())
    }

    /// A dry run and a run without consent write nothing.
    async fn plan_only(&self) -> Result<()> {
        let states = self.states(&["--dry-run"]).await?;
        ensure!(states == vec!["Rebuild null"; WORKLOADS], "{states:?}");
        let (ok, errors) = self.run(&[], None).await?;
        ensure!(!ok && errors.contains("--yes"), "{errors}");
        let workloads: Api<Workload> = self.hub.api(self.space.namespace());
        let jobs: Api<Job> = self.hub.api(self.space.namespace());
        let n_workloads = workloads.list(&ListParams::default()).await?.items.len();
        let n_jobs = jobs.list(&ListParams::default()).await?.items.len();
        ensure!((n_workloads, n_jobs) == (0, 0), "a dry run wrote");
        Ok(())
    }

    /// Each run dies at a write, before it or after it; the next one continues.
    async fn die_at_every_write(&self) -> Result<()> {
        for write in WRITES.into_iter().chain(["rebuild-entry"]) {
            for moment in ["before", "after"] {
                let failpoint = format!("{write}.{moment}");
                let (ok, out) = self.run(&["--yes"], Some(&failpoint)).await?;
                ensure!(!ok && !out.contains("sluicectl:"), "{failpoint} was not reached: {out}");
            }
        }
        Ok(())
    }

    /// The last run completes what is left; the next one finds nothing to do.
    async fn rebuild(&self) -> Result<()> {
        self.states(&["--yes"]).await?;
        let states = self.states(&["--yes"]).await?;
        ensure!(states == vec!["Present null"; WORKLOADS], "{states:?}");
        for worker in self.workers {
            let capacities: Api<ClusterCapacity> = worker.cluster_api();
            let managers = capacities.get("local").await?.spec.managers;
            let hubs: BTreeSet<&str> = managers.iter().map(|one| one.cluster.as_str()).collect();
            ensure!(hubs.len() == 1, "{}: {managers:?}", worker.name());
        }
        Ok(())
    }

    /// The work ends once, its results arrive, and nothing is left on the workers.
    async fn expect_end(&self, before: &PodUids) -> Result<()> {
        let namespace = self.space.namespace();
        end_pods(self.workers, namespace).await?;
        let jobs: Api<Job> = self.hub.api(namespace);
        for name in ["train-a", "train-b"] {
            let complete = |job: &Job| objects::job_is(job, "Complete");
            self.hub.until(&jobs, name, "is complete", END, complete).await?;
        }
        other_kinds::expect_results(self.hub, namespace).await?;
        other_kinds::delete_ray_cluster(self.hub, self.workers, namespace).await?;
        other_kinds::expect_no_copy(self.workers, namespace).await?;
        let workloads: Api<Workload> = self.hub.api(namespace);
        let finished =
            |all: &[Workload]| all.iter().all(|one| is_true(&one.status.conditions, "Finished"));
        self.hub.until_all(&workloads, "", "all are finished", END, finished).await?;
        for worker in self.workers {
            let clones: Api<Workload> = worker.api(namespace);
            worker.until_all(&clones, "", "no clone is left", END, <[Workload]>::is_empty).await?;
        }
        let queues: Api<ClusterQueue> = self.hub.cluster_api();
        let is_free = |queue: &ClusterQueue| queue.status.reserving_workloads == 0;
        self.hub.until(&queues, namespace, "has no reservation", TIMEOUT, is_free).await?;
        let after = running(self.workers, namespace).await?;
        ensure!(after.is_subset(before), "a pod was started again: {after:?}, not {before:?}");
        Ok(())
    }
}
