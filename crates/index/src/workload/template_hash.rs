//! Hash of the parts of a pod template that decide scheduling and that the engine does not compare itself.
//!
//! Workloads of one equivalence class share a verdict, so everything that can decide where a pod runs is part of the
//! hash. The hash is equal in every process: a fixed function of the JSON text with sorted keys. Source:
//! docs/reference/kueue.md §3.5.

use std::io;

use crds::names::annotations::ALLOWED_RESOURCE_FLAVORS;
use crds::pod::{Container, PodSpec};
use crds::v1beta2::Workload;
use serde_json::Value;

/// Pod fields that decide where the pod runs.
const OF_PODS: &[&str] =
    &["affinity", "hostNetwork", "resourceClaims", "topologySpreadConstraints"];

/// Container fields that decide where the pod runs.
const OF_CONTAINERS: &[&str] = &["ports"];

/// Hash of a template and of the flavors that a variant may use.
pub(super) fn hash(pod: Option<&PodSpec>, workload: &Workload) -> u64 {
    let mut hash = Fnv::default();
    let annotations = workload.metadata.annotations.as_ref();
    hash.add(&annotations.and_then(|all| all.get(ALLOWED_RESOURCE_FLAVORS)));
    if let Some(pod) = pod {
        for container in pod.init_containers.iter().chain(&pod.containers) {
            add_container(&mut hash, container);
        }
        // Init containers and containers are hashed as one list, so their split is part of the
        // hash.
        hash.add(&pod.init_containers.len());
        hash.add(&(&pod.node_selector, &pod.tolerations, &pod.overhead, &pod.resources));
        hash.add(&pod.runtime_class_name);
        add_fields(&mut hash, &pod.rest, OF_PODS);
    }
    hash.0
}

fn add_container(hash: &mut Fnv, container: &Container) {
    hash.add(&(&container.resources, &container.restart_policy));
    add_fields(hash, &container.rest, OF_CONTAINERS);
}

fn add_fields(hash: &mut Fnv, rest: &serde_json::Map<String, Value>, fields: &[&str]) {
    for &field in fields {
        hash.add(&rest.get(field));
    }
}

/// FNV-1a over 64 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, value: &impl serde::Serialize) {
        // Only maps with non-string keys can fail to serialize, and these templates have none.
        let _ = serde_json::to_writer(&mut *self, value);
    }
}

impl io::Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(pod: Value) -> u64 {
        let pod: PodSpec = serde_json::from_value(pod).expect("a pod spec");
        hash(Some(&pod), &Workload::default())
    }

    #[test]
    fn templates_differ_in_the_fields_that_decide_where_a_pod_runs() {
        let base = json!({"containers": [{"name": "c", "image": "a"}]});
        assert_eq!(of(base.clone()), of(json!({"containers": [{"name": "d", "image": "b"}]})));
        for other in [
            json!({"containers": [{"name": "c"}], "affinity": {"podAffinity": {}}}),
            json!({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}),
            json!({"containers": [{"name": "c"}], "nodeSelector": {"zone": "a"}}),
            json!({"containers": [{"name": "c"}, {"name": "d"}]}),
            json!({"initContainers": [{"name": "c"}]}),
        ] {
            assert_ne!(of(base.clone()), of(other.clone()), "{other}");
        }
    }

    #[test]
    fn the_hash_is_equal_in_every_process() {
        let pod =
            json!({"containers": [{"name": "c"}], "nodeSelector": {"zone": "a", "disk": "ssd"}});
        assert_eq!(of(pod), 7_516_787_448_571_356_007);
    }
}
