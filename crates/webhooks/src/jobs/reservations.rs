//! Whether the Workload of a job holds quota, as the API server has it: a cache that is late could hide the reservation.

use crds::{
    meta::is_true,
    names::{conditions::QUOTA_RESERVED, labels::JOB_UID},
    v1beta2::Workload,
};
use jobs::{GenericJob, JobGates, JobObject, prebuilt::prebuilt_name};
use kube::{Api, Client, Error, api::ListParams};
use tokio::time::timeout;

use super::defaulting_facts::{GatherError, READ_TIMEOUT, read_error};

/// Whether a Workload that the job names, or one that was made for it, holds quota.
///
/// # Errors
/// If the API server does not say.
pub(super) async fn holds_quota(
    client: &Client,
    namespace: &str,
    job: &JobObject,
    gates: JobGates,
) -> Result<bool, GatherError> {
    let read = read(client, namespace, job, gates);
    timeout(READ_TIMEOUT, read).await.unwrap_or(Err(GatherError::Slow))
}

async fn read(
    client: &Client,
    namespace: &str,
    job: &JobObject,
    gates: JobGates,
) -> Result<bool, GatherError> {
    let workloads: Api<Workload> = Api::namespaced(client.clone(), namespace);
    let reserved = |one: &Workload| is_true(&one.status.conditions, QUOTA_RESERVED);
    let unreadable = |name: &str, error| read_error("Workload", "kueue.x-k8s.io", name, error);
    let named = prebuilt_name(job, gates).name;
    if !named.is_empty() {
        let found = workloads.get_opt(named).await.map_err(|error| unreadable(named, error))?;
        return Ok(found.as_ref().is_some_and(reserved));
    }
    let uid = job.metadata().uid.as_deref().unwrap_or_default();
    let made_for_it = ListParams::default().labels(&format!("{JOB_UID}={uid}"));
    match workloads.list(&made_for_it).await {
        Ok(found) => Ok(found.items.iter().any(reserved)),
        // The kind is not installed.
        Err(Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(unreadable(uid, error)),
    }
}
