//! Retention, admission fair sharing, and metrics with labels of Workloads, by a manager with the rights of its account.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::{
    names::UNTRACKED_METRIC_VALUE,
    v1beta2::{LocalQueue, Workload},
};
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, TIMEOUT},
    objects,
};
use harness::{Cluster, LabPlan, Process, TestLab};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{
    process::Command,
    time::{sleep, timeout},
};

const SPACE: &str = "life-cycle";

/// Between two looks at a log.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[tokio::test]
async fn finished_and_deactivated_work_goes_and_usage_is_recorded() -> Result<()> {
    let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
    let plan = InstallationPlan { workers: 0, elects: false };
    let installation = Installation::of(&lab, plan, InstallationPorts::choose()?).await?;
    installation.install().await?;
    let blocks = json!({
        "objectRetentionPolicies": {
            "workloads": {"afterFinished": "2s", "afterDeactivatedByKueue": "2s"},
        },
        "admissionFairSharing": {"usageHalfLifeTime": "1m", "usageSamplingInterval": "1s"},
        "clientConnection": {"qps": 50},
        "featureGates": {"CustomMetricLabels": true},
        "metrics": {"customLabels": [
            {"name": "type", "sourceKind": "Workload", "trackedValues": ["train"]},
        ]},
    });
    let manager = installation.first_manager_with(&blocks).await?;
    let cluster = &installation.hub;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}).to_string();
    cluster.apply(&namespace, SPACE).await?;
    objects::queue(cluster, SPACE, "4", &[]).await?;
    cluster.add_nodes(&objects::nodes(SPACE, 1, "4")).await?;
    let scope =
        json!({"spec": {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}});
    let queues: Api<crds::v1beta2::ClusterQueue> = cluster.cluster_api();
    queues.patch(SPACE, &PatchParams::default(), &Patch::Merge(&scope)).await?;

    let (jobs, workloads): (Api<Job>, Api<Workload>) = (cluster.api(SPACE), cluster.api(SPACE));
    let submit = async |job: serde_json::Value| -> Result<()> {
        jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
        Ok(())
    };
    let mut ends = objects::job("ends", 1, "1", 1);
    ends["metadata"]["labels"]["type"] = json!("train");
    submit(ends).await?;
    let finished = |all: &[Workload]| {
        all.iter().any(|one| crds::meta::is_true(&one.status.conditions, "Finished"))
    };
    cluster.until_all(&workloads, "", "one is finished", TIMEOUT, finished).await?;
    cluster.until_all(&workloads, "", "all are deleted", TIMEOUT, <[Workload]>::is_empty).await?;
    jobs.get("ends").await.context("the finished Job stays")?;

    let mut late = objects::job("late", 1, "1", 3600);
    late["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!("1");
    submit(late).await?;
    let queue: Api<LocalQueue> = cluster.api(SPACE);
    let consumed = |queue: &LocalQueue| {
        let status = queue.status.fair_sharing.as_ref();
        let record = status.and_then(|one| one.admission_fair_sharing_status.as_ref());
        record.is_some_and(|one| one.consumed_resources.contains_key("cpu"))
    };
    cluster.until(&queue, "queue", "records what it consumed", TIMEOUT, consumed).await?;
    cluster.until_gone(&jobs, "late", TIMEOUT).await?;
    cluster.until_all(&workloads, "", "all are deleted", TIMEOUT, <[Workload]>::is_empty).await?;

    foreign_backoff_ends(cluster, &workloads).await?;
    // The watch of the manager may deliver the last deletion after the one above.
    let metrics =
        manager.until_scraped("Workloads count by their labels", counts_by_labels).await?;
    let series = "sluice_setting_without_effect{setting=\"clientConnection\"} 1";
    ensure!(metrics.contains(series), "{metrics}");
    dumps_its_state(&manager.process).await
}

/// A deactivated Workload has no backoff, also if another field manager has applied it.
async fn foreign_backoff_ends(cluster: &Cluster, workloads: &Api<Workload>) -> Result<()> {
    let pod = json!({"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"});
    let set = json!({"name": "main", "count": 1, "template": {"spec": pod}});
    let inactive = json!({
        "metadata": {"name": "inactive"},
        "spec": {"active": false, "queueName": "queue", "podSets": [set]},
    });
    workloads.create(&PostParams::default(), &serde_json::from_value(inactive)?).await?;
    let backoff = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "status": {"requeueState": {"count": 2, "requeueAt": "2099-01-01T00:00:00Z"}},
    });
    let another = PatchParams::apply("another");
    workloads.patch_status("inactive", &another, &Patch::Apply(backoff)).await?;
    let ended = |one: &Workload| {
        let evicted = crds::meta::is_true(&one.status.conditions, "Evicted");
        evicted && one.status.requeue_state.is_none()
    };
    cluster.until(workloads, "inactive", "has no backoff", TIMEOUT, ended).await?;
    workloads.delete("inactive", &DeleteParams::default()).await?;
    Ok(cluster.until_gone(workloads, "inactive", TIMEOUT).await?)
}

/// SIGUSR2 logs what the manager knows of its queues, and does not end it.
async fn dumps_its_state(manager: &Process) -> Result<()> {
    let pid = manager.pid().to_string();
    let sent = Command::new("kill").args(["-USR2", &pid]).status().await?;
    ensure!(sent.success(), "kill: {sent}");
    let line = format!("queue {SPACE}: active [], inadmissible [], with quota []");
    let dumped = async {
        while !manager.log_tail(100).contains(&line) {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TIMEOUT, dumped).await.with_context(|| manager.log_tail(20))
}

/// Whether both admissions are counted, and no gauge counts a Workload that is gone.
///
/// The Job `ends` has given its label to its Workload; that of `late` has a value that is not tracked.
fn counts_by_labels(metrics: &str) -> bool {
    let admitted = |value: &str| {
        metrics.lines().any(|line| {
            line.starts_with("kueue_local_queue_admitted_workloads_total{")
                && line.contains(&format!("namespace=\"{SPACE}\""))
                && line.contains(&format!("custom_type=\"{value}\""))
                && line.ends_with("} 1.0")
        })
    };
    let mut gauges =
        metrics.lines().filter(|line| line.starts_with("kueue_admitted_active_workloads{"));
    ["train", UNTRACKED_METRIC_VALUE].into_iter().all(admitted)
        && gauges.all(|gauge| gauge.ends_with("} 0.0") || !gauge.contains("custom_type"))
}
