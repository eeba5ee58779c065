//! Where a test takes place: the installation, a namespace everywhere, and what is waited for there.

use std::{fmt::Debug, time::Duration};

use anyhow::{Result, ensure};
use crds::{
    v1alpha1::{ClusterCapacity, LOCAL},
    v1beta2::{MultiKueueCluster, Workload},
};
use e2e::world::{SOON, World};
use harness::{Cluster, Space, Verdict};
use k8s_openapi::{NamespaceResourceScope, api::batch::v1::Job, api::core::v1::Pod};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{house::House, place};

/// See the module.
pub(crate) struct Site {
    pub(crate) world: World<'static>,
    pub(crate) space: Space,
}

/// A condition, as far as it is told to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) status: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Site {
    /// Beside other tests.
    pub(crate) async fn shared(test: &str) -> Result<Self> {
        let world = House::shared().await?.world().await?;
        let space = world.lab.space(test).await?;
        Ok(Self { world, space })
    }

    /// For a test that breaks something.
    pub(crate) async fn alone(test: &str) -> Result<Self> {
        let world = House::alone().await?.world().await?;
        let space = world.lab.space_alone(test).await?;
        Ok(Self { world, space })
    }

    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    pub(crate) fn hub(&self) -> &Cluster {
        &self.world.hub
    }

    /// Worker number `number`, from 1.
    pub(crate) fn worker(&self, number: usize) -> &Cluster {
        &self.world.workers[number - 1]
    }

    /// The objects of a kind on the hub.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        self.hub().api(self.namespace())
    }

    /// Nodes on a worker for this test's pods.
    pub(crate) async fn nodes(&self, number: usize, count: usize, cpu: &str) -> Result<()> {
        let nodes = place::own_nodes(self.namespace(), count, cpu);
        Ok(self.worker(number).add_nodes(&nodes).await?)
    }

    /// A queue of this test's nodes on both workers.
    pub(crate) async fn queue(&self, cpu: &str) -> Result<()> {
        place::own_queue(self.hub(), self.namespace(), cpu, &["worker-1", "worker-2"]).await
    }

    /// Waits until the manager has read what a worker says of its nodes: it then says which labels it looks at.
    pub(crate) async fn until_reported(&self, number: usize) -> Result<()> {
        let reports = self.worker(number).cluster_api::<ClusterCapacity>();
        let read = |report: &ClusterCapacity| !report.spec.label_keys.is_empty();
        self.worker(number).until(&reports, LOCAL, "was read", SOON, read).await?;
        Ok(())
    }

    /// Submits a Job for the workers. The webhook would say so itself, a moment after the queue was made.
    pub(crate) async fn submit(&self, job: &Value) -> Result<()> {
        let mut job = job.clone();
        job["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
        Ok(self.hub().apply(&job.to_string(), self.namespace()).await?)
    }

    /// Waits until so many pods of a Job run on a worker.
    pub(crate) async fn until_running(&self, job: &str, pods: usize, on: usize) -> Result<()> {
        let worker = self.worker(on);
        let labels = format!("batch.kubernetes.io/job-name={job}");
        let running = |all: &[Pod]| {
            let phases = all.iter().filter_map(|pod| pod.status.as_ref()?.phase.as_deref());
            phases.filter(|phase| *phase == "Running").count() == pods
        };
        let what = format!("{pods} pods of {job} run");
        let all = worker.api::<Pod>(self.namespace());
        worker.until_all(&all, &labels, &what, SOON, running).await?;
        Ok(())
    }

    /// Waits until a Job is complete on the hub.
    pub(crate) async fn until_complete(&self, job: &str, within: Duration) -> Result<()> {
        let complete = |job: &Job| {
            let status = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
            status.into_iter().any(|one| one.type_ == "Complete" && one.status == "True")
        };
        self.hub().until(&self.api::<Job>(), job, "is complete", within, complete).await?;
        Ok(())
    }

    /// Waits until this holds for the Workload of a Job.
    pub(crate) async fn until_workload(
        &self,
        job: &str,
        what: &str,
        condition: impl Fn(&Workload) -> bool,
    ) -> Result<Workload> {
        let found = |all: &[Workload]| of(all, job).is_some_and(&condition);
        let what = format!("the Workload of {job} {what}");
        let all = self.hub().until_all(&self.api(), "", &what, SOON, found).await?;
        of(&all, job).cloned().ok_or_else(|| anyhow::anyhow!("no Workload of {job}"))
    }

    /// Waits until a registered worker says this of itself.
    pub(crate) async fn until_worker(
        &self,
        name: &str,
        what: &str,
        condition: impl Fn(&Said) -> bool,
    ) -> Result<Said> {
        let said = |one: &MultiKueueCluster| said(&one.status.conditions, "Active");
        let clusters = self.hub().cluster_api::<MultiKueueCluster>();
        let holds = |one: &MultiKueueCluster| said(one).is_some_and(|said| condition(&said));
        let cluster = self.hub().until(&clusters, name, what, 2 * SOON, holds).await?;
        said(&cluster).ok_or_else(|| anyhow::anyhow!("{name} says nothing"))
    }

    /// Waits until no worker has a Job or a clone in the namespace.
    pub(crate) async fn until_nothing_is_left(&self) -> Result<()> {
        for worker in &self.world.workers {
            let namespace = self.namespace();
            let jobs = worker.api::<Job>(namespace);
            worker.until_all(&jobs, "", "no job is left", SOON, <[Job]>::is_empty).await?;
            let clones = worker.api::<Workload>(namespace);
            worker.until_all(&clones, "", "no clone is left", SOON, <[Workload]>::is_empty).await?;
        }
        Ok(())
    }

    /// The Job ran once from its beginning to its end, and nothing of it is left.
    pub(crate) async fn expect_once(&self, job: &str, pods: usize) -> Result<()> {
        self.expect(job, pods, &[Verdict::Once]).await
    }

    /// The same, but runs that were stopped before are no harm.
    pub(crate) async fn expect_once_in_the_end(&self, job: &str, pods: usize) -> Result<()> {
        self.expect(job, pods, &[Verdict::Once, Verdict::Moved]).await
    }

    async fn expect(&self, job: &str, pods: usize, verdicts: &[Verdict]) -> Result<()> {
        self.until_complete(job, 2 * SOON).await?;
        self.until_workload(job, "is finished", |one| holds(one, "Finished")).await?;
        self.until_nothing_is_left().await?;
        let judgement = self.space.observer().judge(job, pods, SOON).await?;
        ensure!(verdicts.contains(&judgement.verdict), "{judgement}");
        Ok(())
    }

    /// Changes fields of an object on the hub.
    pub(crate) async fn change<K>(&self, name: &str, fields: &Value) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        api.patch(name, &PatchParams::default(), &Patch::Merge(fields)).await?;
        Ok(())
    }
}

/// Deletes an object as `kubectl delete` does.
pub(crate) async fn delete<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    api.delete(name, &DeleteParams::background()).await?;
    Ok(())
}

/// The Workload of a Job that is there to stay.
fn of<'a>(all: &'a [Workload], job: &str) -> Option<&'a Workload> {
    all.iter().find(|one| one.owner_references().iter().any(|owner| owner.name == job))
}

/// What a condition says.
pub(crate) fn said(conditions: &[crds::meta::Condition], kind: &str) -> Option<Said> {
    let one = conditions.iter().find(|one| one.r#type == kind)?;
    let status = one.status == "True";
    Some(Said { status, reason: one.reason.clone(), message: one.message.clone() })
}

/// Whether a condition of a Workload is true.
pub(crate) fn holds(workload: &Workload, kind: &str) -> bool {
    crds::meta::is_true(&workload.status.conditions, kind)
}

/// A Job with one more label.
pub(crate) fn with_label(mut job: Value, label: &str, value: &str) -> Value {
    job["metadata"]["labels"][label] = json!(value);
    job
}
