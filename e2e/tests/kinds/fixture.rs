//! The fixture of a test: the installation, a namespace everywhere, operators of the kind under test, and waits.

use anyhow::{Context, Result};
use crds::{meta::is_true, names::MULTI_KUEUE_CONTROLLER, v1beta2::Workload};
use e2e::{
    installation::{Installation, TIMEOUT},
    objects, waits,
};
use harness::{Cluster, PlayedOperator, RunVerdict, Space, resource_of};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    },
};
use serde_json::{Value, json};

use crate::{
    kind_under_test::{JobPlan, KindUnderTest},
    shared_installation::SharedInstallation,
};

/// An installation with the operators of the kind under test.
pub(crate) struct KindFixture {
    pub(crate) installation: Installation<'static>,
    pub(crate) space: Space,
    pub(crate) tested: KindUnderTest,
    operators: Vec<PlayedOperator>,
}

impl KindFixture {
    /// A namespace of this test and kind. Its operator runs in every cluster, unless Kubernetes runs jobs of the kind.
    pub(crate) async fn new(test: &str, tested: KindUnderTest) -> Result<Self> {
        let mut fixture = Self::without_operators(test, tested).await?;
        fixture.start_operators();
        Ok(fixture)
    }

    /// A namespace of this test and kind before its operators run: started jobs have no pods.
    pub(crate) async fn without_operators(test: &str, tested: KindUnderTest) -> Result<Self> {
        let installation = SharedInstallation::get().await?.installation().await?;
        let test = format!("{test}_{}", tested.kind.plural());
        let space = installation.lab.space(&test).await?;
        Ok(Self { installation, space, tested, operators: Vec::new() })
    }

    pub(crate) fn start_operators(&mut self) {
        let kind = &self.tested.kind;
        let clusters = self.space.clusters().iter().filter(|_| kind.fields().is_some());
        let start = |cluster| PlayedOperator::start(cluster, kind, self.space.namespace());
        self.operators = clusters.map(start).collect();
    }

    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    pub(crate) fn hub(&self) -> &Cluster {
        &self.installation.hub
    }

    /// Worker number `number`, from 1.
    pub(crate) fn worker(&self, number: usize) -> &Cluster {
        &self.installation.workers[number - 1]
    }

    /// Jobs of the kind under test.
    pub(crate) fn jobs(&self, cluster: &Cluster) -> Api<DynamicObject> {
        let resource = resource_of(&self.tested.kind);
        Api::namespaced_with(cluster.client(), self.namespace(), &resource)
    }

    pub(crate) fn workloads(&self, cluster: &Cluster) -> Api<Workload> {
        cluster.api(self.namespace())
    }

    /// Room and quota on the hub for so many jobs at once.
    pub(crate) async fn room_on_hub(&self, jobs: usize) -> Result<()> {
        let cpu = self.cpu(jobs);
        self.hub().add_nodes(&objects::own_nodes(self.namespace(), 1, &cpu)).await?;
        objects::own_queue(self.hub(), self.namespace(), &cpu, &[]).await
    }

    /// Room for so many jobs at once on a worker.
    pub(crate) async fn room_on(&self, number: usize, jobs: usize) -> Result<()> {
        let nodes = objects::own_nodes(self.namespace(), 1, &self.cpu(jobs));
        Ok(self.worker(number).add_nodes(&nodes).await?)
    }

    /// Quota for so many jobs at once on both workers.
    pub(crate) async fn quota_on_workers(&self, jobs: usize) -> Result<()> {
        let (cpu, workers) = (self.cpu(jobs), ["worker-1", "worker-2"]);
        objects::own_queue(self.hub(), self.namespace(), &cpu, &workers).await
    }

    /// A pod of the suite requests one cpu.
    fn cpu(&self, jobs: usize) -> String {
        (jobs * self.tested.pods()).to_string()
    }

    /// Creates a job with a queue name on the hub. Returns it as the webhook left it.
    pub(crate) async fn submit(&self, plan: &JobPlan) -> Result<Value> {
        self.provide(plan).await?;
        self.submit_alone(plan).await
    }

