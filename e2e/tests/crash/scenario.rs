//! The life of one Job, as it is watched from outside.

use anyhow::{Context, Result, ensure};
use crds::{meta::is_true, v1beta2::Workload};
use e2e::world::{SOON, World};
use harness::{NodeSpec, Observer, Verdict, annotation};
use k8s_openapi::api::{batch::v1::Job, core::v1::Namespace};
use kube::{
    ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;

const NAMESPACE: &str = "crash";

/// Pods of every Job.
const PODS: usize = 2;

/// The queue, its worker, and room there.
pub(crate) async fn prepare(world: &World<'_>) -> Result<()> {
    for cluster in std::iter::once(&world.hub).chain(&world.workers) {
        let metadata = ObjectMeta { name: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        cluster.cluster_api::<Namespace>().create(&PostParams::default(), &namespace).await?;
    }
    let worker = world.workers.first().context("a worker")?;
    worker.add_nodes(&NodeSpec { cpu: "8".to_owned(), ..NodeSpec::default() }).await?;
    let api = "kueue.x-k8s.io/v1beta2";
    let objects = [
        json!({"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": "default"}}),
        json!({"apiVersion": api, "kind": "MultiKueueConfig", "metadata": {"name": "workers"},
            "spec": {"clusters": ["worker-1"]}}),
        json!({"apiVersion": api, "kind": "AdmissionCheck", "metadata": {"name": "workers"}, "spec": {
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "workers"},
        }}),
        json!({"apiVersion": api, "kind": "ClusterQueue", "metadata": {"name": "crash"}, "spec": {
            "namespaceSelector": {},
            "admissionChecksStrategy": {"admissionChecks": [{"name": "workers"}]},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "8"}]},
            ]}],
        }}),
        json!({"apiVersion": api, "kind": "LocalQueue", "metadata": {"name": "queue"},
            "spec": {"clusterQueue": "crash"}}),
    ];
    let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
    world.hub.apply(&text.join("\n---\n"), NAMESPACE).await?;
    Ok(())
}

/// One Job.
pub(crate) struct Life<'a> {
    pub(crate) world: &'a World<'a>,
    pub(crate) name: &'a str,
    /// It is deactivated while it runs, and activated again when its quota is released.
    pub(crate) evicted: bool,
}

impl Life<'_> {
    pub(crate) async fn submit(&self) -> Result<()> {
        let seconds = if self.evicted { 4 } else { 1 };
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": self.name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": {
                "parallelism": PODS, "completions": PODS,
                "template": {
                    "metadata": {"annotations": {annotation::RUN_SECONDS: seconds.to_string()}},
                    "spec": {"restartPolicy": "Never", "containers": [{
                        "name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}},
                    }]},
                },
            },
        });
        Ok(self.world.hub.apply(&job.to_string(), NAMESPACE).await?)
    }

    /// Until the Job is complete on the hub and nothing is left anywhere else.
    pub(crate) async fn until_over(&self) -> Result<()> {
        let hub = &self.world.hub;
        if self.evicted {
            self.interrupt().await?;
        }
        let complete = |job: &Job| {
            let conditions =
                job.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().any(|one| one.type_ == "Complete" && one.status == "True")
        };
        hub.until(&hub.api::<Job>(NAMESPACE), self.name, "is complete", SOON, complete).await?;
        let workloads = hub.api::<Workload>(NAMESPACE);
        let over = |all: &[Workload]| {
            let mut own = all.iter().filter(|one| self.owns(one));
            own.all(|one| {
                is_true(&one.status.conditions, "Finished") && one.finalizers().is_empty()
            })
        };
        hub.until_all(&workloads, "", "its Workload is finished", SOON, over).await?;
        let worker = self.world.workers.first().context("a worker")?;
        let jobs = worker.api::<Job>(NAMESPACE);
        worker.until_all(&jobs, "", "no job is left", SOON, <[Job]>::is_empty).await?;
        let clones = worker.api::<Workload>(NAMESPACE);
        worker.until_all(&clones, "", "no clone is left", SOON, <[Workload]>::is_empty).await?;
        Ok(())
    }

    fn owns(&self, workload: &Workload) -> bool {
        workload.owner_references().iter().any(|owner| owner.name == self.name)
    }

    /// Deactivates the Workload once it runs, and activates it when nothing of it runs.
    async fn interrupt(&self) -> Result<()> {
        let hub = &self.world.hub;
        let workloads = hub.api::<Workload>(NAMESPACE);
        let has = |kind: &'static str| {
            move |all: &[Workload]| {
                let mut own = all.iter().filter(|one| self.owns(one));
                own.any(|one| is_true(&one.status.conditions, kind))
            }
        };
        let evicted_or = |kind| {
            let (admitted, evicted) = (has(kind), has("Evicted"));
            move |all: &[Workload]| admitted(all) || evicted(all)
        };
        let all =
            hub.until_all(&workloads, "", "is admitted", SOON, evicted_or("Admitted")).await?;
        let own = all.iter().find(|one| self.owns(one)).context("its Workload")?;
        let name = own.name_any();
        if !is_true(&own.status.conditions, "Evicted") {
            let runs = |job: &Job| {
                let status = job.status.clone().unwrap_or_default();
                status.active > Some(0) || status.succeeded > Some(0)
            };
            hub.until(&hub.api::<Job>(NAMESPACE), self.name, "runs", SOON, runs).await?;
            let off = Patch::Merge(json!({"spec": {"active": false}}));
            workloads.patch(&name, &PatchParams::default(), &off).await?;
        }
        let released = |one: &Workload| {
            is_true(&one.status.conditions, "Evicted")
                && !is_true(&one.status.conditions, "QuotaReserved")
        };
        hub.until(&workloads, &name, "gave its quota back", SOON, released).await?;
        let on = Patch::Merge(json!({"spec": {"active": true}}));
        workloads.patch(&name, &PatchParams::default(), &on).await?;
        Ok(())
    }

    /// By the pods that ran: once, or once more after the first were stopped.
    pub(crate) async fn judge(&self, observer: &Observer) -> Result<()> {
        let judgement = observer.judge(self.name, PODS, SOON).await?;
        let expected: &[Verdict] =
            if self.evicted { &[Verdict::Once, Verdict::Moved] } else { &[Verdict::Once] };
        ensure!(expected.contains(&judgement.verdict), "{judgement}");
        Ok(())
    }
}

/// Watches every pod of all Jobs, from before the first.
pub(crate) async fn observe(world: &World<'_>) -> Result<Observer> {
    let clusters: Vec<_> = std::iter::once(&world.hub).chain(&world.workers).cloned().collect();
    Ok(Observer::start(&clusters, NAMESPACE, SOON).await?)
}
