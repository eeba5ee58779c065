//! Reads what a drain concerns, writes the changes, and waits for the end of the work.

use std::time::Duration;

use crds::{
    names::{SLUICECTL, annotations::POLICY, labels::MANAGED_BY},
    v1alpha1::DispatchPolicy,
    v1beta2::{MultiKueueCluster, MultiKueueConfig, Workload},
};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::ApiResource,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{DrainOrder, PolicyChange, PolicyObject, holds_work_on, plan, window};
use crate::conflicts::retry_conflicts;
use crate::requests::{RequestFailure, find, list_all};
use crate::{amounts::counted, command_exit::CommandExit};

/// Pause between two looks at the Workloads.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long the requests of a look may take beyond the time of the wait.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Names in a message.
const EXAMPLES: usize = 5;

/// Why a worker is not drained.
#[derive(Debug, thiserror::Error)]
pub enum DrainFailure {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestFailure),
    /// There is no such worker.
    #[error("no MultiKueueCluster {0}")]
    NoCluster(String),
    /// A policy cannot be read.
    #[error("cannot read DispatchPolicy {policy}: {reason}")]
    Policy {
        /// The policy.
        policy: String,
        /// What is wrong.
        reason: String,
    },
    /// No configuration has the worker.
    #[error("no MultiKueueConfig dispatches to {0}: it takes no work")]
    NotDispatchedTo(String),
    /// The policy would need a name that is in use.
    #[error(
        "MultiKueueConfig {config} names no DispatchPolicy, and DispatchPolicy {policy} exists: name a policy in its annotation {POLICY}"
    )]
    PolicyNameTaken {
        /// The configuration.
        config: String,
        /// The policy.
        policy: String,
    },
    /// No answer in time.
    #[error("no answer within {} s: whether work is left on {cluster} is not known", .within.as_secs())]
    NoAnswer {
        /// The worker.
        cluster: String,
        /// How long was waited.
        within: Duration,
    },
    /// Work is still there.
    #[error("{cluster} still has {} after {} s: {}", counted(*.count, "Workload"), .within.as_secs(), .examples.join(", "))]
    StillThere {
        /// The worker.
        cluster: String,
        /// How long was waited.
        within: Duration,
        /// Workloads that are left.
        count: usize,
        /// Some of them.
        examples: Vec<String>,
    },
}

impl DrainFailure {
    /// How the command ends.
    pub(crate) fn exit(&self) -> CommandExit {
        match self {
            Self::Request(_) | Self::NoCluster(_) | Self::Policy { .. } => CommandExit::Failed,
            Self::NotDispatchedTo(_) | Self::PolicyNameTaken { .. } => CommandExit::Refused,
            Self::StillThere { .. } | Self::NoAnswer { .. } => CommandExit::TimedOut,
        }
    }
}

/// Carries out an order. Gives a line per change; none if the order held already.
///
/// # Errors
/// If the worker does not exist, nothing dispatches to it, or a request fails.
pub async fn order(
    client: &Client,
    cluster: &str,
    order: DrainOrder,
) -> Result<Vec<String>, DrainFailure> {
    let is_conflict = |failure: &DrainFailure| matches!(failure, DrainFailure::Request(failure) if failure.is_conflict());
    retry_conflicts(|| change_policies(client, cluster, order), is_conflict).await
}

async fn change_policies(
    client: &Client,
    name: &str,
    order: DrainOrder,
) -> Result<Vec<String>, DrainFailure> {
    let found: Option<MultiKueueCluster> = find(client, name).await?;
    let cluster = match (found, order) {
        (Some(cluster), _) => cluster,
        // The drain of a worker that is gone can end.
        (None, DrainOrder::End) => named(name),
        (None, DrainOrder::Cordon | DrainOrder::Drain { .. }) => {
            return Err(DrainFailure::NoCluster(name.to_owned()));
        }
    };
    let configs: Vec<MultiKueueConfig> = list_all(client).await?;
    let policies = policies(client).await?;
    let mut lines = Vec::new();
    for change in plan(&cluster, &configs, &policies, order)? {
        lines.push(write(client, &change).await?);
    }
    if order == DrainOrder::End {
        lines.extend(window::end(client, &cluster).await?);
    }
    Ok(lines)
}

fn named(name: &str) -> MultiKueueCluster {
    let mut cluster = MultiKueueCluster::default();
    cluster.metadata.name = Some(name.to_owned());
    cluster
}

fn policy_api(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<DispatchPolicy>(&()))
}

