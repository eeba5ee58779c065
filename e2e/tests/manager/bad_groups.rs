//! Groups of pods that no webhook has seen and that cannot make up a Workload: each says so, is counted, and runs once it is mended.

use anyhow::Result;
use e2e::{
    installation::{Program, TIMEOUT},
    objects,
};
use harness::Cluster;
use k8s_openapi::api::{core::v1::Pod, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

/// The reason of the Event about a group without a Workload.
const NOT_COMPOSED: &str = "ErrWorkloadCompose";

/// A pod of a group as the webhook would make it.
struct GroupMember {
    name: &'static str,
    group: &'static str,
    queue: &'static str,
    total: usize,
}

/// One group with two totals, and one in two queues. The second member of each is wrong.
const MEMBERS: [GroupMember; 4] = [
    GroupMember { name: "totals-a", group: "totals", queue: "queue", total: 2 },
    GroupMember { name: "totals-b", group: "totals", queue: "queue", total: 3 },
    GroupMember { name: "queues-a", group: "queues", queue: "queue", total: 2 },
    GroupMember { name: "queues-b", group: "queues", queue: "elsewhere", total: 2 },
];

/// What stands in for the wrong ones.
const RIGHT: [GroupMember; 2] = [
    GroupMember { name: "totals-c", group: "totals", queue: "queue", total: 2 },
    GroupMember { name: "queues-c", group: "queues", queue: "queue", total: 2 },
];

impl GroupMember {
    async fn create(&self, pods: &Api<Pod>) -> Result<()> {
        let mut pod = objects::pod(self.name, self.queue, 1);
        pod["metadata"]["labels"]["kueue.x-k8s.io/managed"] = json!("true");
        pod["metadata"]["finalizers"] = json!(["kueue.x-k8s.io/managed"]);
        pod["spec"]["schedulingGates"] = json!([{"name": "kueue.x-k8s.io/admission"}]);
        let pod = objects::in_group(pod, self.group, self.total);
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        Ok(())
    }
}

/// Checks that such groups are named, counted, and run once they are mended.
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
    let counted = |text: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok());
        // One for each group at least.
        value.is_some_and(|value| value >= 2)
    };
    manager.until_scraped("the warnings are counted", counted).await?;
    Ok(())
}
