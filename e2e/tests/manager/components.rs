//! Replicas with some of the components: one serves webhooks while another one runs everything else, and a manager runs without
//! scheduler.

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, NAMESPACE, TIMEOUT},
    objects, waits,
};
use harness::{Cluster, LabPlan, TestLab, make_namespace};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

const SPACE: &str = "components";

const UNSCHEDULED: &str = "unscheduled";

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

/// Another client reserves quota, as another scheduler would.
#[tokio::test]
async fn without_a_scheduler_only_reservations_of_others_are_admitted() -> Result<()> {
    let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
    let plan = InstallationPlan { workers: 0, elects: false };
    let installation = Installation::of(&lab, plan, InstallationPorts::choose()?).await?;
    installation.install().await?;
    let components = "core,jobs,webhooks";
    let _manager = installation.manager_of(installation.ports(), components, &json!({})).await?;
    let cluster = &installation.hub;
    make_namespace(cluster, UNSCHEDULED).await?;
    objects::queue(cluster, UNSCHEDULED, "4", &[]).await?;
    cluster.add_nodes(&objects::nodes(UNSCHEDULED, 1, "4")).await?;
    let jobs: Api<Job> = cluster.api(UNSCHEDULED);
    create(&jobs, objects::job("waits", 1, "1", 1)).await?;
    create(&jobs, objects::job("reserved", 1, "1", 1)).await?;
    reserve(cluster, "reserved").await?;
    let complete = |job: &Job| objects::job_is(job, "Complete");
    cluster.until(&jobs, "reserved", "completes", TIMEOUT, complete).await?;
    let waits = jobs.get("waits").await?;
    ensure!(waits.spec.and_then(|spec| spec.suspend) == Some(true), "nothing reserves for it");
    Ok(())
}

/// Writes a reservation for the Workload of a Job, once it is there.
async fn reserve(cluster: &Cluster, job: &str) -> Result<()> {
    let workloads: Api<Workload> = cluster.api(UNSCHEDULED);
    let place = (cluster, UNSCHEDULED);
    let workload = waits::until_workload(place, (job, "is made"), TIMEOUT, |_| true).await?;
    let status = json!({"status": {
        "admission": {"clusterQueue": UNSCHEDULED, "podSetAssignments": [{
            "name": "main", "count": 1, "flavors": {"cpu": UNSCHEDULED}, "resourceUsage": {"cpu": "1"},
        }]},
        "conditions": [{
            "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved",
            "message": "by hand", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }});
    workloads
        .patch_status(&workload.name_any(), &PatchParams::default(), &Patch::Merge(status))
        .await?;
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
