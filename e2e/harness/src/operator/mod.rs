//! Plays the operator of a declared kind of job: a controller that knows the kind by its definition only.
//!
//! ```text
//! job + its pods ──step::next_step──> pods to create, pods to delete, the job with another status
//! ```
//! | file | concept |
//! |---|---|
//! | `replicated_pods` | pod sets of a job, and the pods that they ask for |
//! | `replica_counts` | active, ready, succeeded and failed replicas |
//! | `played_status` | counts and results, written where the definition reads them |
//! | `step` | what is next for one job |
//!
//! A job that another controller manages is left alone. Counts are those of replicas, as JobSet's are.

mod played_status;
mod replica_counts;
mod replicated_pods;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use jobs::Kind;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, ResourceExt};
use serde_json::Value;
use tokio::task::JoinSet;

use self::replicated_pods::TemplateObjects;
use self::step::{OperatorStep, next_step};
use crate::cluster::Cluster;
use crate::follow::Follow;
use crate::wait;

/// Label of the pods that a played operator creates; the value is the plural name of the kind.
const PLAYED: &str = "lab.sluice.dev/played";

/// Pause after a request that failed for another reason than a newer object.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Pause in which nothing has to be done.
const IDLE: Duration = Duration::from_secs(60);

/// A running operator. Dropping it ends it. It belongs to the async runtime that started it.
#[derive(Debug)]
pub struct PlayedOperator {
    _task: JoinSet<()>,
}

impl PlayedOperator {
    /// Starts the operator of a kind for one namespace of a cluster. The kind may be served later.
    pub fn start(cluster: &Cluster, kind: &Kind, namespace: &str) -> Self {
        let objects = Api::namespaced_with(cluster.client(), namespace, &resource_of(kind));
        let operator = OperatorTask { kind: kind.clone(), objects, pods: cluster.api(namespace) };
        let mut task = JoinSet::new();
        task.spawn(operator.run());
        Self { _task: task }
    }
}

/// The API resource of a kind of job.
pub fn resource_of(kind: &Kind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), kind.name());
    ApiResource::from_gvk_with_plural(&gvk, kind.plural())
}

struct OperatorTask {
    kind: Kind,
    objects: Api<DynamicObject>,
    pods: Api<Pod>,
}

impl OperatorTask {
    async fn run(self) {
        let mut jobs = Follow::new(self.objects.clone());
        let label = format!("{PLAYED}={}", self.kind.plural());
        let mut pods = Follow::new(self.pods.clone()).labelled(&label);
        let (mut all_jobs, mut all_pods) = (Vec::new(), Vec::new());
        let mut pause = IDLE;
        loop {
            tokio::select! {
                change = jobs.next() => wait::take(&mut all_jobs, change),
                change = pods.next() => wait::take(&mut all_pods, change),
                () = tokio::time::sleep(pause) => {}
            }
            let done = self.reconcile(&all_jobs, &all_pods).await;
            pause = if done { IDLE } else { POLL_INTERVAL };
        }
    }

    /// Takes the next step of every job. Returns whether all requests were answered.
    async fn reconcile(&self, jobs: &[DynamicObject], pods: &[Pod]) -> bool {
        let mut of_jobs: BTreeMap<String, Vec<&Pod>> = BTreeMap::new();
        for pod in pods {
            let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
            let uid = owner.map(|owner| owner.uid.clone()).unwrap_or_default();
            of_jobs.entry(uid).or_default().push(pod);
        }
        let mut done = true;
        for job in jobs.iter().filter(|job| job.metadata.deletion_timestamp.is_none()) {
            let own = of_jobs.remove(&job.uid().unwrap_or_default()).unwrap_or_default();
            let Ok(job) = serde_json::to_value(job) else { continue };
            let sources = self.sources(&job).await;
            let step = next_step((&self.kind, &sources), &job, &own, Timestamp::now());
            done &= self.take(step).await;
        }
        // Pods without their job.
        let orphans = of_jobs.into_values().flatten();
        let delete = orphans.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let delete = delete.map(ResourceExt::name_any).collect();
        self.take(OperatorStep { delete, ..OperatorStep::default() }).await && done
    }

    /// The objects with pod templates that a job names, by the lookup rule. A missing one is left out.
    async fn sources(&self, job: &Value) -> TemplateObjects {
        let namespace = job.pointer("/metadata/namespace").and_then(Value::as_str);
        let mut sources = TemplateObjects::new();
        for rule in self.kind.lookups() {
            let Some(needed) = rule.needed(job, namespace) else { continue };
            let gvk = GroupVersionKind::gvk(&rule.group, &rule.version, &rule.kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, &rule.plural);
            let client = self.objects.clone().into_client();
            let api: Api<DynamicObject> = match &needed.namespace {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            if let Ok(Some(object)) = api.get_opt(&needed.name).await {
                sources.insert(rule.name.clone(), object.data);
            }
        }
        sources
    }

    async fn take(&self, step: OperatorStep) -> bool {
        let mut done = true;
        for pod in step.create {
            if let Ok(pod) = serde_json::from_value(pod) {
                done &= is_answered(self.pods.create(&PostParams::default(), &pod).await);
            }
        }
        for name in step.delete {
            done &= is_answered(self.pods.delete(&name, &DeleteParams::default()).await);
        }
        if let Some(job) = step.status {
            done &= self.write_status(job).await;
        }
        done
    }

    async fn write_status(&self, job: Value) -> bool {
        let Ok(job) = serde_json::from_value::<DynamicObject>(job) else { return true };
        let name = job.name_any();
        is_answered(self.objects.replace_status(&name, &PostParams::default(), &job).await)
    }
}

/// Whether nothing has to be repeated. After a conflict, and for an object that is there already or gone, the watch delivers
/// what the next step depends on.
fn is_answered<T>(result: kube::Result<T>) -> bool {
    match result {
        Ok(_) => true,
        Err(kube::Error::Api(status)) => matches!(status.code, 404 | 409),
        Err(_) => false,
    }
}
