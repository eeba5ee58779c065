//! The order in which the resources of a pod set are assigned.
//!
//! Upstream keeps requests sorted by a hash of the resource name (gate VectorizedResourceRequests). The order is
//! visible: scan progress is recorded under the first resource of a group, and the last group reached explains a
//! failure. Cost: once per Workload event; a cycle finds requests sorted.

use crate::ids::ResourceId;
use crate::names::Names;
use crate::spec::PodSetSpec;

/// Sort key of resources: 64 bits of FNV-1a, then the name.
fn rank(name: &str) -> (u64, &str) {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    // The name breaks ties of the hash.
    (name.bytes().fold(0xcbf2_9ce4_8422_2325, mix), name)
}

/// Sorts amounts by resource.
pub(crate) fn sort<T>(names: &Names, amounts: &mut [(ResourceId, T)]) {
    let name = |resource: ResourceId| names.resources.name(resource);
    amounts.sort_by(|left, right| rank(name(left.0)).cmp(&rank(name(right.0))));
}

/// Sorts the requests of pod sets.
pub(crate) fn sort_requests(names: &Names, pod_sets: &mut [PodSetSpec]) {
    for pod_set in pod_sets {
        sort(names, &mut pod_set.requests);
    }
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn accelerators_come_before_processors() {
        let mut all = ["cpu", "memory", "nvidia.com/gpu", "pods"];
        all.sort_by_key(|name| rank(name).0);
        assert_eq!(all, ["memory", "nvidia.com/gpu", "pods", "cpu"]);
    }
}
