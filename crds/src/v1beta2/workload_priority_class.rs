//! A WorkloadPriorityClass: a named priority, independent of that of pods.

use crate::kind::kind;

kind! {
    /// A named priority.
    WorkloadPriorityClass, ClusterResourceScope, "kueue.x-k8s.io" / "v1beta2" / "workloadpriorityclasses" {
        /// For people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        description: String,
        /// The priority; higher goes first.
        #[serde(default)]
        value: i32,
    }
}
