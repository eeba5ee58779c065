//! Manager and agents in pods, installed, registered and used by the commands of config/README.md.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::{
    meta,
    v1beta2::{MultiKueueCluster, ResourceFlavor},
};
use e2e::installation::{NAMESPACE, TIMEOUT, root};
use e2e::objects::{job_is, phase};
use harness::{Cluster, program};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use lab::kubeconfig;
use lab::real_nodes::configuration::BUSYBOX_IMAGE;
use serde_json::json;
use tokio::{
    process::Command,
    time::{sleep, timeout},
};

use crate::clusters::{STARTED, TEAM, TestClusters};
use crate::{cases, samples};

/// The pause before the logs are read again.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause between creates while a replica stops.
const BETWEEN_CREATES: Duration = Duration::from_millis(100);

/// Names a program that registers the workers, as `sluice-kind register` does.
const REGISTER: &str = "SLUICE_E2E_REGISTER";

/// The Job of the test.
const JOB: &str = "train";

/// The Lease of the managers, as the configuration file names it.
const LEASE: &str = "c1f6bfd2.kueue.x-k8s.io";

/// The name of a Service that every cluster has.
const SERVICE: &str = "kubernetes.default.svc.cluster.local";

/// What the API server's error says while it cannot connect to a webhook.
const UNREACHABLE: &str = "failed to call webhook";

/// Replicas of each Deployment.
const REPLICAS: usize = 2;

#[tokio::test]
#[ignore = "make test-real"]
async fn manager_and_agents_run_in_pods_as_the_readme_installs_them() -> Result<()> {
    let clusters = TestClusters::open().await?;
    let tested = installed_and_used(&clusters).await;
    // Clusters of others are left as they were, also by a test that failed.
    let deleted = cases::delete_all(&clusters).await;
    let cleaned = clusters.clean().await;
    tested.and(deleted).and(cleaned)
}

async fn installed_and_used(clusters: &TestClusters) -> Result<()> {
    let (hub, workers) = (clusters.hub(), clusters.workers());
    as_written(hub, "kubectl apply --server-side -k config/default").await?;
    for worker in workers {
        as_written(worker, "kubectl apply --server-side -k config/worker").await?;
        let namespace = root().join("config/samples/multikueue/namespace").display().to_string();
        worker.kubectl(&["apply", "--server-side", "-k", &namespace]).await?;
    }
    for worker in workers {
        until_all_run(worker, "sluice-agent").await?;
    }
    until_all_run(hub, "sluice-manager").await?;
    until_webhooks_answer(hub).await?;
    register_all(clusters).await?;
    as_written(hub, "kubectl apply --server-side -k config/samples/multikueue").await?;
    until_active(hub, workers).await?;

    let worker = job_runs_on(hub, workers).await?;
    service_resolves(worker).await?;
    logs_come_back(clusters).await?;
    leader_is_deleted(hub).await?;
    job_ends(hub, worker).await?;
    samples::are_run(hub).await?;
    until_all_run(hub, "sluice-manager").await?;
    ensure_sound(hub).await?;
    for worker in workers {
        until_all_run(worker, "sluice-agent").await?;
        ensure_sound(worker).await?;
    }
    cases::run_all(clusters).await
}

/// Runs a command of config/README.md, which starts in the repository.
async fn as_written(cluster: &Cluster, command: &str) -> Result<String> {
    let readme = std::fs::read_to_string(root().join("config/README.md"))?;
    ensure!(readme.contains(command), "config/README.md does not have the command {command}");
    let words = command.split(' ').skip(1).map(|word| {
        if word.starts_with("config/") {
            root().join(word).display().to_string()
        } else {
            word.to_owned()
        }
    });
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(cluster.kubectl(&words).await?)
}

/// Waits until all replicas of a Deployment are ready.
async fn until_all_run(cluster: &Cluster, name: &str) -> Result<()> {
    let deployments: Api<Deployment> = cluster.api(NAMESPACE);
    let ready = |deployment: &Deployment| {
        let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas);
        ready.and_then(|ready| usize::try_from(ready).ok()) == Some(REPLICAS)
    };
    let waited = cluster.until(&deployments, name, "is ready", STARTED, ready).await;
    if waited.is_err() {
        let logs =
            ["logs", "-n", NAMESPACE, "--prefix", "--tail=20", &format!("deployment/{name}")];
        let described = cluster.kubectl(&["describe", "pods", "-n", NAMESPACE]).await;
        eprintln!("{:?}\n{}", cluster.kubectl(&logs).await, described.unwrap_or_default());
    }
    waited?;
    Ok(())
}

