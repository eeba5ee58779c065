//! Types of the API. Both versions have the same fields.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

/// The only version of the group of pods and logs.
pub const WORKLOAD_PODS_VERSION: &str = "v1alpha1";

/// A served version. The preferred one comes first in every list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisibilityVersion {
    /// v1beta2.
    V1beta2,
    /// v1beta1.
    V1beta1,
}

impl VisibilityVersion {
    /// All versions, the preferred one first.
    pub const ALL: [Self; 2] = [Self::V1beta2, Self::V1beta1];

    /// The name of the version.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1beta2 => "v1beta2",
            Self::V1beta1 => "v1beta1",
        }
    }

    /// Group and version, as `apiVersion` has them.
    #[must_use]
    pub fn group_version(self) -> String {
        format!("{}/{}", crds::names::VISIBILITY_GROUP, self.name())
    }
}

/// Pending Workloads of one queue, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkloadsSummary {
    /// Always `PendingWorkloadsSummary`.
    pub kind: &'static str,
    /// Group and version.
    pub api_version: String,
    /// Always empty.
    pub metadata: ObjectMeta,
    /// The Workloads of the page.
    pub items: Vec<PendingWorkload>,
}

impl PendingWorkloadsSummary {
    /// A list of this version.
    #[must_use]
    pub fn new(version: VisibilityVersion, items: Vec<PendingWorkload>) -> Self {
        Self {
            kind: "PendingWorkloadsSummary",
            api_version: version.group_version(),
            metadata: ObjectMeta::default(),
            items,
        }
    }
}

/// A pending Workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkload {
    /// Name, namespace, time of creation, and the owners with their names and uids.
    pub metadata: ObjectMeta,
    /// `spec.priority`, without a boost.
    pub priority: i32,
    /// The LocalQueue.
    pub local_queue_name: String,
    /// The position in the ClusterQueue, from 0.
    pub position_in_cluster_queue: i32,
    /// The position in the LocalQueue, from 0.
    pub position_in_local_queue: i32,
    /// Why it is pending: the reason of its condition QuotaReserved; empty before a reason was written. Upstream does not have the
    /// field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The message of the same condition. Upstream does not have the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What it lacks and what would make it admissible; only the replica that leads knows it. Upstream does not have the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub explanation: String,
}
