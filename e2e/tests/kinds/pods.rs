//! Single pods and groups of pods on the manager's own cluster.

use anyhow::{Context, Result, ensure};
use crds::{
    meta::{find, is_true},
    names::{MANAGED, gates::ADMISSION},
    v1beta2::{ClusterQueue, Workload},
};
use e2e::{
    installation::TIMEOUT,
    objects::{self, LONG, phase},
};
use harness::{Cluster, Space};
use k8s_openapi::api::{core::v1::Pod, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::shared_installation::SharedInstallation;

/// A namespace with quota and nodes of its own.
pub(crate) struct PodsFixture {
    pub(crate) space: Space,
    pub(crate) hub: Cluster,
}

impl PodsFixture {
    pub(crate) async fn new(test: &str, cpu: &str) -> Result<Self> {
        let installation = SharedInstallation::get().await?.installation().await?;
        let space = installation.lab.space(test).await?;
        let hub = installation.hub;
        hub.add_nodes(&objects::own_nodes(space.namespace(), 1, cpu)).await?;
        objects::own_queue(&hub, space.namespace(), cpu, &[]).await?;
        Ok(Self { space, hub })
    }

    /// A namespace with quota for pods that run on the first worker, which has the nodes.
    pub(crate) async fn dispatched(test: &str, cpu: &str) -> Result<(Self, Cluster)> {
        let installation = SharedInstallation::get().await?.installation().await?;
        let space = installation.lab.space(test).await?;
        let (hub, namespace) = (installation.hub, space.namespace());
        let worker = installation.workers.into_iter().next().context("a worker")?;
        worker.add_nodes(&objects::own_nodes(namespace, 1, cpu)).await?;
        objects::own_queue(&hub, namespace, cpu, &["worker-1"]).await?;
        Ok((Self { space, hub }, worker))
    }

    /// A namespace with quota for pods that run on either worker, each of which has the nodes.
    pub(crate) async fn on_workers(test: &str, cpu: &str) -> Result<(Self, Vec<Cluster>)> {
        let installation = SharedInstallation::get().await?.installation().await?;
        let space = installation.lab.space(test).await?;
        let (hub, namespace) = (installation.hub, space.namespace());
        for worker in &installation.workers {
            worker.add_nodes(&objects::own_nodes(namespace, 1, cpu)).await?;
        }
        objects::own_queue(&hub, namespace, cpu, &["worker-1", "worker-2"]).await?;
        Ok((Self { space, hub }, installation.workers))
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        self.hub.api(self.space.namespace())
    }

    pub(crate) fn workloads(&self) -> Api<Workload> {
        self.hub.api(self.space.namespace())
    }

    pub(crate) async fn create(&self, pod: &Value) -> Result<Pod> {
        let pod = serde_json::from_value(pod.clone())?;
        Ok(self.pods().create(&PostParams::default(), &pod).await?)
    }

    pub(crate) async fn until(
        &self,
        pod: &str,
        what: &str,
        holds: impl Fn(&Pod) -> bool,
    ) -> Result<Pod> {
        Ok(self.hub.until(&self.pods(), pod, what, 2 * TIMEOUT, holds).await?)
    }

    pub(crate) async fn until_workload(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Workload) -> bool,
    ) -> Result<Workload> {
        Ok(self.hub.until(&self.workloads(), name, what, 2 * TIMEOUT, holds).await?)
    }

    /// Waits until no quota is used any more.
    pub(crate) async fn until_quota_is_free(&self) -> Result<()> {
        let free = |queue: &ClusterQueue| {
            let status = &queue.status;
            status.reserving_workloads == 0 && status.admitted_workloads == 0
        };
        let queues = self.hub.cluster_api::<ClusterQueue>();
        let name = self.space.namespace();
        self.hub.until(&queues, name, "is not used", 2 * TIMEOUT, free).await?;
        Ok(())
    }
}

/// A pod in the queue that runs for so many seconds.
pub(crate) fn pod(name: &str, seconds: u32) -> Value {
    let mut pod = objects::pod(name, "queue", seconds);
    pod["spec"]["terminationGracePeriodSeconds"] = json!(1);
    pod
}

