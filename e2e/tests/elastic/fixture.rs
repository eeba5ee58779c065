//! A namespace with nodes, a queue, and one elastic Job.

use anyhow::{Context, Result};
use crds::{
    meta::is_true,
    names::annotations::ELASTIC_JOB,
    v1beta2::{ClusterQueue, Workload},
};
use e2e::{
    installation::{Installation, TIMEOUT},
    manager_lab::{KeptManager, ManagerLab},
    objects::{self, LONG},
};
use harness::{Cluster, Space};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The Job.
const JOB: &str = "train";

static SHARED: OnceCell<ManagerLab> = OnceCell::const_new();

/// A namespace with nodes, a queue, and one elastic Job.
pub(crate) struct ElasticFixture {
    space: Space,
    hub: Cluster,
    installation: Installation<'static>,
    manager: Option<KeptManager<'static>>,
}

async fn shared() -> Result<&'static ManagerLab> {
    let start = || async {
        let shared = ManagerLab::start(&["batch/job"]).await?;
        let hub = shared.installation().await?.hub;
        hub.add_nodes(&objects::nodes("elastic", 4, "8")).await?;
        Ok(shared)
    };
    SHARED.get_or_try_init(start).await
}

impl ElasticFixture {
    /// With a Job of so many pods of one cpu, and quota for five.
    pub(crate) async fn new(test: &str, pods: usize) -> Result<Self> {
        let shared = shared().await?;
        let installation = shared.installation().await?;
        let space = installation.lab.space(test).await?;
        let hub = installation.hub.clone();
        let manager = Some(shared.keep_manager().await);
        let fixture = Self { space, hub, installation, manager };
        objects::queue(&fixture.hub, fixture.namespace(), "5", &[]).await?;
        let mut job = objects::job(JOB, pods, "1", LONG);
        job["metadata"]["annotations"] = json!({ELASTIC_JOB: "true"});
        job["spec"]["completions"] = json!(100);
        job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
        let job: Job = serde_json::from_value(job)?;
        fixture.jobs().create(&PostParams::default(), &job).await?;
        Ok(fixture)
    }

    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    fn jobs(&self) -> Api<Job> {
        self.hub.api(self.namespace())
    }

    /// Ends the manager and starts another one.
    pub(crate) async fn restart_manager(&mut self) -> Result<()> {
        self.manager = None;
        self.manager = Some(shared().await?.restart_manager(&self.installation).await?);
        Ok(())
    }

    pub(crate) async fn resize(&self, pods: usize) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"parallelism": pods}}));
        self.jobs().patch(JOB, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(crate) async fn delete_job(&self) -> Result<()> {
        self.jobs().delete(JOB, &DeleteParams::background()).await?;
        Ok(())
    }

    pub(crate) async fn change_queue(&self, spec: Value) -> Result<()> {
        let queues = self.hub.cluster_api::<ClusterQueue>();
        let patch = Patch::Merge(json!({"spec": spec}));
        queues.patch(self.namespace(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until this holds for the slices, which come in the order of their creation.
    pub(crate) async fn until_slices(
        &self,
        what: &str,
        holds: impl Fn(&[Slice]) -> bool,
    ) -> Result<Vec<Slice>> {
        let slices = |all: &[Workload]| {
            let mut slices: Vec<Slice> = all.iter().map(Slice::of).collect();
            slices.sort_by(|one, other| {
                (&one.created, &one.replaces).cmp(&(&other.created, &other.replaces))
            });
            slices
        };
        let workloads: Api<Workload> = self.hub.api(self.namespace());
        let held = |all: &[Workload]| holds(&slices(all));
        let all = self.hub.until_all(&workloads, "", what, 2 * TIMEOUT, held).await?;
        Ok(slices(&all))
    }

    /// Waits until one slice is left, of so many pods with quota.
    pub(crate) async fn until_one_slice(&self, pods: i32) -> Result<Slice> {
        let what = format!("one slice of {pods} pods is admitted");
        let one = |slices: &[Slice]| {
            let open: Vec<&Slice> = slices.iter().filter(|one| one.ended.is_empty()).collect();
            matches!(open[..], [one] if one.pods == pods && one.admitted)
        };
        let slices = self.until_slices(&what, one).await?;
        slices.into_iter().find(|one| one.ended.is_empty()).context("a slice")
    }

    /// Waits until so many pods run and so many wait behind their gate.
    pub(crate) async fn until_pods(&self, running: usize, gated: usize) -> Result<()> {
        let what = format!("{running} pods run and {gated} are gated");
        let labels = format!("batch.kubernetes.io/job-name={JOB}");
        let counted = |pods: &[Pod]| {
            let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
            let pods: Vec<&Pod> = pods.iter().filter(stays).collect();
            let waiting = pods.iter().filter(|pod| is_gated(pod)).count();
            let runs = pods.iter().filter(|pod| runs(pod)).count();
            (runs, waiting, pods.len()) == (running, gated, running + gated)
        };
        let pods = self.hub.api(self.namespace());
        self.hub.until_all(&pods, &labels, &what, 2 * TIMEOUT, counted).await?;
        Ok(())
    }

    /// Waits until the ClusterQueue shows that so many cpus are used.
    pub(crate) async fn until_used(&self, cpus: &str) -> Result<()> {
        let uses = |queue: &ClusterQueue| {
            let flavors = queue.status.flavors_usage.iter();
            let mut totals =
                flavors.flat_map(|one| &one.resources).filter_map(|one| one.total.as_ref());
            totals.any(|total| total.to_string() == cpus)
        };
        let queues = self.hub.cluster_api::<ClusterQueue>();
        let what = format!("{cpus} cpus are used");
        self.hub.until(&queues, self.namespace(), &what, TIMEOUT, uses).await?;
        Ok(())
    }
}

/// A Workload of the Job.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) name: String,
    pub(crate) chain: String,
    pub(crate) replaces: String,
    pub(crate) pods: i32,
    pub(crate) admitted: bool,
    /// The reason of its end; empty while it is not over.
    pub(crate) ended: String,
    created: String,
}

impl Slice {
    fn of(workload: &Workload) -> Self {
        let annotation = |key: &str| {
            let all = workload.metadata.annotations.as_ref();
            all.and_then(|all| all.get(&format!("kueue.x-k8s.io/{key}")))
                .cloned()
                .unwrap_or_default()
        };
        let conditions = &workload.status.conditions;
        let ended = crds::meta::find(conditions, "Finished");
        Self {
            name: workload.metadata.name.clone().unwrap_or_default(),
            chain: annotation("workload-slice-name"),
            replaces: annotation("workload-slice-replacement-for"),
            pods: workload.spec.pod_sets[0].count.unwrap_or_default(),
            admitted: is_true(conditions, "Admitted"),
            ended: ended.map(|one| one.reason.clone()).unwrap_or_default(),
            created: workload
                .metadata
                .creation_timestamp
                .as_ref()
                .map(|time| time.0.to_string())
                .unwrap_or_default(),
        }
    }
}

fn is_gated(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.is_some_and(|spec| spec.scheduling_gates.iter().flatten().next().is_some())
}

fn runs(pod: &Pod) -> bool {
    objects::phase(pod) == "Running"
}