    /// Creates a job with a queue name on the hub, without the object that it needs.
    pub(crate) async fn submit_alone(&self, plan: &JobPlan) -> Result<Value> {
        let mut job = self.tested.job_of(plan);
        job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "queue"});
        self.create(job).await
    }

    /// Creates a job for workers on the hub. `managedBy` is set here, because the webhook may not know the new queue yet.
    pub(crate) async fn submit_for_workers(&self, plan: &JobPlan) -> Result<Value> {
        self.provide(plan).await?;
        let mut job = self.tested.job_of(plan);
        job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "queue"});
        let managed_by = self.tested.kind.managed_by().context("managedBy")?;
        managed_by.at.set(&mut job, json!(MULTI_KUEUE_CONTROLLER));
        self.create(job).await
    }

    /// Creates the object that a job needs in every cluster, if its kind needs any.
    pub(crate) async fn provide(&self, plan: &JobPlan) -> Result<()> {
        let Some(object) = self.tested.needed_by(plan) else {
            return Ok(());
        };
        let object: DynamicObject = serde_json::from_value(object)?;
        let rule = self.tested.kind.lookups().first().context("a lookup")?;
        let gvk = GroupVersionKind::gvk(&rule.group, &rule.version, &rule.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &rule.plural);
        for cluster in self.space.clusters() {
            let api: Api<DynamicObject> =
                Api::namespaced_with(cluster.client(), self.namespace(), &resource);
            api.create(&PostParams::default(), &object).await?;
        }
        Ok(())
    }

    /// Creates a job on the hub.
    pub(crate) async fn create(&self, job: Value) -> Result<Value> {
        let job: DynamicObject = serde_json::from_value(job)?;
        let created = self.jobs(self.hub()).create(&PostParams::default(), &job).await?;
        Ok(serde_json::to_value(created)?)
    }

    pub(crate) async fn delete(&self, cluster: &Cluster, job: &str) -> Result<()> {
        self.jobs(cluster).delete(job, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Waits until this holds for a job.
    pub(crate) async fn until_job(
        &self,
        cluster: &Cluster,
        job: &str,
        what: &str,
        condition: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let json = |job: &DynamicObject| serde_json::to_value(job).unwrap_or_default();
        let holds = |job: &DynamicObject| condition(&json(job));
        let found = cluster.until(&self.jobs(cluster), job, what, 2 * TIMEOUT, holds).await?;
        Ok(json(&found))
    }

    /// Waits until a job is unsuspended.
    pub(crate) async fn until_started(&self, cluster: &Cluster, job: &str) -> Result<Value> {
        let started = |job: &Value| !self.tested.is_suspended(job);
        self.until_job(cluster, job, "is started", started).await
    }

    /// Waits until a job on the hub ends well.
    pub(crate) async fn until_succeeded(&self, job: &str) -> Result<Value> {
        let succeeded = |job: &Value| (self.tested.succeeded)(job) == Some(true);
        self.until_job(self.hub(), job, "succeeds", succeeded).await
    }

    /// Waits until this holds for the Workload of a job on the hub.
    pub(crate) async fn until_workload(
        &self,
        job: &str,
        what: &str,
        condition: impl Fn(&Workload) -> bool,
    ) -> Result<Workload> {
        let place = (self.hub(), self.namespace());
        waits::until_workload(place, (job, what), 2 * TIMEOUT, condition).await
    }

    pub(crate) async fn until_finished(&self, job: &str) -> Result<Workload> {
        let finished = |one: &Workload| is_true(&one.status.conditions, "Finished");
        self.until_workload(job, "is finished", finished).await
    }

    /// Sets `spec.active` of a Workload.
    pub(crate) async fn activate(&self, workload: &str, active: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"active": active}}));
        self.workloads(self.hub()).patch(workload, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until all pods of a job run. Returns them.
    pub(crate) async fn until_running(&self, cluster: &Cluster, job: &str) -> Result<Vec<Pod>> {
        let running = |pod: &&Pod| {
            objects::phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none()
        };
        let number = |all: &[Pod]| of(all, job).filter(running).count() == self.tested.pods();
        let what = format!("the pods of {job} run");
        let pods = cluster.api::<Pod>(self.namespace());
        let all = cluster.until_all(&pods, "", &what, 2 * TIMEOUT, number).await?;
        Ok(of(&all, job).filter(running).cloned().collect())
    }

    /// Waits until a job has no pods.
    pub(crate) async fn until_without_pods(&self, cluster: &Cluster, job: &str) -> Result<()> {
        let what = format!("{job} has no pods");
        let none = |all: &[Pod]| of(all, job).next().is_none();
        let pods = cluster.api::<Pod>(self.namespace());
        cluster.until_all(&pods, "", &what, 2 * TIMEOUT, none).await?;
        Ok(())
    }

    /// Waits until no worker has a job, a clone or a pod in the namespace.
    pub(crate) async fn until_nothing_is_left(&self) -> Result<()> {
        for worker in &self.installation.workers {
            let jobs = self.jobs(worker);
            let none = |all: &[DynamicObject]| all.is_empty();
            worker.until_all(&jobs, "", "no job is left", TIMEOUT, none).await?;
            let clones = self.workloads(worker);
            let none = |all: &[Workload]| all.is_empty();
            worker.until_all(&clones, "", "no clone is left", TIMEOUT, none).await?;
            waits::until_no_pod_is_left(worker, self.namespace(), TIMEOUT).await?;
        }
        Ok(())
    }

    /// The observer's verdict about a job is one of these.
    pub(crate) async fn expect(&self, job: &str, verdicts: &[RunVerdict]) -> Result<()> {
        let job = (job, self.tested.pods());
        waits::ensure_verdict(self.space.observer(), job, verdicts).await.map(drop)
    }
}

/// Pods that a job controls.
fn of<'a>(all: &'a [Pod], job: &'a str) -> impl Iterator<Item = &'a Pod> {
    all.iter().filter(move |pod| {
        let mut owners = pod.owner_references().iter();
        owners.any(|owner| owner.controller == Some(true) && owner.name == job)
    })
}