/// A member of the group `team` of so many pods.
pub(crate) fn member(name: &str, total: usize, seconds: u32) -> Value {
    objects::in_group(pod(name, seconds), "team", total)
}

pub(crate) fn is_gated(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let gates = spec.and_then(|spec| spec.scheduling_gates.as_ref()).into_iter().flatten();
    gates.into_iter().any(|gate| gate.name == ADMISSION)
}

pub(crate) fn has_finalizer(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|one| one == MANAGED)
}

pub(crate) fn is(workload: &Workload, condition: &str) -> bool {
    is_true(&workload.status.conditions, condition)
}

/// The nine steps of a gated pod.
#[tokio::test]
async fn a_gated_pod_goes_through_its_nine_steps() -> Result<()> {
    let fixture = PodsFixture::new("nine_steps", "1").await?;
    // 1. The webhook adds gate, label and finalizer.
    let created = fixture.create(&pod("train", 3)).await?;
    ensure!(is_gated(&created) && has_finalizer(&created), "{created:?}");
    ensure!(created.labels().get(MANAGED).map(String::as_str) == Some("true"));
    // 2, 3. A Workload is created and queued.
    let owned = |all: &[Workload]| all.len() == 1;
    let all = fixture
        .hub
        .until_all(&fixture.workloads(), "", "the Workload is there", TIMEOUT, owned)
        .await?;
    let workload = all.first().context("a Workload")?;
    let owner = workload.owner_references().first().context("an owner")?;
    ensure!(owner.name == "train" && owner.controller == Some(true), "{owner:?}");
    ensure!(workload.spec.queue_name == "queue", "{:?}", workload.spec);
    let name = workload.name_any();
    // 4, 5. A cycle reserves quota and admits it.
    fixture.until_workload(&name, "is admitted", |one| is(one, "Admitted")).await?;
    // 6. The gate is removed, with node selector and tolerations of the flavor.
    let started = fixture.until("train", "is not gated", |pod| !is_gated(pod)).await?;
    let spec = started.spec.as_ref().context("a spec")?;
    let selector = spec.node_selector.as_ref().and_then(|all| all.get(objects::OWN));
    ensure!(selector.map(String::as_str) == Some(fixture.space.namespace()), "{spec:?}");
    let tolerations = spec.tolerations.iter().flatten();
    ensure!(tolerations.filter(|one| one.key.as_deref() == Some(objects::OWN)).count() == 1);
    // 7. It runs and succeeds.
    fixture.until("train", "succeeds", |pod| phase(pod) == "Succeeded").await?;
    // 8. The Workload is finished, and the pod is not kept any longer.
    let finished = fixture.until_workload(&name, "is finished", |one| is(one, "Finished")).await?;
    let condition = find(&finished.status.conditions, "Finished").context("a condition")?;
    ensure!(condition.reason == "Succeeded", "{condition:?}");
    fixture.until("train", "has no finalizer", |pod| !has_finalizer(pod)).await?;
    // 9. Its quota is free.
    fixture.until_quota_is_free().await
}