/// Waits until the API server reaches the webhooks through their Service. kube-proxy learns the address of a pod only after the
/// pod is ready, and refuses connections to the Service until then.
async fn until_webhooks_answer(hub: &Cluster) -> Result<()> {
    let mut last = String::new();
    let answered = async {
        while let Err(error) = rehearse(hub).await {
            last = error.to_string();
            // Every other refusal is a fault of the installation.
            ensure!(last.contains(UNREACHABLE), error);
            sleep(PAUSE).await;
        }
        Ok(())
    };
    let answered = timeout(TIMEOUT, answered).await;
    answered.with_context(|| format!("no webhook answers in {TIMEOUT:?}: {last}"))?
}

/// Creates a ResourceFlavor, which is not stored. The API server refuses it if no webhook answers.
async fn rehearse(hub: &Cluster) -> kube::Result<ResourceFlavor> {
    let flavors: Api<ResourceFlavor> = hub.cluster_api();
    let rehearsed = PostParams { dry_run: true, ..PostParams::default() };
    let mut flavor = ResourceFlavor::default();
    flavor.metadata.name = Some("rehearsed".to_owned());
    flavors.create(&rehearsed, &flavor).await
}

/// Ends with the first create that is refused.
async fn until_refused(hub: &Cluster) -> Result<()> {
    loop {
        rehearse(hub).await.context("a create while a replica stops")?;
        sleep(BETWEEN_CREATES).await;
    }
}

/// Registers the workers, by the program that `SLUICE_E2E_REGISTER` names, or else by hand.
async fn register_all(clusters: &TestClusters) -> Result<()> {
    if let Some(program) = std::env::var_os(REGISTER).filter(|program| !program.is_empty()) {
        let ended = Command::new(&program).arg("register").status().await;
        let ended = ended.with_context(|| format!("running {}", program.display()))?;
        ensure!(ended.success(), "{} register: {ended}", program.display());
        return Ok(());
    }
    for (worker, server) in clusters.workers().iter().zip(&clusters.given.servers) {
        register(clusters, worker, server).await?;
    }
    Ok(())
}

/// Registers a worker by hand: a token, a kubeconfig with it, and the Secret on the manager.
async fn register(clusters: &TestClusters, worker: &Cluster, server: &str) -> Result<()> {
    let command = "kubectl create token sluice-hub -n kueue-system --duration=720h";
    let token = as_written(worker, command).await?;
    let kubeconfig = kubeconfig::with_token(worker.kubeconfig()?, token.trim());
    let kubeconfig = kubeconfig::render(&kubeconfig::at_server(kubeconfig, server))?;
    let name = worker.name();
    let path = clusters.folder.path().join(format!("{name}.kubeconfig"));
    std::fs::write(&path, kubeconfig)?;
    let from = format!("--from-file=kubeconfig={}", path.display());
    let secret = ["create", "secret", "generic", name, "-n", NAMESPACE, &from];
    clusters.hub().kubectl(&secret).await?;
    Ok(())
}

async fn until_active(hub: &Cluster, workers: &[Cluster]) -> Result<()> {
    let clusters: Api<MultiKueueCluster> = hub.cluster_api();
    let active = |one: &MultiKueueCluster| meta::is_true(&one.status.conditions, "Active");
    for worker in workers {
        hub.until(&clusters, worker.name(), "is active", TIMEOUT, active).await?;
    }
    Ok(())
}

/// Submits a Job to the sample queue and waits for its containers. Returns their worker.
async fn job_runs_on<'a>(hub: &Cluster, workers: &'a [Cluster]) -> Result<&'a Cluster> {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": JOB, "namespace": TEAM, "labels": {"kueue.x-k8s.io/queue-name": TEAM},
        },
        "spec": {"parallelism": 2, "completions": 2, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "main", "image": BUSYBOX_IMAGE,
                "command": ["sh", "-c", "echo of the container; until [ -e /tmp/go ]; do sleep 1; done"],
                "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}},
            }],
        }}},
    });
    hub.apply(&job.to_string(), TEAM).await?;
    let waits = workers.iter().map(|worker| Box::pin(until_two_run(worker)));
    let (pods, place, _) = futures::future::select_all(waits).await;
    pods?;
    workers.get(place).context("the worker")
}

