//! The kinds of v1beta1.

use super::{
    admission_check::{AdmissionCheckSpec, AdmissionCheckStatus},
    cluster_queue::ClusterQueueSpec,
    cluster_queue_status::ClusterQueueStatus,
    cohort::{CohortSpec, CohortStatus},
    local_queue::LocalQueueStatus,
    multi_kueue::{MultiKueueClusterSpec, MultiKueueClusterStatus, MultiKueueConfigSpec},
    provisioning_request_config::ProvisioningRequestConfigSpec,
    topology::TopologySpec,
    workload::WorkloadSpec,
    workload_status::WorkloadStatus,
};
use crate::kind::kind;
use crate::v1beta2::{LocalQueueSpec, ResourceFlavorSpec};

kind! {
    /// A unit of admission: pod sets that start together.
    Workload, NamespaceResourceScope, "kueue.x-k8s.io" / "v1beta1" / "workloads" {
        /// What is wanted.
        #[serde(default)]
        spec: WorkloadSpec,
        /// What is observed.
        #[serde(default)]
        status: WorkloadStatus,
    }
}

kind! {
    /// A pool of quota that Workloads queue for.
    ClusterQueue, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta1" / "clusterqueues" {
        /// What is wanted.
        #[serde(default)]
        spec: ClusterQueueSpec,
        /// What is observed.
        #[serde(default)]
        status: ClusterQueueStatus,
    }
}

kind! {
    /// The door of a namespace to a ClusterQueue.
    LocalQueue, NamespaceResourceScope, "kueue.x-k8s.io" / "v1beta1" / "localqueues" {
        /// What is wanted.
        #[serde(default)]
        spec: LocalQueueSpec,
        /// What is observed.
        #[serde(default)]
        status: LocalQueueStatus,
    }
}

kind! {
    /// ClusterQueues and cohorts that lend each other unused quota.
    Cohort, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta1" / "cohorts" {
        /// What is wanted.
        #[serde(default)]
        spec: CohortSpec,
        /// What is observed.
        #[serde(default)]
        status: CohortStatus,
    }
}

kind! {
    /// A check that a Workload must pass after quota is reserved.
    AdmissionCheck, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta1" / "admissionchecks" {
        /// What is wanted.
        #[serde(default)]
        spec: AdmissionCheckSpec,
        /// What is observed.
        #[serde(default)]
        status: AdmissionCheckStatus,
    }
}

kind! {
    /// A kind of nodes that quota is counted in.
    ResourceFlavor, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta1" / "resourceflavors" {
        /// What is wanted.
        #[serde(default)]
        spec: ResourceFlavorSpec,
    }
}

kind! {
    /// How the nodes of a cluster are grouped.
    Topology, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta1" / "topologies" {
        /// What is wanted.
        #[serde(default)]
        spec: TopologySpec,
    }
}

kind! {
    /// How ProvisioningRequests of an admission check are created.
    ProvisioningRequestConfig, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta1" / "provisioningrequestconfigs" {
        /// What is wanted.
        #[serde(default)]
        spec: ProvisioningRequestConfigSpec,
    }
}

kind! {
    /// A worker cluster.
    MultiKueueCluster, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta1" / "multikueueclusters" {
        /// What is wanted.
        #[serde(default)]
        spec: MultiKueueClusterSpec,
        /// What is observed.
        #[serde(default)]
        status: MultiKueueClusterStatus,
    }
}

kind! {
    /// A set of worker clusters.
    MultiKueueConfig, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta1" / "multikueueconfigs" {
        /// What is wanted.
        #[serde(default)]
        spec: MultiKueueConfigSpec,
    }
}

kind! {
    /// A named priority.
    WorkloadPriorityClass, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta1" / "workloadpriorityclasses" {
        /// The human-readable description.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        description: String,
        /// The priority; higher values are first.
        #[serde(default)]
        value: i32,
    }
}
