//! `fence`: a person confirms that nothing runs on a lost worker, so that its work under ExactlyOnce starts elsewhere
//! (docs/reference/dispatch.md §7-8).
//!
//! [`confirmable_session`] decides, [`read`] and [`confirm`] are the requests.

use crds::{
    meta::{annotation, find},
    names::{
        EXACTLY_ONCE,
        annotations::{EXECUTION, FENCE, FENCE_RECORD},
        conditions::ACTIVE,
    },
    v1beta2::{MultiKueueCluster, Workload},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    amounts::counted,
    command_exit::CommandExit,
    drain::holds_work_on,
    requests::{RequestFailure, find as find_object, list_all},
};

/// Why nothing is confirmed.
#[derive(Debug, thiserror::Error)]
pub enum FenceFailure {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestFailure),
    /// There is no such worker.
    #[error("no MultiKueueCluster {0}")]
    NoCluster(String),
    /// The manager reaches it, and sees itself what runs there.
    #[error("{0} is active: the manager sees what runs there, and a confirmation has no effect")]
    Reached(String),
    /// No session is recorded.
    #[error("{0} has no work under ExactlyOnce: no session is recorded for it")]
    NoSession(String),
    /// The consequences were not accepted.
    #[error(
        "nothing is confirmed without --yes. Power {cluster} off, or cut it off from what its work writes to, and see that none of its pods runs. \
         If one still runs, {} will run twice", counted(*.workloads, "Workload")
    )]
    NotAccepted {
        /// The worker.
        cluster: String,
        /// Its Workloads under ExactlyOnce.
        workloads: usize,
    },
}

impl FenceFailure {
    /// How the command ends.
    pub(crate) fn exit(&self) -> CommandExit {
        match self {
            Self::Request(_) | Self::NoCluster(_) => CommandExit::Failed,
            Self::Reached(_) | Self::NoSession(_) | Self::NotAccepted { .. } => {
                CommandExit::Refused
            }
        }
    }
}

/// A loss that can be confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmableLoss {
    /// The worker.
    pub cluster: String,
    /// Its session.
    pub session: u64,
    /// The resourceVersion that the decision follows from.
    pub version: String,
    /// Its Workloads under ExactlyOnce.
    pub workloads: usize,
}

/// The session of a worker that is not reached.
///
/// # Errors
/// If it is reached, or has no session.
pub fn confirmable_session(cluster: &MultiKueueCluster) -> Result<u64, FenceFailure> {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let active = find(&cluster.status.conditions, ACTIVE);
    if active.is_some_and(|one| one.status == "True") {
        return Err(FenceFailure::Reached(name));
    }
    let record = annotation(&cluster.metadata, FENCE_RECORD).and_then(|text| text.split_once('/'));
    let session = record.and_then(|(session, _)| session.parse().ok());
    session.ok_or(FenceFailure::NoSession(name))
}

/// Reads what a confirmation concerns.
///
/// # Errors
/// If there is nothing to confirm, or a request fails.
pub async fn read(client: &Client, name: &str) -> Result<ConfirmableLoss, FenceFailure> {
    let found: Option<MultiKueueCluster> = find_object(client, name).await?;
    let cluster = found.ok_or_else(|| FenceFailure::NoCluster(name.to_owned()))?;
    let session = confirmable_session(&cluster)?;
    let workloads: Vec<Workload> = list_all(client).await?;
    let concerned = workloads.iter().filter(|one| is_held_once(one, name));
    Ok(ConfirmableLoss {
        cluster: name.to_owned(),
        session,
        version: cluster.metadata.resource_version.unwrap_or_default(),
        workloads: concerned.count(),
    })
}

fn is_held_once(workload: &Workload, cluster: &str) -> bool {
    let execution = annotation(&workload.metadata, EXECUTION);
    execution == Some(EXACTLY_ONCE) && holds_work_on(workload, cluster)
}

/// Writes the confirmation. It is about the session that was read: a worker that has come back since is not fenced.
///
/// # Errors
/// If the request fails, also because the worker has changed since.
pub async fn confirm(client: &Client, loss: &ConfirmableLoss) -> Result<String, RequestFailure> {
    let patch = json!({"metadata": {
        "resourceVersion": loss.version,
        "annotations": {FENCE: loss.session.to_string()},
    }});
    let name = &loss.cluster;
    let failed = RequestFailure::of("change", format!("MultiKueueCluster {name}"));
    let clusters: Api<MultiKueueCluster> = Api::all(client.clone());
    clusters.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map_err(failed)?;
    Ok(format!(
        "{name}: confirmed that nothing of session {} runs there; {} under ExactlyOnce may start elsewhere",
        loss.session,
        counted(loss.workloads, "Workload")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn cluster(active: &str, annotations: &Value) -> MultiKueueCluster {
        let condition = json!({
            "type": "Active", "status": active, "reason": "ClientConnectionFailed", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        serde_json::from_value(json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
            "metadata": {"name": "east", "annotations": annotations},
            "spec": {}, "status": {"conditions": [condition]},
        }))
        .expect("a MultiKueueCluster")
    }

    #[test]
    fn only_the_session_of_a_worker_that_is_not_reached_can_be_confirmed() {
        let recorded = json!({FENCE_RECORD: "7/1795693"});
        let session = |active, annotations: &Value| {
            confirmable_session(&cluster(active, annotations)).map_err(|error| error.to_string())
        };
        assert_eq!(session("False", &recorded), Ok(7));
        assert!(session("True", &recorded).is_err_and(|text| text.contains("is active")));
        for annotations in [json!({}), json!({FENCE_RECORD: "seven"})] {
            assert!(session("False", &annotations).is_err_and(|text| text.contains("no session")));
        }
    }
}
