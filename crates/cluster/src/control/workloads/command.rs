//! Writes of a Workload that other machines ask for.

use crds::{
    json::merge_patch,
    names::{
        ADMISSION_MANAGER, EXACTLY_ONCE, RECLAIMABLE_PODS_MANAGER, RESOURCE_IN_USE_FINALIZER,
        annotations::{ADMISSION_GATED_BY, EPOCH, EXECUTION, LAST_CLUSTER, TERM},
        labels::{CONCURRENT_ADMISSION_PARENT, JOB_UID},
    },
    v1beta2::{ReclaimablePod, RequeueState, Workload, WorkloadStatus},
};
use jobs::construct_workload::WorkloadPriority;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use runtime::{
    watch::Key,
    write::{DeletePreconditions, DeletePropagation, Write, WriteError},
};
use serde_json::{Value, json};

use crate::control::outbox::Purpose;

/// What is to be written. Every write carries the uid; all but `Delete` and `Reclaim` the resourceVersion that they are
/// based on, and `Reclaim` does if the pods are those of a dispatched job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WorkloadCommand {
    /// This spec, in place of that of a Workload without quota.
    UpdateSpec(Box<Workload>),
    /// This spec, in place of that of a slice of an elastic job.
    Resize(Box<Workload>),
    /// Deletes the Workload. Its finalizer goes first.
    Delete,
    /// Removes the finalizer `resource-in-use`.
    RemoveFinalizer,
    /// Pods that need no quota any more.
    Reclaim(Vec<ReclaimablePod>),
    /// Pods of a dispatched job that need no quota any more. They are those of one epoch: a write that is applied late must not lower the
    /// quota of the next one, so it succeeds on the observed version only.
    ReclaimDispatched(Vec<ReclaimablePod>),
    /// The LocalQueue of its job.
    MoveToQueue(String),
    /// The value of its WorkloadPriorityClass.
    SetPriority(i32),
    /// The WorkloadPriorityClass of its job, with its value.
    SetPriorityClass(WorkloadPriority),
    /// The admission gates of its job; `None` removes them.
    SetAdmissionGates(Option<String>),
    /// The job that controls a prebuilt Workload, and the label with its uid.
    SetOwner(Box<OwnerReference>, Option<String>),
    /// `spec.active: false`.
    Deactivate,
    /// `spec.active: true`.
    Activate,
    /// The label of a Workload that has variants.
    MarkParent,
    /// Further owners: pods that joined a group.
    AddOwners(Vec<OwnerReference>),
    /// A higher epoch, which voids copies of the present one, and the cluster that the Workload is withdrawn from.
    RaiseEpoch(u64),
    /// The term of the leader that is about to create copies, and the guarantee under which it does. Like every write here it
    /// succeeds on the observed version only.
    ConfirmVersion { term: u64, exactly_once: bool },
}

impl WorkloadCommand {
    pub(super) fn purpose(&self) -> Purpose {
        match self {
            Self::UpdateSpec(_) => Purpose::WorkloadUpdate,
            Self::Resize(_) => Purpose::Resize,
            Self::Delete => Purpose::WorkloadDelete,
            Self::RemoveFinalizer => Purpose::Unfinalize,
            Self::Reclaim(_) | Self::ReclaimDispatched(_) => Purpose::Reclaim,
            Self::MoveToQueue(_) => Purpose::Move,
            Self::SetPriority(_) | Self::SetPriorityClass(_) => Purpose::Priority,
            Self::SetAdmissionGates(_) | Self::SetOwner(..) => Purpose::WorkloadUpdate,
            Self::Deactivate => Purpose::Deactivate,
            Self::Activate => Purpose::Activate,
            Self::MarkParent => Purpose::MarkParent,
            Self::AddOwners(_) => Purpose::AddOwners,
            Self::RaiseEpoch(_) => Purpose::RaiseEpoch,
            Self::ConfirmVersion { .. } => Purpose::ConfirmVersion,
        }
    }

