//! Labels and annotations of Workloads that only controllers write. They name the job of a Workload, its manager and what it replaces,
//! so that jobs cannot give them to their Workloads, whatever `labelKeysToCopy` and the labels of metrics list.

use crds::names::{
    SLUICE_GROUP,
    annotations::{
        ALLOWED_RESOURCE_FLAVORS, COMPONENT_WORKLOAD_INDEX, ELASTIC_JOB, IS_GROUP_WORKLOAD,
        JOB_OWNER_GVK, JOB_OWNER_NAME, MULTI_KUEUE_ORIGIN_UID, PRIORITY_BOOST,
        RAYCLUSTER_GENERATION, RAYCLUSTER_PODSET_REPLICA_SIZES, WORKLOAD_SLICE_NAME,
        WORKLOAD_SLICE_REPLACEMENT_FOR,
    },
    labels::{
        CONCURRENT_ADMISSION_PARENT, JOB_UID, MULTI_KUEUE_ORIGIN, MULTI_KUEUE_WORKER_POD,
        PREBUILT_WORKLOAD_NAME,
    },
};

const RESERVED: &[&str] = &[
    ALLOWED_RESOURCE_FLAVORS,
    COMPONENT_WORKLOAD_INDEX,
    CONCURRENT_ADMISSION_PARENT,
    // Copied from elastic jobs alone.
    ELASTIC_JOB,
    IS_GROUP_WORKLOAD,
    JOB_OWNER_GVK,
    JOB_OWNER_NAME,
    JOB_UID,
    MULTI_KUEUE_ORIGIN,
    MULTI_KUEUE_ORIGIN_UID,
    MULTI_KUEUE_WORKER_POD,
    PREBUILT_WORKLOAD_NAME,
    PRIORITY_BOOST,
    RAYCLUSTER_GENERATION,
    RAYCLUSTER_PODSET_REPLICA_SIZES,
    WORKLOAD_SLICE_NAME,
    WORKLOAD_SLICE_REPLACEMENT_FOR,
];

/// Whether jobs cannot give this key to their Workloads. Of Sluice's own keys, those for users are copied without a setting.
#[must_use]
pub fn is_reserved(key: &str) -> bool {
    let prefix = key.split_once('/').map(|(prefix, _)| prefix);
    prefix == Some(SLUICE_GROUP) || RESERVED.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_give_no_key_of_a_controller() {
        for key in [
            "kueue.x-k8s.io/raycluster-generation",
            "kueue.x-k8s.io/raycluster-podset-replica-sizes",
            "kueue.x-k8s.io/workload-slice-name",
        ] {
            assert!(is_reserved(key), "{key}");
        }
        assert!(!is_reserved("example.com/team"));
        assert!(!is_reserved("kueue.x-k8s.io/queue-name"));
    }
}
