//! A LeaderWorkerSet on the manager's own cluster and on workers. Its operator is played here; StatefulSets and pods are Kubernetes' own.

use anyhow::{Context, Result, ensure};
use crds::{
    meta::is_true, names::annotations::COMPONENT_WORKLOAD_INDEX, names::gates::ADMISSION,
    v1beta2::Workload,
};
use e2e::{installation::TIMEOUT, listed_pods::are_listed, objects};
use harness::{Cluster, Space, annotation, resource_of};
use jobs::leader_worker_set;
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::shared_installation::SharedInstallation;

struct SetFixture {
    space: Space,
    hub: Cluster,
    /// The cluster where the operator is played.
    home: Cluster,
}

impl SetFixture {
    async fn new(test: &str) -> Result<Self> {
        let installation = SharedInstallation::get().await?.installation().await?;
        let space = installation.lab.space(test).await?;
        let hub = installation.hub;
        hub.add_nodes(&objects::own_nodes(space.namespace(), 1, "4")).await?;
        objects::own_queue(&hub, space.namespace(), "4", &[]).await?;
        Ok(Self { space, home: hub.clone(), hub })
    }

    /// Two workers with room for all replicas of a set each.
    async fn dispatched(test: &str) -> Result<(Self, Vec<Cluster>)> {
        let installation = SharedInstallation::get().await?.installation().await?;
        let space = installation.lab.space(test).await?;
        let (hub, workers) = (installation.hub, installation.workers);
        for worker in &workers {
            worker.add_nodes(&objects::own_nodes(space.namespace(), 1, "4")).await?;
        }
        objects::own_queue(&hub, space.namespace(), "8", &["worker-1", "worker-2"]).await?;
        Ok((Self { space, home: hub.clone(), hub }, workers))
    }

    fn sets(&self) -> Api<DynamicObject> {
        let resource = resource_of(leader_worker_set::kind());
        Api::namespaced_with(self.hub.client(), self.space.namespace(), &resource)
    }

    fn workloads(&self) -> Api<Workload> {
        self.hub.api(self.space.namespace())
    }

    fn pods(&self) -> Api<Pod> {
        self.home.api(self.space.namespace())
    }

    /// Creates a set of two pods per replica. Returns it as the webhook left it.
    async fn submit(&self, replicas: u32) -> Result<Value> {
        let template = json!({
            "metadata": {"annotations": {annotation::RUN_SECONDS: "3600"}},
            "spec": {"containers": [
                {"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}},
            ]},
        });
        let set = json!({
            "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
            "metadata": {"name": "serve", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": {"replicas": replicas, "leaderWorkerTemplate": {
                "size": 2, "leaderTemplate": template, "workerTemplate": template,
            }},
        });
        let set: DynamicObject = serde_json::from_value(set)?;
        let created = self.sets().create(&PostParams::default(), &set).await?;
        Ok(serde_json::to_value(created)?)
    }

    /// Waits until these replicas, and no others, have an admitted Workload.
    async fn until_admitted(&self, replicas: &[&str]) -> Result<()> {
        let admitted = |all: &[Workload]| {
            let index = |one: &Workload| one.annotations().get(COMPONENT_WORKLOAD_INDEX).cloned();
            let mut present: Vec<String> = all.iter().filter_map(index).collect();
            present.sort();
            present == replicas && all.iter().all(|one| is_true(&one.status.conditions, "Admitted"))
        };
        let what = format!("replicas {replicas:?} are admitted");
        self.hub.until_all(&self.workloads(), "", &what, 2 * TIMEOUT, admitted).await?;
        Ok(())
    }

