//! A pending Workload with its place in the order of queues.

use std::{cmp::Ordering, sync::Arc};

use crds::{meta, names::conditions, v1beta2::Workload};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::api::PendingWorkload;

/// A pending Workload. The order of values is that of their ClusterQueue: priority, then queue-order timestamp, then uid
/// (docs/reference/kueue.md §3.2).
#[derive(Debug, Clone)]
pub(crate) struct PendingItem {
    pub(crate) workload: Arc<Workload>,
    /// Effective priority.
    priority: i64,
    /// Queue-order timestamp in nanoseconds.
    queued_at: i64,
}

impl PendingItem {
    /// The Workload, if it is in a pending queue.
    pub(crate) fn of(config: &index::IndexConfig, workload: &Arc<Workload>) -> Option<Self> {
        let order = index::pending_order(config, workload)?;
        Some(Self {
            workload: Arc::clone(workload),
            priority: order.priority,
            queued_at: order.queued_at.0,
        })
    }

    /// `namespace/name` of the LocalQueue.
    pub(crate) fn local_queue(&self) -> String {
        let namespace = self.workload.metadata.namespace.as_deref().unwrap_or_default();
        format!("{namespace}/{}", self.workload.spec.queue_name)
    }

    /// The Workload as the API shows it.
    pub(crate) fn show(&self, in_cluster_queue: usize, in_local_queue: usize) -> PendingWorkload {
        let workload = &*self.workload;
        let blocked = meta::find(&workload.status.conditions, conditions::QUOTA_RESERVED);
        let (reason, message) =
            blocked.map(|one| (one.reason.clone(), one.message.clone())).unwrap_or_default();
        PendingWorkload {
            metadata: shown_metadata(&workload.metadata),
            priority: workload.spec.priority.unwrap_or(0),
            local_queue_name: workload.spec.queue_name.clone(),
            position_in_cluster_queue: i32::try_from(in_cluster_queue).unwrap_or(i32::MAX),
            position_in_local_queue: i32::try_from(in_local_queue).unwrap_or(i32::MAX),
            reason,
            message,
            explanation: String::new(),
        }
    }

    fn key(&self) -> (i64, i64, &str, &str, &str) {
        let metadata = &self.workload.metadata;
        // A smaller value comes first, and the highest priority is the first.
        let priority = self.priority.saturating_neg();
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        (priority, self.queued_at, uid, namespace, name)
    }
}

/// The fields of metadata that upstream shows.
fn shown_metadata(metadata: &ObjectMeta) -> ObjectMeta {
    let owners = metadata.owner_references.iter().flatten().map(|owner| OwnerReference {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        ..OwnerReference::default()
    });
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        creation_timestamp: metadata.creation_timestamp.clone(),
        owner_references: Some(owners.collect::<Vec<_>>()).filter(|owners| !owners.is_empty()),
        ..ObjectMeta::default()
    }
}

impl Ord for PendingItem {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for PendingItem {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingItem {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PendingItem {}
