//! A namespace with a queue that has a provisioning check, and an autoscaler whose answers the test gives.

use anyhow::Result;
use crds::{
    meta::find,
    v1beta2::{AdmissionCheck, AdmissionCheckState, ProvisioningRequestConfig, Workload},
};
pub(crate) use e2e::objects::LONG;
use e2e::{
    installation::{Installation, TIMEOUT},
    manager_lab::{KeptManager, ManagerLab},
    objects,
};
use harness::{Cluster, Space};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use provisioning::{EntryTemplate, ProvisioningRequest, attempt::request_name};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The kind that an autoscaler serves.
pub(crate) const CRD: &str = include_str!("provisioning-request-crd.yaml");

/// The Workload of tests that need no job.
pub(crate) const WORKLOAD: &str = "train";

const API: &str = "kueue.x-k8s.io/v1beta2";

static SHARED: OnceCell<ManagerLab> = OnceCell::const_new();

/// A namespace with a queue that has a provisioning check.
pub(crate) struct ProvisioningFixture {
    space: Space,
    pub(crate) hub: Cluster,
    installation: Installation<'static>,
    manager: Option<KeptManager<'static>>,
}

async fn shared() -> Result<&'static ManagerLab> {
    let start = || async {
        let shared = ManagerLab::start(&["batch/job"]).await?;
        let hub = shared.installation().await?.hub;
        hub.add_nodes(&objects::nodes("provisioning", 4, "8")).await?;
        hub.apply(CRD, "default").await?;
        Ok(shared)
    };
    SHARED.get_or_try_init(start).await
}

impl ProvisioningFixture {
    /// With a config of these fields beside its class.
    pub(crate) async fn new(test: &str, config: &Value) -> Result<Self> {
        let fixture = Self::without_config(test).await?;
        fixture.configure(config).await?;
        fixture.until_check_is(&("True", "Active", "The admission check is active")).await?;
        Ok(fixture)
    }

    /// With a queue whose check names a config that is not there.
    pub(crate) async fn without_config(test: &str) -> Result<Self> {
        Self::with_check(test, provisioning_check).await
    }

    /// With a queue that has a check of this spec, by the name of both.
    pub(crate) async fn with_check(test: &str, spec: impl Fn(&str) -> Value) -> Result<Self> {
        let shared = shared().await?;
        let installation = shared.installation().await?;
        let space = installation.lab.space(test).await?;
        let (hub, manager) = (installation.hub.clone(), Some(shared.keep_manager().await));
        queue(&hub, space.namespace(), &spec(space.namespace())).await?;
        Ok(Self { space, hub, installation, manager })
    }

    /// The name of the namespace, the queue, the check and its config.
    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    pub(crate) fn requests(&self) -> Api<ProvisioningRequest> {
        self.hub.api(self.namespace())
    }

    pub(crate) fn templates(&self) -> Api<EntryTemplate> {
        self.hub.api(self.namespace())
    }

    pub(crate) fn workloads(&self) -> Api<Workload> {
        self.hub.api(self.namespace())
    }

    /// Ends the manager and starts another one.
    pub(crate) async fn restart_manager(&mut self) -> Result<()> {
        self.manager = None;
        self.manager = Some(shared().await?.restart_manager(&self.installation).await?);
        Ok(())
    }

    pub(crate) async fn configure(&self, fields: &Value) -> Result<()> {
        configure(&self.hub, self.namespace(), fields).await
    }

    pub(crate) async fn until_check_is(&self, expected: &(&str, &str, &str)) -> Result<()> {
        until_check_is(&self.hub, self.namespace(), expected).await
    }

    /// Submits a Job of so many pods of one cpu, with these fields.
    pub(crate) async fn submit(&self, pods: usize, fields: Value) -> Result<()> {
        let mut job = objects::job(WORKLOAD, pods, "1", LONG);
        json_patch::merge(&mut job, &fields);
        let jobs: Api<Job> = self.hub.api(self.namespace());
        jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
        Ok(())
    }

    /// Creates a Workload without a job, of these pod sets: name, pods, image.
    pub(crate) async fn create_workload(&self, pod_sets: &[(&str, i32, &str)]) -> Result<()> {
        let set = |(name, count, image): &(&str, i32, &str)| {
            json!({"name": name, "count": count, "template": {"spec": {
                "restartPolicy": "Never", "containers": [{
                    "name": "main", "image": image, "resources": {"requests": {"cpu": "1"}},
                }],
            }}})
        };
        let sets: Vec<Value> = pod_sets.iter().map(set).collect();
        let workload = json!({
            "apiVersion": API, "kind": "Workload", "metadata": {"name": WORKLOAD},
            "spec": {"queueName": "queue", "podSets": sets},
        });
        self.workloads().create(&PostParams::default(), &serde_json::from_value(workload)?).await?;
        Ok(())
    }