/// A container of the Job finds a Service by its name.
async fn service_resolves(worker: &Cluster) -> Result<()> {
    let pods = until_two_run(worker).await?;
    let pod = pods.first().context("a pod")?;
    let look_up = ["exec", "-n", TEAM, pod, "--", "busybox", "nslookup", "-type=a", SERVICE];
    let resolved = async {
        // The servers of names may still start.
        while worker.kubectl(&look_up).await.is_err() {
            sleep(PAUSE).await;
        }
    };
    let late = format!("{SERVICE} does not resolve in a pod of {}", worker.name());
    timeout(TIMEOUT, resolved).await.context(late)
}

/// The manager's pods pass on what the containers of the Job write. The API server may not know yet that they serve it.
async fn logs_come_back(clusters: &TestClusters) -> Result<()> {
    let path = clusters.folder.path().join("manager.kubeconfig");
    std::fs::write(&path, kubeconfig::render(&clusters.hub().kubeconfig()?)?)?;
    let read = async {
        loop {
            let mut command = Command::new(program("sluicectl")?);
            command.env("KUBECONFIG", &path).args(["logs", "job/train", "-n", TEAM, "--all-pods"]);
            let output = command.output().await?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let of_containers = text.lines().filter(|line| line.ends_with("] of the container"));
            if output.status.success() && of_containers.count() == 2 {
                return anyhow::Ok(());
            }
            sleep(PAUSE).await;
        }
    };
    timeout(TIMEOUT, read).await.context("no logs of the Job come back")?
}

/// Deletes the pod that leads, as a drain of its node would. Meanwhile the API server reaches a webhook at any time.
async fn leader_is_deleted(hub: &Cluster) -> Result<()> {
    let leases: Api<Lease> = hub.api(NAMESPACE);
    let lease = leases.get(LEASE).await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).context("a holder")?;
    let pods: Api<Pod> = hub.api(NAMESPACE);
    let all = pods.list(&ListParams::default()).await?;
    let leader = all.iter().map(ResourceExt::name_any).find(|name| holder.starts_with(name));
    let leader = leader.with_context(|| format!("no pod is the leader {holder}"))?;
    hub.kubectl(&["delete", "pod", &leader, "-n", NAMESPACE, "--wait=false"]).await?;
    tokio::select! {
        gone = hub.until_gone(&pods, &leader, TIMEOUT) => Ok(gone?),
        refused = until_refused(hub) => refused,
    }
}

/// Lets the containers of the Job end, and waits until it is complete on the manager.
async fn job_ends(hub: &Cluster, worker: &Cluster) -> Result<()> {
    for pod in until_two_run(worker).await? {
        worker.kubectl(&["exec", "-n", TEAM, &pod, "--", "touch", "/tmp/go"]).await?;
    }
    let jobs: Api<Job> = hub.api(TEAM);
    let complete = |job: &Job| job_is(job, "Complete");
    hub.until(&jobs, JOB, "is complete", 2 * TIMEOUT, complete).await?;
    Ok(())
}

/// The names of the two pods of the team on a worker, once they run.
async fn until_two_run(worker: &Cluster) -> Result<Vec<String>> {
    let run = |all: &[Pod]| all.iter().filter(|pod| phase(pod) == "Running").count() == 2;
    let pods: Api<Pod> = worker.api(TEAM);
    let pods = worker.until_all(&pods, "", "two run", 2 * TIMEOUT, run).await?;
    Ok(pods.iter().map(ResourceExt::name_any).collect())
}

/// All pods of the namespace are ready, no container has started twice, and the rights of their account sufficed.
async fn ensure_sound(cluster: &Cluster) -> Result<()> {
    let pods: Api<Pod> = cluster.api(NAMESPACE);
    let pods = pods.list(&ListParams::default()).await?.items;
    ensure!(pods.len() == REPLICAS, "{} has {} pods", cluster.name(), pods.len());
    for pod in pods {
        let log = cluster.kubectl(&["logs", "-n", NAMESPACE, &pod.name_any()]).await?;
        let refused = log.lines().find(|line| line.to_lowercase().contains("forbidden"));
        ensure!(refused.is_none(), "{} on {}: {refused:?}", pod.name_any(), cluster.name());
        let containers =
            pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        for container in containers {
            ensure!(
                container.ready && container.restart_count == 0,
                "{} on {}: {container:?}",
                pod.name_any(),
                cluster.name()
            );
        }
    }
    Ok(())
}
