//! `dr rebuild`: a manager cluster is made again from the copies on its workers (docs/reference/dispatch.md §11).
//!
//! | module | concept |
//! |---|---|
//! | [`observed`], [`reading`] | what both sides have |
//! | [`copies`], [`admission`], [`plan`](mod@plan), [`not_rebuilt`] | what is rebuilt of which copy, and why not; pure |
//! | [`step`], [`body`] | the next write of a Workload, and what it sends; pure |
//! | [`execution`] | the writes |
//! | [`report`] | the plan as text |
//!
//! Invariant: a write is repeated or continued by the next run, and until the last one of a Workload the manager decides nothing about
//! it.

pub mod admission;
pub mod body;
pub mod copies;
pub mod execution;
pub mod not_rebuilt;
pub mod observed;
pub mod plan;
pub mod reading;
pub mod report;
pub mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use jobs::Kinds;
use kube::Client;
use remote::WorkerUnavailable;

use self::{
    execution::{RebuildRun, make_incarnation, take_entry_over},
    observed::{HubStamp, ObservedHub, ObservedWorker},
    plan::{PlanRow, RowState, plan},
    reading::{read_hub, read_workers},
    report::RebuildReport,
};
use crate::{
    amounts::counted,
    command_exit::CommandExit,
    join::{HubInstallation, InstallationFailure},
    requests::RequestFailure,
};

/// Why nothing, or not everything, was rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum RebuildFailure {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestFailure),
    /// The configuration of the manager cannot be read.
    #[error(transparent)]
    Configuration(#[from] InstallationFailure),
    /// The kubeconfig of a worker cannot be used.
    #[error(transparent)]
    Unavailable(#[from] WorkerUnavailable),
    /// A worker cannot be read.
    #[error("cannot read worker {name}: {source}. Name the others with --cluster to leave it out")]
    Worker {
        /// The name of its MultiKueueCluster.
        name: String,
        /// Why.
        source: Box<Self>,
    },
    /// There is no such worker.
    #[error("no MultiKueueCluster {0}")]
    NoCluster(String),
    /// One cluster is registered twice.
    #[error("{first} and {second} are one cluster: remove one of both MultiKueueClusters")]
    SameCluster {
        /// A MultiKueueCluster.
        first: String,
        /// Another one.
        second: String,
    },
    /// The identity of a cluster is not known.
    #[error("cannot tell which cluster {0} is: it has no namespace kube-system")]
    NoIdentity(String),
    /// An answer does not decode.
    #[error("cannot decode {object}: {reason}")]
    Undecodable {
        /// The object.
        object: String,
        /// What is wrong.
        reason: String,
    },
    /// Writes failed; the report says which.
    #[error("{} not rebuilt: run the command again when the reason is gone", counted(*.0, "Workload"))]
    Incomplete(usize),
    /// The consequences were not accepted.
    #[error(
        "nothing is rebuilt without --yes. See that the former manager cluster is gone, or that no manager runs there: two managers would \
         write to the same copies"
    )]
    NotAccepted,
}

impl RebuildFailure {
    /// How the command ends.
    pub(crate) fn exit(&self) -> CommandExit {
        match self {
            Self::NotAccepted | Self::SameCluster { .. } => CommandExit::Refused,
            Self::Request(_)
            | Self::Configuration(_)
            | Self::Unavailable(_)
            | Self::Worker { .. }
            | Self::NoCluster(_)
            | Self::NoIdentity(_)
            | Self::Incomplete(_)
            | Self::Undecodable { .. } => CommandExit::Failed,
        }
    }
}

/// What is to be rebuilt.
#[derive(Clone, Debug)]
pub struct RebuildRequest {
    /// The namespace of the manager.
    pub namespace: String,
    /// Kinds that an administrator declares.
    pub declared: Kinds,
    /// The origin; that of the manager's configuration if absent.
    pub origin: Option<String>,
    /// The workers; all if empty.
    pub clusters: Vec<String>,
    /// Print the plan only.
    pub dry_run: bool,
    /// The former manager cluster is gone.
    pub accepted: bool,
}

/// Plans, and rebuilds unless it is a dry run.
///
/// # Errors
/// If a cluster cannot be read, the consequences were not accepted, or a write fails.
pub async fn rebuild(
    client: &Client,
    request: &RebuildRequest,
) -> Result<RebuildReport, RebuildFailure> {
    let installation = HubInstallation::read(client, &request.namespace, &request.declared).await?;
    let origin = request.origin.clone().unwrap_or_else(|| installation.origin.clone());
    let kinds = &installation.kinds;
    let hub = read_hub(client, &request.namespace, kinds).await?;
    let place = (client, request.namespace.as_str());
    let names = (request.clusters.as_slice(), origin.as_str());
    // A copy of a kind that the manager is not configured for is a row of the plan.
    let all = with_built_in(kinds);
    let workers = read_workers(place, &hub.clusters, names, &all).await?;
    let mut rows = plan(&hub, &workers.objects, installation.gates);
    let of_another_manager = of_another_manager(&workers.objects, &hub.uid);
    if !request.dry_run {
        if !request.accepted {
            return Err(RebuildFailure::NotAccepted);
        }
        let stamp = match hub.stamp.clone() {
            Some(stamp) => stamp,
            None => {
                let second = Timestamp::now().as_second();
                make_incarnation(client, &request.namespace, second).await?
            }
        };
        execute(client, (&hub, &stamp), &workers.clients, &mut rows).await;
        // Last: until then the manager does not use the worker.
        for worker in of_another_manager.iter().filter_map(|name| workers.clients.get(name)) {
            take_entry_over(worker, &origin, &hub.uid).await?;
        }
    }
    let dry_run = request.dry_run;
    Ok(RebuildReport { dry_run, origin, of_another_manager, workloads: rows })
}

/// These kinds and the built-in ones, each once.
fn with_built_in(kinds: &Kinds) -> Kinds {
    let built_in = Kinds::built_in().with_workloads();
    let others = built_in.iter().filter(|kind| kinds.of_framework(kind.framework()).is_none());
    Kinds::new(kinds.iter().chain(others).cloned())
}

fn of_another_manager(workers: &[ObservedWorker], uid: &str) -> Vec<String> {
    let others = workers.iter().filter(|one| !one.manager.is_empty() && one.manager != uid);
    others.map(|one| one.cluster.clone()).collect()
}

async fn execute(
    client: &Client,
    (hub, stamp): (&ObservedHub, &HubStamp),
    clients: &BTreeMap<String, Client>,
    rows: &mut [PlanRow],
) {
    for row in rows {
        let Some(rebuild) = &row.rebuild else { continue };
        let run = RebuildRun::new((client, clients), stamp, rebuild, hub);
        // One job that the API server refuses does not hold up the others.
        if let Err(failure) = run.finish().await {
            (row.state, row.reason) = (RowState::Failed, Some(failure.to_string()));
        }
    }
}