    /// What the operator makes: a StatefulSet of leaders or of workers.
    async fn stateful_set(&self, name: &str, set: &Value, form: &Value) -> Result<()> {
        let template = form["template"].as_str().context("the name of a template")?;
        let mut template = set["spec"]["leaderWorkerTemplate"][template].clone();
        let labels = template["metadata"]["labels"].as_object_mut().context("labels")?;
        labels.extend(form["labels"].as_object().cloned().unwrap_or_default());
        let stateful_set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name, "ownerReferences": form["owner"]},
            "spec": {
                "replicas": form["replicas"], "serviceName": name,
                "podManagementPolicy": "Parallel", "ordinals": {"start": form["start"]},
                "selector": {"matchLabels": form["labels"]}, "template": template,
            },
        });
        let stateful_set: StatefulSet = serde_json::from_value(stateful_set)?;
        let api: Api<StatefulSet> = self.home.api(self.space.namespace());
        api.create(&PostParams::default(), &stateful_set).await?;
        Ok(())
    }

    async fn leaders(&self, set: &Value, replicas: u32) -> Result<()> {
        let owner = json!([{
            "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
            "name": "serve", "uid": set["metadata"]["uid"], "controller": true,
        }]);
        let labels = json!({
            "leaderworkerset.sigs.k8s.io/name": "serve",
            "leaderworkerset.sigs.k8s.io/worker-index": "0",
        });
        let form = json!({
            "template": "leaderTemplate", "labels": labels, "owner": owner, "replicas": replicas,
            "start": 0,
        });
        self.stateful_set("serve", set, &form).await
    }

    /// Waits for the leader of a replica and says which replica it leads.
    async fn label_leader(&self, replica: u32) -> Result<()> {
        let leader = format!("serve-{replica}");
        let gated = |pod: &Pod| is_gated(pod);
        self.home.until(&self.pods(), &leader, "is gated", TIMEOUT, gated).await?;
        let labels = json!({"leaderworkerset.sigs.k8s.io/group-index": replica.to_string()});
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        self.pods().patch(&leader, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn workers(&self, set: &Value, replica: u32) -> Result<()> {
        let leader = self.pods().get(&format!("serve-{replica}")).await?;
        let owner = json!([{
            "apiVersion": "v1", "kind": "Pod", "name": leader.name_any(), "uid": leader.uid(),
            "controller": true,
        }]);
        let labels = json!({
            "leaderworkerset.sigs.k8s.io/name": "serve",
            "leaderworkerset.sigs.k8s.io/group-index": replica.to_string(),
        });
        let form = json!({
            "template": "workerTemplate", "labels": labels, "owner": owner, "replicas": 1, "start": 1,
        });
        self.stateful_set(&leader.name_any(), set, &form).await
    }

    async fn until_running(&self, pod: &str) -> Result<()> {
        let running = |pod: &Pod| objects::phase(pod) == "Running" && !is_gated(pod);
        self.home.until(&self.pods(), pod, "runs", 2 * TIMEOUT, running).await?;
        Ok(())
    }

    async fn activate(&self, workload: &str, active: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"active": active}}));
        self.workloads().patch(workload, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn scale(&self, replicas: u32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.sets().patch("serve", &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

fn is_gated(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
    gates.into_iter().flatten().any(|gate| gate.name == ADMISSION)
}

#[tokio::test]
async fn each_replica_of_a_set_is_admitted_and_released_by_itself() -> Result<()> {
    let fixture = SetFixture::new("replicas").await?;
    let set = fixture.submit(2).await?;
    let labels = &set["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["labels"];
    ensure!(labels["kueue.x-k8s.io/queue-name"] == "queue", "{set}");
    fixture.until_admitted(&["0", "1"]).await?;

    fixture.leaders(&set, 2).await?;
    for replica in 0..2 {
        fixture.label_leader(replica).await?;
        fixture.until_running(&format!("serve-{replica}")).await?;
        fixture.workers(&set, replica).await?;
        fixture.until_running(&format!("serve-{replica}-1")).await?;
    }

    // A replica less: its pods stop, and those of the other one run on.
    let kept = fixture.pods().get("serve-0").await?.uid();
    fixture.scale(1).await?;
    fixture.until_admitted(&["0"]).await?;
    let gone = |all: &[Pod]| {
        all.iter().filter(|pod| !is_gated(pod)).all(|pod| pod.name_any().starts_with("serve-0"))
    };
    let (hub, pods) = (&fixture.hub, fixture.pods());
    hub.until_all(&pods, "", "the pods of replica 1 stop", 2 * TIMEOUT, gone).await?;
    ensure!(fixture.pods().get("serve-0").await?.uid() == kept, "replica 0 runs on");

    fixture.sets().delete("serve", &DeleteParams::background()).await?;
    let none = |all: &[Workload]| all.is_empty();
    hub.until_all(&fixture.workloads(), "", "no Workload is left", 2 * TIMEOUT, none).await?;
    Ok(())
}

/// Both workers have room for the second replica, and the emptier one would be chosen for any other Workload.
#[tokio::test]
async fn all_replicas_of_a_set_run_on_one_worker() -> Result<()> {
    let (mut fixture, workers) = SetFixture::dispatched("dispatched_replicas").await?;
    fixture.submit(2).await?;
    fixture.until_admitted(&["0", "1"]).await?;
    let workloads = fixture.workloads().list(&Default::default()).await?;
    let clusters: Vec<_> = workloads.iter().map(|one| one.status.cluster_name.clone()).collect();
    ensure!(clusters.len() == 2 && clusters[0] == clusters[1], "{clusters:?}");
    let chosen = clusters[0].clone().context("a cluster")?;
    let worker = workers.iter().find(|one| one.name() == chosen).context("a worker")?;

    // The operator of the worker makes the pods of the copy.
    fixture.home = worker.clone();
    let namespace = fixture.space.namespace();
    let resource = resource_of(leader_worker_set::kind());
    let copies = |worker: &Cluster| -> Api<DynamicObject> {
        Api::namespaced_with(worker.client(), namespace, &resource)
    };
    let copy = worker.until(&copies(worker), "serve", "is there", TIMEOUT, |_| true).await?;
    let copy = serde_json::to_value(copy)?;
    fixture.leaders(&copy, 2).await?;
    for replica in 0..2 {
        fixture.label_leader(replica).await?;
        fixture.until_running(&format!("serve-{replica}")).await?;
        fixture.workers(&copy, replica).await?;
        fixture.until_running(&format!("serve-{replica}-1")).await?;
    }

    let installation = SharedInstallation::get().await?.installation().await?;
    for workload in &workloads {
        are_listed(&installation, (namespace, &workload.name_any()), 2).await?;
    }

    // A replica that is evicted leaves alone, and the other one runs on.
    let kept = fixture.pods().get("serve-0").await?.uid();
    let second = workloads.iter().find(|one| {
        one.annotations().get(COMPONENT_WORKLOAD_INDEX).map(String::as_str) == Some("1")
    });
    let second = second.context("the second replica")?.name_any();
    fixture.activate(&second, false).await?;
    let stopped =
        |all: &[Pod]| all.iter().filter(|pod| pod.name_any().starts_with("serve-1")).all(is_gated);
    let what = "the pods of replica 1 wait";
    worker.until_all(&fixture.pods(), "", what, 2 * TIMEOUT, stopped).await?;
    ensure!(fixture.pods().get("serve-0").await?.uid() == kept, "replica 0 runs on");
    fixture.activate(&second, true).await?;
    fixture.label_leader(1).await?;
    fixture.until_running("serve-1").await?;

    // The copy follows the size of the set.
    let replicas = |copy: &DynamicObject| copy.data["spec"]["replicas"].as_u64();
    fixture.scale(1).await?;
    fixture.until_admitted(&["0"]).await?;
    worker
        .until(&copies(worker), "serve", "is smaller", TIMEOUT, |one| replicas(one) == Some(1))
        .await?;
    fixture.scale(2).await?;
    worker
        .until(&copies(worker), "serve", "is larger", TIMEOUT, |one| replicas(one) == Some(2))
        .await?;
    fixture.until_admitted(&["0", "1"]).await?;
    let workloads = fixture.workloads().list(&Default::default()).await?;
    let together = |one: &Workload| one.status.cluster_name.as_deref() == Some(worker.name());
    ensure!(workloads.iter().all(together), "{workloads:?}");
    ensure!(fixture.pods().get("serve-0").await?.uid() == kept, "replica 0 runs on");

    fixture.sets().delete("serve", &DeleteParams::background()).await?;
    for worker in &workers {
        let none = |all: &[DynamicObject]| all.is_empty();
        worker.until_all(&copies(worker), "", "no set is left", 2 * TIMEOUT, none).await?;
        let clones: Api<Workload> = worker.api(namespace);
        let none = |all: &[Workload]| all.is_empty();
        worker.until_all(&clones, "", "no clone is left", 2 * TIMEOUT, none).await?;
        let pods: Api<Pod> = worker.api(namespace);
        let none = |all: &[Pod]| all.is_empty();
        worker.until_all(&pods, "", "no pod is left", 2 * TIMEOUT, none).await?;
    }
    let none = |all: &[Workload]| all.is_empty();
    let workloads = fixture.workloads();
    fixture.hub.until_all(&workloads, "", "no Workload is left", 2 * TIMEOUT, none).await?;
    Ok(())
}