/// A group starts as a whole, a failed member is replaced, and no finalizer outlives the group.
#[tokio::test]
async fn a_group_runs_with_a_replacement_and_ends() -> Result<()> {
    let fixture = PodsFixture::new("group_replaced", "2").await?;
    fixture.create(&member("a", 2, LONG)).await?;
    let events = fixture.hub.api::<Event>(fixture.space.namespace());
    let refused =
        |all: &[Event]| all.iter().any(|one| one.reason.as_deref() == Some("ErrWorkloadCompose"));
    fixture.hub.until_all(&events, "", "the group is incomplete", TIMEOUT, refused).await?;
    fixture.create(&member("b", 2, 4)).await?;
    let workload = fixture.until_workload("team", "is admitted", |one| is(one, "Admitted")).await?;
    ensure!(workload.owner_references().len() == 2, "{:?}", workload.metadata);
    let sets: Vec<Option<i32>> = workload.spec.pod_sets.iter().map(|set| set.count).collect();
    ensure!(sets == [Some(2)], "{sets:?}");
    for name in ["a", "b"] {
        fixture.until(name, "has started", |pod| !is_gated(pod)).await?;
    }
    fixture.until("a", "runs", |pod| phase(pod) == "Running").await?;

    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    fixture.pods().patch_status("a", &PatchParams::default(), &failed).await?;
    let waits = |one: &Workload| is(one, "WaitingForReplacementPods") && is(one, "Admitted");
    fixture.until_workload("team", "waits for a replacement", waits).await?;
    ensure!(has_finalizer(&fixture.pods().get("a").await?), "it is the history of its role");

    fixture.create(&member("a2", 2, 2)).await?;
    fixture.until("a2", "has started", |pod| !is_gated(pod)).await?;
    fixture.until("a", "is not kept", |pod| !has_finalizer(pod)).await?;
    let owned = |one: &Workload| one.owner_references().iter().any(|owner| owner.name == "a2");
    fixture.until_workload("team", "is owned by the replacement", owned).await?;

    let finished = |one: &Workload| is(one, "Finished");
    let finished = fixture.until_workload("team", "is finished", finished).await?;
    let condition = find(&finished.status.conditions, "Finished").context("a condition")?;
    ensure!(condition.message == "Pods succeeded: 2/2.", "{condition:?}");
    for name in ["a2", "b"] {
        fixture.until(name, "is not kept", |pod| !has_finalizer(pod)).await?;
    }
    fixture.until_quota_is_free().await
}

/// Running members are marked and deleted, and replacements run once the Workload is active again.
#[tokio::test]
async fn an_evicted_group_is_deleted_and_its_replacements_run() -> Result<()> {
    let fixture = PodsFixture::new("group_evicted", "2").await?;
    for name in ["a", "b"] {
        fixture.create(&member(name, 2, LONG)).await?;
    }
    for name in ["a", "b"] {
        fixture.until(name, "runs", |pod| phase(pod) == "Running").await?;
    }
    let active = |active: bool| Patch::Merge(json!({"spec": {"active": active}}));
    let params = PatchParams::default();
    fixture.workloads().patch("team", &params, &active(false)).await?;
    let released = |one: &Workload| is(one, "Evicted") && !is(one, "QuotaReserved");
    fixture.until_workload("team", "is evicted", released).await?;
    for name in ["a", "b"] {
        let marked = |pod: &Pod| {
            let status = pod.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.as_ref());
            conditions.into_iter().flatten().any(|one| {
                one.type_ == "TerminationTarget"
                    && one.reason.as_deref() == Some("WorkloadEvictedDueToDeactivated")
            }) && pod.metadata.deletion_timestamp.is_some()
        };
        fixture.until(name, "is marked and deleted", marked).await?;
    }
    fixture.workloads().patch("team", &params, &active(true)).await?;
    for name in ["c", "d"] {
        fixture.create(&member(name, 2, 2)).await?;
    }
    for name in ["a", "b"] {
        fixture.hub.until_gone(&fixture.pods(), name, 2 * TIMEOUT).await?;
    }
    fixture.until_workload("team", "is finished", |one| is(one, "Finished")).await?;
    fixture.until_quota_is_free().await
}