    /// Whether the command changes anything about the Workload.
    pub(super) fn changes(&self, workload: &Workload) -> bool {
        match self {
            Self::UpdateSpec(after) | Self::Resize(after) => {
                spec_difference(workload, after).is_some()
            }
            Self::Delete => workload.metadata.deletion_timestamp.is_none(),
            Self::RemoveFinalizer => {
                finalizers(workload).any(|one| one == RESOURCE_IN_USE_FINALIZER)
            }
            _ => true,
        }
    }

    /// The write.
    pub(super) fn encode(
        &self,
        workload: &Workload,
        purpose: &'static str,
        key: &Key,
    ) -> Result<Write, WriteError> {
        match self {
            Self::Delete => {
                // A status write meanwhile is no reason to keep the Workload, so the uid suffices.
                let only = DeletePreconditions {
                    uid: workload.metadata.uid.clone(),
                    resource_version: None,
                };
                Write::delete::<Workload>(purpose, key, only, DeletePropagation::Background)
            }
            // The status of a job that runs in this cluster alone decides about its pods: without a resourceVersion,
            // a status write meanwhile is no conflict.
            Self::Reclaim(pods) => reclaim((purpose, key), workload, pods, None),
            Self::ReclaimDispatched(pods) => {
                let version = workload.metadata.resource_version.as_deref();
                reclaim((purpose, key), workload, pods, version)
            }
            _ => {
                // A merge patch replaces lists as a whole. With the resourceVersion, finalizers and owners that were
                // added meanwhile are not lost.
                let mut fields = self.merge_fields(workload);
                let metadata = &mut fields["metadata"];
                metadata["uid"] = json!(workload.metadata.uid);
                metadata["resourceVersion"] = json!(workload.metadata.resource_version);
                Write::merge::<Workload>(purpose, key, None, &fields)
            }
        }
    }

    fn merge_fields(&self, workload: &Workload) -> Value {
        match self {
            Self::UpdateSpec(after) | Self::Resize(after) => {
                spec_difference(workload, after).unwrap_or_else(|| json!({}))
            }
            Self::RemoveFinalizer => {
                let kept = finalizers(workload).filter(|one| *one != RESOURCE_IN_USE_FINALIZER);
                json!({ "metadata": { "finalizers": kept.collect::<Vec<_>>() } })
            }
            Self::MoveToQueue(queue) => json!({ "spec": { "queueName": queue } }),
            Self::SetPriority(value) => json!({ "spec": { "priority": value } }),
            Self::SetPriorityClass(WorkloadPriority { value, class }) => {
                json!({ "spec": { "priority": value, "priorityClassRef": class } })
            }
            Self::SetAdmissionGates(gates) => {
                json!({ "metadata": { "annotations": { ADMISSION_GATED_BY: gates } } })
            }
            Self::SetOwner(owner, uid) => {
                let known = workload.metadata.owner_references.iter().flatten();
                let owners: Vec<&OwnerReference> = known.chain([&**owner]).collect();
                let mut metadata = json!({ "ownerReferences": owners });
                // A uid that is no label value gives no label (docs/reference/kueue.md §7.5).
                if let Some(uid) = uid {
                    metadata["labels"] = json!({ JOB_UID: uid });
                }
                json!({ "metadata": metadata })
            }
            Self::Deactivate => json!({ "spec": { "active": false } }),
            Self::Activate => json!({ "spec": { "active": true } }),
            Self::MarkParent => {
                json!({ "metadata": { "labels": { CONCURRENT_ADMISSION_PARENT: "true" } } })
            }
            Self::AddOwners(added) => {
                let owners = workload.metadata.owner_references.iter().flatten();
                let owners: Vec<&OwnerReference> = owners.chain(added).collect();
                json!({ "metadata": { "ownerReferences": owners } })
            }
            Self::RaiseEpoch(epoch) => {
                let mut annotations = json!({ EPOCH: epoch.to_string() });
                // The release clears the cluster name. A withdrawal before any cluster was recorded keeps the earlier one.
                if let Some(cluster) = &workload.status.cluster_name {
                    annotations[LAST_CLUSTER] = json!(cluster);
                }
                json!({ "metadata": { "annotations": annotations } })
            }
            Self::ConfirmVersion { term, exactly_once } => {
                let mut annotations = json!({ TERM: term.to_string() });
                if *exactly_once {
                    annotations[EXECUTION] = json!(EXACTLY_ONCE);
                }
                json!({ "metadata": { "annotations": annotations } })
            }
            Self::Delete | Self::Reclaim(_) | Self::ReclaimDispatched(_) => json!({}),
        }
    }
}