    /// The only Workload, once this holds for it and the state of its check.
    pub(crate) async fn until_workload(
        &self,
        what: &str,
        holds: impl Fn(&Workload, &AdmissionCheckState) -> bool,
    ) -> Result<Workload> {
        let found = |all: &[Workload]| {
            all.iter().any(|one| {
                one.status.admission_checks.first().is_some_and(|state| holds(one, state))
            })
        };
        let what = format!("the Workload {what}");
        let all = self.hub.until_all(&self.workloads(), "", &what, 2 * TIMEOUT, found).await?;
        all.into_iter().next().ok_or_else(|| anyhow::Error::msg("no Workload"))
    }

    /// Waits until the check of the Workload has this state and message.
    pub(crate) async fn until_state(&self, state: &str, message: &str) -> Result<Workload> {
        let what = format!("is {state}: {message}");
        self.until_workload(&what, |_, known| known.state == state && known.message == message)
            .await
    }

    /// Waits for the request of an attempt of the only Workload.
    pub(crate) async fn until_request(&self, attempt: i32) -> Result<ProvisioningRequest> {
        let workload = self.until_workload("has the check", |_, _| true).await?;
        let workload = workload.metadata.name.unwrap_or_default();
        let name = request_name(&workload, self.namespace(), attempt);
        let alive = |one: &ProvisioningRequest| one.metadata.deletion_timestamp.is_none();
        Ok(self.hub.until(&self.requests(), &name, "is there", 2 * TIMEOUT, alive).await?)
    }

    /// Adds a condition to a request: type, status, message.
    pub(crate) async fn answer(
        &self,
        request: &ProvisioningRequest,
        (condition, status, message): (&str, &str, &str),
    ) -> Result<()> {
        let name = request.metadata.name.clone().unwrap_or_default();
        let mut conditions = json!(self.requests().get(&name).await?.status.conditions);
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.retain(|one| one["type"] != condition);
            conditions.push(json!({
                "type": condition, "status": status, "reason": "Played", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }));
        }
        let status = Patch::Merge(json!({"status": {
            "conditions": conditions, "provisioningClassDetails": {"zone": "a"},
        }}));
        self.requests().patch_status(&name, &PatchParams::default(), &status).await?;
        Ok(())
    }
}

/// The spec of a provisioning check with the config of this name.
pub(crate) fn provisioning_check(config: &str) -> Value {
    json!({
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {
            "apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": config,
        },
    })
}

/// A queue of 8 cpus with a check of this spec, all named after the namespace.
pub(crate) async fn queue(hub: &Cluster, namespace: &str, check: &Value) -> Result<()> {
    let check = json!({
        "apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": namespace}, "spec": check,
    });
    hub.apply(&check.to_string(), namespace).await?;
    objects::queue(hub, namespace, "8", &[]).await?;
    let queues = hub.cluster_api::<crds::v1beta2::ClusterQueue>();
    let strategy = json!({"admissionChecks": [{"name": namespace}]});
    let patch = Patch::Merge(json!({"spec": {"admissionChecksStrategy": strategy}}));
    queues.patch(namespace, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Creates or changes the config.
pub(crate) async fn configure(hub: &Cluster, name: &str, fields: &Value) -> Result<()> {
    let mut config = json!({
        "apiVersion": API, "kind": "ProvisioningRequestConfig", "metadata": {"name": name},
        "spec": {"provisioningClassName": "queued.lab"},
    });
    json_patch::merge(&mut config["spec"], fields);
    let configs = hub.cluster_api::<ProvisioningRequestConfig>();
    configs.patch(name, &PatchParams::apply("test"), &Patch::Apply(config)).await?;
    Ok(())
}

/// Waits until the condition Active of the check is this: status, reason, message.
pub(crate) async fn until_check_is(
    hub: &Cluster,
    name: &str,
    (status, reason, message): &(&str, &str, &str),
) -> Result<()> {
    let is = |check: &AdmissionCheck| {
        find(&check.status.conditions, "Active").is_some_and(|one| {
            (&*one.status, &*one.reason, &*one.message) == (*status, *reason, *message)
        })
    };
    let what = format!("is {status} {reason}: {message}");
    let checks = hub.cluster_api::<AdmissionCheck>();
    hub.until(&checks, name, &what, 2 * TIMEOUT, is).await?;
    Ok(())
}
