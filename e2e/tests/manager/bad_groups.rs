//! Groups of pods that no webhook has seen and that cannot make up a Workload: each says so, is counted, and runs once it is mended.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::installation::{Program, TIMEOUT};
use harness::{Cluster, annotation};
use k8s_openapi::api::{core::v1::Pod, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use tokio::time::{sleep, timeout};

/// Between two looks at metrics.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The reason of the Event about a group without a Workload.
const NOT_COMPOSED: &str = "ErrWorkloadCompose";

/// A pod of a group as the webhook would make it.
struct GroupMember {
    name: &'static str,
    group: &'static str,
    queue: &'static str,
    total: &'static str,
}

/// One group whose members disagree on the total, and one in two queues. The second member of each is wrong.
const MEMBERS: [GroupMember; 4] = [
    GroupMember { name: "totals-a", group: "totals", queue: "queue", total: "2" },
    GroupMember { name: "totals-b", group: "totals", queue: "queue", total: "3" },
    GroupMember { name: "queues-a", group: "queues", queue: "queue", total: "2" },
    GroupMember { name: "queues-b", group: "queues", queue: "elsewhere", total: "2" },
];

/// What stands in for the wrong ones.
const RIGHT: [GroupMember; 2] = [
    GroupMember { name: "totals-c", group: "totals", queue: "queue", total: "2" },
    GroupMember { name: "queues-c", group: "queues", queue: "queue", total: "2" },
];

impl GroupMember {
    async fn create(&self, pods: &Api<Pod>) -> Result<()> {
        let pod = json!({
            "metadata": {
                "name": self.name,
                "labels": {
                    "kueue.x-k8s.io/queue-name": self.queue, "kueue.x-k8s.io/managed": "true",
                    "kueue.x-k8s.io/pod-group-name": self.group,
                },
                "annotations": {
                    "kueue.x-k8s.io/pod-group-total-count": self.total,
                    annotation::RUN_SECONDS: "1",
                },
                "finalizers": ["kueue.x-k8s.io/managed"],
            },
            "spec": {
                "restartPolicy": "Never",
                "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
                "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}],
            },
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        Ok(())
    }
}

/// See the module.
pub(crate) async fn are_named_counted_and_mended(
    (cluster, namespace): (&Cluster, &str),
    manager: &Program,
) -> Result<()> {
    let pods: Api<Pod> = cluster.api(namespace);
    for member in &MEMBERS {
        member.create(&pods).await?;
    }
    let about = |event: &Event, group: &str| {
        let name = event.regarding.as_ref().and_then(|object| object.name.as_deref());
        event.reason.as_deref() == Some(NOT_COMPOSED)
            && name.is_some_and(|name| name.starts_with(group))
    };
    let both = |all: &[Event]| {
        ["totals", "queues"].iter().all(|group| all.iter().any(|event| about(event, group)))
    };
    let events: Api<Event> = cluster.api(namespace);
    cluster.until_all(&events, "", "both groups say what is wrong", TIMEOUT, both).await?;
    until_counted(manager).await?;

    for wrong in ["totals-b", "queues-b"] {
        pods.delete(wrong, &DeleteParams::default()).await?;
        cluster.until_gone(&pods, wrong, TIMEOUT).await?;
    }
    for member in &RIGHT {
        member.create(&pods).await?;
    }
    let ended = |all: &[Pod]| {
        let members = all.iter().filter(|pod| {
            let group = pod.labels().get("kueue.x-k8s.io/pod-group-name");
            group.is_some_and(|group| ["totals", "queues"].contains(&group.as_str()))
        });
        let succeeded = |pod: &Pod| pod.status.as_ref()?.phase.clone();
        members.filter(|pod| succeeded(pod).as_deref() == Some("Succeeded")).count() == 4
    };
    cluster.until_all(&pods, "", "both groups have run", TIMEOUT, ended).await?;
    Ok(())
}

/// Waits until the metric of warnings has the groups.
async fn until_counted(manager: &Program) -> Result<()> {
    let series = format!("sluice_warnings_total{{kind=\"Pod\",reason=\"{NOT_COMPOSED}\"}} ");
    let counted = async {
        loop {
            let text = manager.scrape().await?;
            let value =
                text.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok());
            // One for each group at least.
            if value.is_some_and(|value| value >= 2) {
                return anyhow::Ok(());
            }
            sleep(LOOK_AGAIN).await;
        }
    };
    timeout(TIMEOUT, counted).await.context("the warnings were never counted")?
}