async fn policies(client: &Client) -> Result<Vec<PolicyObject>, DrainFailure> {
    let failed = RequestFailure::of("list", "DispatchPolicy");
    let listed = policy_api(client).list(&ListParams::default()).await.map_err(failed)?;
    let read = |object: DynamicObject| {
        let policy = object.metadata.name.clone().unwrap_or_default();
        let read = serde_json::to_value(object).and_then(|object| PolicyObject::read(&object));
        read.map_err(|error| DrainFailure::Policy { policy, reason: error.to_string() })
    };
    listed.items.into_iter().map(read).collect()
}

/// Writes a change. Gives a line about it.
async fn write(client: &Client, change: &PolicyChange) -> Result<String, RequestFailure> {
    let params = PatchParams::default();
    let api = policy_api(client);
    match change {
        PolicyChange::Update { policy, version, clusters } => {
            let patch =
                json!({"metadata": {"resourceVersion": version}, "spec": {"clusters": clusters}});
            let failed = RequestFailure::of("change", format!("DispatchPolicy {policy}"));
            api.patch(policy, &params, &Patch::Merge(&patch)).await.map_err(failed)?;
            Ok(format!("DispatchPolicy {policy} changed"))
        }
        PolicyChange::Create { policy, clusters } => {
            let failed =
                |error| RequestFailure::of("create", format!("DispatchPolicy {policy}"))(error);
            let object: DynamicObject = serde_json::from_value(new_policy(policy, clusters))
                .map_err(|error| failed(kube::Error::SerdeError(error)))?;
            api.create(&PostParams::default(), &object).await.map_err(failed)?;
            Ok(format!("DispatchPolicy {policy} created"))
        }
        PolicyChange::Name { config, policy } => {
            let patch = json!({"metadata": {"annotations": {POLICY: policy}}});
            let failed = RequestFailure::of("change", format!("MultiKueueConfig {config}"));
            let configs: Api<MultiKueueConfig> = Api::all(client.clone());
            configs.patch(config, &params, &Patch::Merge(&patch)).await.map_err(failed)?;
            Ok(match policy {
                Some(policy) => format!("MultiKueueConfig {config} names DispatchPolicy {policy}"),
                None => format!("MultiKueueConfig {config} names no DispatchPolicy"),
            })
        }
        PolicyChange::Delete { policy, uid } => {
            let preconditions = Preconditions { uid: uid.clone(), resource_version: None };
            let params = DeleteParams::default().preconditions(preconditions);
            let failed = RequestFailure::of("delete", format!("DispatchPolicy {policy}"));
            api.delete(policy, &params).await.map_err(failed)?;
            Ok(format!("DispatchPolicy {policy} deleted"))
        }
    }
}

fn new_policy(name: &str, clusters: &[Value]) -> Value {
    json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "DispatchPolicy",
        "metadata": {"name": name, "labels": {MANAGED_BY: SLUICECTL}}, "spec": {"clusters": clusters},
    })
}

/// The Workloads that are recorded or nominated for a worker and have not finished, as `namespace/name`.
///
/// # Errors
/// If the list is refused or the server cannot be reached.
pub async fn work_on(client: &Client, cluster: &str) -> Result<Vec<String>, RequestFailure> {
    let workloads: Vec<Workload> = list_all(client).await?;
    let held = workloads.iter().filter(|one| holds_work_on(one, cluster)).map(|one| {
        let metadata = &one.metadata;
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
    });
    Ok(held.collect())
}

/// Waits until no Workload is on a worker.
///
/// # Errors
/// If some are left after that time, or a request fails or has no answer by then.
pub async fn wait_until_empty(
    client: &Client,
    cluster: &str,
    within: Duration,
) -> Result<(), DrainFailure> {
    // The loop ends by itself unless a request hangs.
    let waited = timeout(within + ANSWERED_WITHIN, look_until_empty(client, cluster, within)).await;
    waited.unwrap_or_else(|_| Err(DrainFailure::NoAnswer { cluster: cluster.to_owned(), within }))
}

async fn look_until_empty(
    client: &Client,
    cluster: &str,
    within: Duration,
) -> Result<(), DrainFailure> {
    let end = Instant::now() + within;
    loop {
        let left = work_on(client, cluster).await?;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= end {
            let (count, examples) = (left.len(), left.into_iter().take(EXAMPLES).collect());
            let cluster = cluster.to_owned();
            return Err(DrainFailure::StillThere { cluster, within, count, examples });
        }
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use http::{Request, Response};
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_does_not_hold_the_command() {
        let silent = service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
        let client = Client::new(silent, "default");
        let failure = wait_until_empty(&client, "east", Duration::from_secs(5)).await;
        let text = failure.expect_err("no answer").to_string();
        assert_eq!(text, "no answer within 5 s: whether work is left on east is not known");
    }
}
