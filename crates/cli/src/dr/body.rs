//! The bodies of the writes: what each step sends, as a function of the objects.

use crds::{
    meta::find,
    names::{
        annotations::{HUB_VERSION, INCARNATION, REBUILD, TERM, WORKLOAD_UID},
        conditions::ADMITTED,
    },
    v1beta2::{Workload, WorkloadStatus},
};
use index::status::{
    QuotaReservation, StatusStamp, admitted_on_cluster, applied_fields, pods_ready, quota_reserved,
    status_apply,
};
use jiff::Timestamp;
use jobs::{GenericJob, JobObject, Pod, pods::group};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::{copies::CopySet, observed::HubStamp, plan::WorkloadRebuild};

/// The status with quota and nomination: the API refuses `clusterName` before a nomination.
#[must_use]
pub fn reserved(workload: &Workload, rebuild: &WorkloadRebuild) -> WorkloadStatus {
    let reservation = QuotaReservation {
        admission: rebuild.admission.admission.clone(),
        checks: std::slice::from_ref(&rebuild.admission.check),
        nominated: std::slice::from_ref(&rebuild.copy.cluster),
    };
    quota_reserved(workload.status.clone(), reservation, stamp_of(workload, rebuild))
}

/// The status of a Workload that its worker has admitted.
#[must_use]
pub fn admitted(workload: &Workload, rebuild: &WorkloadRebuild) -> WorkloadStatus {
    let at = stamp_of(workload, rebuild);
    let (cluster, check) = (&rebuild.copy.cluster, &rebuild.admission.check);
    let status = admitted_on_cluster(workload.status.clone(), cluster, check, at);
    // Without it the time until pods are ready would have passed: it counts from the admission.
    if are_ready(&rebuild.copy) { pods_ready(status, true, at) } else { status }
}

/// Run times and timeouts go on from the admission on the worker.
fn stamp_of(workload: &Workload, rebuild: &WorkloadRebuild) -> StatusStamp {
    let admitted = find(&rebuild.copy.clone.status.conditions, ADMITTED);
    StatusStamp {
        now: admitted.and_then(|one| one.transitioned_at()).unwrap_or(Timestamp::UNIX_EPOCH),
        generation: workload.metadata.generation.unwrap_or_default(),
    }
}

fn are_ready(copy: &CopySet) -> bool {
    if group::is_group_workload(&copy.clone) {
        let pods: Vec<&Pod> = copy.jobs.iter().filter_map(JobObject::as_pod).collect();
        return group::pods_ready(&pods, &copy.clone).unwrap_or(false);
    }
    copy.jobs.iter().all(GenericJob::pods_ready)
}

/// The apply of a status to the observed version, as the manager's own field manager of admissions.
#[must_use]
pub fn status(workload: &Workload, status: &WorkloadStatus) -> Value {
    status_apply(workload, &applied_fields(workload, status))
}

/// The stamps of the manager on a copy (docs/reference/dispatch.md §6). The uid keeps them from another object of the name.
#[must_use]
pub fn stamps(copy: &ObjectMeta, workload: &Workload, stamp: &HubStamp) -> Value {
    let annotations = json!({
        INCARNATION: stamp.incarnation.to_string(),
        TERM: stamp.term.to_string(),
        HUB_VERSION: stamp.version,
        WORKLOAD_UID: workload.metadata.uid,
    });
    json!({ "metadata": { "uid": copy.uid, "annotations": annotations } })
}

/// Takes the mark away.
#[must_use]
pub fn unmarked(marked: &ObjectMeta) -> Value {
    json!({ "metadata": { "uid": marked.uid, "annotations": { REBUILD: null } } })
}