/// The write of reclaimable pods, to this version if one is given. The uid keeps them from a Workload that was created again under
/// the name.
fn reclaim(
    (purpose, key): (&'static str, &Key),
    workload: &Workload,
    pods: &[ReclaimablePod],
    version: Option<&str>,
) -> Result<Write, WriteError> {
    let mut metadata = json!({ "uid": workload.metadata.uid });
    if let Some(version) = version {
        metadata["resourceVersion"] = json!(version);
    }
    let status = json!({ "reclaimablePods": pods });
    // An apply removes only what the same manager has set, and upstream's may have been another one.
    if lists_more(workload, pods) {
        let fields = json!({ "metadata": metadata, "status": status });
        return Write::merge::<Workload>(purpose, key, Some("status"), &fields);
    }
    metadata["name"] = json!(&*key.name);
    metadata["namespace"] = json!(key.namespace.as_deref());
    let fields = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": metadata, "status": status,
    });
    Write::apply::<Workload>(purpose, key, Some("status"), RECLAIMABLE_PODS_MANAGER, &fields)
}

/// The status that the field manager of admission owns, applied to the observed version. One that only lacks what the
/// Workload has is a merge patch: an apply keeps fields that another field manager has set as well. A status that changes more
/// is applied; what it leaves of another field manager goes if a later decision removes it again.
pub(super) fn write_status(
    purpose: &'static str,
    key: &Key,
    workload: &Workload,
    status: &WorkloadStatus,
) -> Result<Write, WriteError> {
    if let Some(mut removal) = removal(&workload.status, status) {
        let metadata = &workload.metadata;
        removal["metadata"] =
            json!({ "uid": metadata.uid, "resourceVersion": metadata.resource_version });
        return Write::merge::<Workload>(purpose, key, Some("status"), &removal);
    }
    let owned = index::status::applied_fields(workload, status);
    apply_as((purpose, ADMISSION_MANAGER), key, workload, &owned)
}

/// Status fields that a field manager applies to the observed version.
pub(super) fn apply_as(
    (purpose, manager): (&'static str, &str),
    key: &Key,
    workload: &Workload,
    status: &Value,
) -> Result<Write, WriteError> {
    let fields = index::status::status_apply(workload, status);
    Write::apply::<Workload>(purpose, key, Some("status"), manager, &fields)
}

/// The merge patch to a status that only lacks fields or entries of the one before; `None` if it has others.
fn removal(before: &WorkloadStatus, after: &WorkloadStatus) -> Option<Value> {
    // Most writes set a condition.
    if !after.conditions.iter().all(|one| before.conditions.contains(one)) {
        return None;
    }
    let mut after = after.clone();
    // An empty object would stay as a field of its own.
    after.requeue_state = after.requeue_state.filter(|one| **one != RequeueState::default());
    let (before, after) = (json!({ "status": before }), json!({ "status": after }));
    if is_part(&before, &after) { merge_patch(&before, &after) } else { None }
}

/// Whether `after` lacks nothing but fields and entries of `before`.
fn is_part(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => after
            .iter()
            .all(|(name, value)| before.get(name).is_some_and(|before| is_part(before, value))),
        (Value::Array(before), Value::Array(after)) => {
            after.iter().all(|value| before.iter().any(|before| is_part(before, value)))
        }
        _ => before == after,
    }
}

fn spec_difference(before: &Workload, after: &Workload) -> Option<Value> {
    merge_patch(&json!({ "spec": before.spec }), &json!({ "spec": after.spec }))
}

fn finalizers(workload: &Workload) -> impl Iterator<Item = &String> {
    workload.metadata.finalizers.iter().flatten()
}

/// Whether the status lists reclaimable pods of pod sets that these are not of.
fn lists_more(workload: &Workload, pods: &[ReclaimablePod]) -> bool {
    let mut known = workload.status.reclaimable_pods.iter();
    known.any(|one| pods.iter().all(|pod| pod.name != one.name))
}
