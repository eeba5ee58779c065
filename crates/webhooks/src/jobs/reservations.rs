//! Whether the Workload of a job holds quota, as the API server has it: a cache that is late could hide the reservation.

use crds::{names::labels::JOB_UID, v1beta2::Workload};
use jobs::{
    GenericJob, JobGates, JobObject, construct_workload::workload_name_for, prebuilt::prebuilt_name,
};
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
    let named = prebuilt_name(job, gates).name;
    if !named.is_empty() {
        return Ok(get(&workloads, named).await?.as_ref().is_some_and(reserved));
    }
    // The name of a slice has the generation of its Job at that time, so only a list finds the slices of an elastic Job.
    if !job.is_elastic(gates)
        && let Some(found) = get(&workloads, &workload_name_for(job, gates)).await?
    {
        return Ok(reserved(&found));
    }
    any_reserved(&workloads, job).await
}

/// Whether a Workload holds quota. A finished one has released its quota, and keeps the condition QuotaReserved.
fn reserved(workload: &Workload) -> bool {
    workload.has_quota_reservation() && !workload.is_finished()
}

async fn get(workloads: &Api<Workload>, name: &str) -> Result<Option<Workload>, GatherError> {
    workloads.get_opt(name).await.map_err(|error| unreadable(name, error))
}

/// Whether any Workload with the UID of the job holds quota. The list reads every Workload of the namespace, so it is the last
/// resort: for slices, and for a Workload that was named while the gate `ShortWorkloadNames` had another value.
async fn any_reserved(workloads: &Api<Workload>, job: &JobObject) -> Result<bool, GatherError> {
    let uid = job.metadata().uid.as_deref().unwrap_or_default();
    let made_for_it = ListParams::default().labels(&format!("{JOB_UID}={uid}"));
    match workloads.list(&made_for_it).await {
        Ok(found) => Ok(found.items.iter().any(reserved)),
        // The kind is not installed.
        Err(Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(unreadable(uid, error)),
    }
}

fn unreadable(name: &str, error: Error) -> GatherError {
    read_error("Workload", "kueue.x-k8s.io", name, error)
}
