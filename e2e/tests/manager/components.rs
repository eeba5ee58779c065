//! One replica serves webhooks, another one runs everything else.

use anyhow::{Context, Result, ensure};
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, NAMESPACE, TIMEOUT},
    objects,
};
use harness::{Cluster, LabPlan, TestLab};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

const SPACE: &str = "components";

/// All components but the webhooks.
const REST: &str = "core,jobs,scheduler,multikueue,visibility";

#[tokio::test]
async fn webhooks_answer_while_nothing_else_runs() -> Result<()> {
    let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
    let plan = InstallationPlan { workers: 0, elects: false };
    let installation = Installation::of(&lab, plan, InstallationPorts::choose()?).await?;
    installation.install().await?;
    let blocks = json!({"integrations": {"frameworks": ["batch/job", "pod"]}});
    let webhooks = installation.manager_of(installation.ports(), "webhooks", &blocks).await?;
    let rest = async || installation.manager_of(InstallationPorts::choose()?, REST, &blocks).await;
    let cluster = &installation.hub;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}).to_string();
    cluster.apply(&namespace, SPACE).await?;
    objects::queue(cluster, SPACE, "4", &[]).await?;
    cluster.add_nodes(&objects::nodes(SPACE, 1, "4")).await?;
    let jobs: Api<Job> = cluster.api(SPACE);
    let completes = async |name: &str| {
        let complete = |job: &Job| objects::job_is(job, "Complete");
        cluster.until(&jobs, name, "completes", TIMEOUT, complete).await
    };

    let first = rest().await?;
    create(&jobs, objects::job("before", 1, "1", 1)).await?;
    completes("before").await?;

    first.process.kill().await?;
    let held = create(&jobs, objects::job("meanwhile", 1, "1", 1)).await?;
    let suspended = held.spec.as_ref().and_then(|spec| spec.suspend);
    ensure!(suspended == Some(true), "the webhook suspends it: {held:?}");
    let mut wrong = objects::job("wrong", 1, "1", 1);
    wrong["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!("soon");
    let refusal = create(&jobs, wrong).await.err().context("it is refused")?.to_string();
    ensure!(refusal.contains("max-exec-time-seconds"), "{refusal}");
    converts(cluster).await?;

    let second = rest().await?;
    completes("meanwhile").await?;

    second.process.kill().await?;
    webhooks.process.kill().await?;
    let refusal = create_pod(cluster, SPACE).await.err().context("no webhook answers")?;
    ensure!(refusal.to_string().contains("mpod.kb.io"), "{refusal}");
    // The pods of the control plane and of the manager itself start also then.
    for namespace in ["kube-system", NAMESPACE] {
        create_pod(cluster, namespace).await.with_context(|| namespace.to_owned())?;
    }
    Ok(())
}

async fn create(jobs: &Api<Job>, job: Value) -> Result<Job> {
    Ok(jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?)
}

async fn create_pod(cluster: &Cluster, namespace: &str) -> Result<Pod, kube::Error> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
        // The namespace of the manager enforces the Pod Security standard "restricted".
        "spec": {
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "main", "image": "none", "securityContext": {
                "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
            }}],
        },
    });
    let pod = serde_json::from_value(pod).expect("a pod");
    cluster.api::<Pod>(namespace).create(&PostParams::default(), &pod).await
}

/// Objects of the old version are converted.
async fn converts(cluster: &Cluster) -> Result<()> {
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue",
        "metadata": {"name": "old"}, "spec": {"cohort": "c"},
    });
    cluster.apply(&queue.to_string(), SPACE).await?;
    let path = "jsonpath={.spec.cohortName}";
    let arguments = ["get", "clusterqueues.v1beta2.kueue.x-k8s.io", "old", "-o", path];
    let cohort = cluster.kubectl(&arguments).await?;
    ensure!(cohort == "c", "{cohort}");
    Ok(())
}
