//! WorkloadPriorityClass: a named priority, independent of pod priority.

use crate::kind::kind;

kind! {
    /// A named priority.
    WorkloadPriorityClass, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta2" / "workloadpriorityclasses" {
        /// The human-readable description.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        description: String,
        /// The priority; higher values are first.
        #[serde(default)]
        value: i32,
    }
}