/// A member too many is deleted, one of another role waits, and a deleted Workload takes all members with it.
#[tokio::test]
async fn a_group_keeps_its_number_of_pods() -> Result<()> {
    let fixture = PodsFixture::new("group_excess", "4").await?;
    for name in ["a", "b"] {
        fixture.create(&member(name, 2, LONG)).await?;
    }
    for name in ["a", "b"] {
        fixture.until(name, "runs", |pod| phase(pod) == "Running").await?;
    }
    fixture.create(&member("c", 2, LONG)).await?;
    fixture.hub.until_gone(&fixture.pods(), "c", 2 * TIMEOUT).await?;
    let mut other = member("other", 2, LONG);
    other["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("2");
    fixture.create(&other).await?;
    fixture.workloads().delete("team", &DeleteParams::default()).await?;
    for name in ["a", "b", "other"] {
        fixture.hub.until_gone(&fixture.pods(), name, 2 * TIMEOUT).await?;
    }
    fixture.hub.until_gone(&fixture.workloads(), "team", 2 * TIMEOUT).await?;
    fixture.until_quota_is_free().await
}

/// An ungated pod without an admission is stopped, and one without a queue is left alone.
#[tokio::test]
async fn a_pod_runs_only_by_admission() -> Result<()> {
    let fixture = PodsFixture::new("ungated", "1").await?;
    fixture.create(&pod("first", LONG)).await?;
    fixture.until("first", "runs", |pod| phase(pod) == "Running").await?;
    // There is quota for one.
    let second = fixture.create(&pod("second", LONG)).await?;
    ensure!(is_gated(&second));
    let ungated = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    fixture.pods().patch("second", &PatchParams::default(), &ungated).await?;
    fixture.hub.until_gone(&fixture.pods(), "second", 2 * TIMEOUT).await?;
    let mut plain = pod("plain", 1);
    plain["metadata"]["labels"] = json!({});
    let plain = fixture.create(&plain).await?;
    ensure!(!is_gated(&plain) && !has_finalizer(&plain), "{plain:?}");
    fixture.pods().delete("first", &DeleteParams::default()).await?;
    fixture.hub.until_gone(&fixture.pods(), "first", 2 * TIMEOUT).await?;
    fixture.until_quota_is_free().await
}

/// A gated pod that is deleted leaves no Workload, and does not hold up the pods behind it.
#[tokio::test]
async fn a_pod_that_is_deleted_while_it_is_gated_leaves_nothing() -> Result<()> {
    let fixture = PodsFixture::new("gated_deleted", "1").await?;
    fixture.create(&pod("first", LONG)).await?;
    fixture.until("first", "runs", |pod| phase(pod) == "Running").await?;
    fixture.create(&pod("second", LONG)).await?;
    let two = |all: &[Workload]| all.len() == 2;
    let workloads = fixture.workloads();
    fixture.hub.until_all(&workloads, "", "the second is queued", TIMEOUT, two).await?;
    fixture.create(&pod("third", LONG)).await?;
    fixture.pods().delete("second", &DeleteParams::default()).await?;
    fixture.hub.until_gone(&fixture.pods(), "second", 2 * TIMEOUT).await?;
    let of_others = |all: &[Workload]| {
        let owners = all.iter().flat_map(ResourceExt::owner_references);
        all.len() == 2 && owners.into_iter().all(|owner| owner.name != "second")
    };
    fixture.hub.until_all(&workloads, "", "its Workload is gone", 2 * TIMEOUT, of_others).await?;
    fixture.pods().delete("first", &DeleteParams::default()).await?;
    fixture.until("third", "runs", |pod| phase(pod) == "Running").await?;
    Ok(())
}

/// Members that disagree about the size of their group wait, while others run. The group starts once they agree.
#[tokio::test]
async fn a_group_whose_members_disagree_on_the_total_waits() -> Result<()> {
    let fixture = PodsFixture::new("unlike_totals", "3").await?;
    fixture.create(&member("a", 2, 2)).await?;
    fixture.create(&member("b", 3, 2)).await?;
    let events = fixture.hub.api::<Event>(fixture.space.namespace());
    let refused = |all: &[Event]| {
        all.iter().any(|one| {
            let note = one.note.as_deref().unwrap_or_default();
            one.reason.as_deref() == Some("ErrWorkloadCompose")
                && note.contains("pod-group-total-count")
        })
    };
    fixture.hub.until_all(&events, "", "the members disagree", TIMEOUT, refused).await?;
    fixture.create(&pod("alone", 1)).await?;
    fixture.until("alone", "succeeds", |pod| phase(pod) == "Succeeded").await?;
    ensure!(fixture.workloads().get_opt("team").await?.is_none());
    fixture.pods().delete("b", &DeleteParams::default()).await?;
    fixture.hub.until_gone(&fixture.pods(), "b", 2 * TIMEOUT).await?;
    fixture.create(&member("b", 2, 2)).await?;
    fixture.until_workload("team", "is finished", |one| is(one, "Finished")).await?;
    fixture.until_quota_is_free().await
}
