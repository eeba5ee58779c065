//! Quota: what the objects hold at each change of a Workload, and what the queues say about it in the end.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use crds::{
    meta::is_true,
    names::conditions::{ADMITTED, FINISHED, QUOTA_RESERVED},
    v1beta2::{ClusterQueue, FlavorUsage, Workload},
};
use harness::{Cluster, Follow, FollowedChange};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};

use crate::installation::TIMEOUT;

/// The queue of Jobs.
pub(super) const JOBS: &str = "jobs";

/// The queue of pods.
pub(super) const PODS: &str = "pods";

/// The group, and its queue, which is in no cohort.
pub(super) const GROUP: &str = "group";

/// The queues that share their quota.
pub(super) const COHORT: [&str; 2] = [JOBS, PODS];

/// Their quota in all.
pub(super) const COHORT_CPU: u32 = 16;

/// A flavor, two queues that borrow from each other, and one with room for the group. LocalQueues have the names of their
/// ClusterQueues.
pub(super) fn queues(namespace: &str, group: usize) -> String {
    let api = "kueue.x-k8s.io/v1beta2";
    let mut objects =
        vec![json!({"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": "any"}})];
    let half = (COHORT_CPU / 2).to_string();
    let group = group.to_string();
    for (name, cpu) in [(JOBS, &half), (PODS, &half), (GROUP, &group)] {
        let quota = json!({"name": "any", "resources": [{"name": "cpu", "nominalQuota": cpu}]});
        let mut spec = json!({
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
        });
        if name != GROUP {
            spec["cohortName"] = json!("shared");
        }
        let metadata = json!({"name": name});
        objects.push(
            json!({"apiVersion": api, "kind": "ClusterQueue", "metadata": metadata, "spec": spec}),
        );
        objects.push(json!({
            "apiVersion": api, "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"clusterQueue": name},
        }));
    }
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// Follows the Workloads while the run goes on. Dropping it ends that.
pub(super) struct QuotaObserver {
    held: watch::Receiver<HeldQuota>,
    task: JoinHandle<()>,
}

/// What Workloads held so far.
#[derive(Clone, Debug, Default)]
struct HeldQuota {
    /// By Workload, in milli-cpu: that of the queues of the cohort.
    held: BTreeMap<String, i64>,
    /// The most that was held at a time.
    peak: i64,
    /// The last new reservation.
    reserved: Option<Instant>,
    /// The longest time from one reservation to the next.
    longest_pause: Duration,
}

impl QuotaObserver {
    pub(super) fn start(workloads: Api<Workload>, queues: [&'static str; 2]) -> Self {
        let (write, held) = watch::channel(HeldQuota::default());
        let task = tokio::spawn(async move {
            let mut follow = Follow::new(workloads);
            loop {
                let change = follow.next().await;
                write.send_modify(|held| held.enter(change, &queues, Instant::now()));
            }
        });
        Self { held, task }
    }

    /// The longest time from one reservation to the next so far.
    pub(super) fn longest_pause(&self) -> Duration {
        self.held.borrow().longest_pause
    }

    /// Workloads never held more than the quota, and at some time they held a part of it.
    pub(super) fn expect_within_quota(&self) -> Result<()> {
        let (peak, quota) = (self.held.borrow().peak, i64::from(COHORT_CPU) * 1000);
        ensure!((1..=quota).contains(&peak), "Workloads held {peak} of {quota} milli-cpu");
        Ok(())
    }
}

impl Drop for QuotaObserver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HeldQuota {
    fn enter(&mut self, change: FollowedChange<Workload>, queues: &[&str], now: Instant) {
        match change {
            FollowedChange::Listed(all) => {
                self.held.clear();
                all.iter().for_each(|one| self.set(one, queues, now));
            }
            FollowedChange::Applied(one) => self.set(&one, queues, now),
            FollowedChange::Deleted(one) => drop(self.held.remove(&one.name_any())),
        }
        self.peak = self.peak.max(self.held.values().sum());
    }

    fn set(&mut self, workload: &Workload, queues: &[&str], now: Instant) {
        let held = queues.iter().map(|queue| held(workload, queue, QUOTA_RESERVED)).sum();
        let before = self.held.insert(workload.name_any(), held).unwrap_or_default();
        if before == 0 && held > 0 {
            let pause = self.reserved.map(|last| now.duration_since(last));
            self.longest_pause = self.longest_pause.max(pause.unwrap_or_default());
            self.reserved = Some(now);
        }
    }
}

/// What an unfinished Workload with this condition holds of a ClusterQueue, in milli-cpu.
fn held(workload: &Workload, queue: &str, condition: &str) -> i64 {
    let status = &workload.status;
    let Some(admission) = status.admission.as_ref().filter(|one| one.cluster_queue == queue) else {
        return 0;
    };
    if !is_true(&status.conditions, condition) || is_true(&status.conditions, FINISHED) {
        return 0;
    }
    let sets = admission.pod_set_assignments.iter();
    sets.filter_map(|set| set.resource_usage.get("cpu")).map(crds::quantity::Quantity::milli).sum()
}

/// Waits until the status of each queue is the sum over its Workloads, which do not change any more.
pub(super) async fn expect_status_of_queues(hub: &Cluster, namespace: &str) -> Result<()> {
    let workloads = hub.api::<Workload>(namespace).list(&Default::default()).await?.items;
    let sum = |queue: &str, condition: &str| {
        workloads.iter().map(|one| held(one, queue, condition)).sum::<i64>()
    };
    let holders = |queue: &str, condition: &str| {
        let holders = workloads.iter().filter(|one| held(one, queue, condition) > 0);
        i32::try_from(holders.count()).unwrap_or(i32::MAX)
    };
    let agrees = |queue: &ClusterQueue| {
        let (name, status) = (queue.name_any(), &queue.status);
        cpu(&status.flavors_reservation) == sum(&name, QUOTA_RESERVED)
            && cpu(&status.flavors_usage) == sum(&name, ADMITTED)
            && status.reserving_workloads == holders(&name, QUOTA_RESERVED)
            && status.admitted_workloads == holders(&name, ADMITTED)
    };
    let of_load = |queue: &&ClusterQueue| [JOBS, PODS, GROUP].contains(&queue.name_any().as_str());
    let all = |queues: &[ClusterQueue]| queues.iter().filter(of_load).all(agrees);
    let what = format!("usage is that of the objects: {} milli-cpu", sum(JOBS, ADMITTED));
    hub.until_all(&hub.cluster_api(), "", &what, TIMEOUT, all).await?;
    ensure!(sum(JOBS, ADMITTED) == i64::from(COHORT_CPU) * 1000, "the queue is full");
    Ok(())
}

fn cpu(usage: &[FlavorUsage]) -> i64 {
    let resources = usage.iter().flat_map(|flavor| &flavor.resources);
    resources
        .filter(|one| one.name == "cpu")
        .filter_map(|one| Some(one.total.as_ref()?.milli()))
        .sum()
}
