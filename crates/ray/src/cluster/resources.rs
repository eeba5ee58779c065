//! Amounts of resources of the pods of a cluster.
//!
//! Source: docs/reference/ray.md §3 "Status".

use std::collections::BTreeMap;

use crds::quantity::{Format, Quantity};
use serde_json::Value;

use super::group_size::{desired_replicas, hosts};
use crate::{json::items, v1::RayClusterSpec};

/// A quantity as text or number; none if it is neither.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    if value.is_null() {
        return None;
    }
    serde_json::from_value(value.clone()).ok()
}

/// Whether a resource is a GPU of any vendor, or a part of one: `nvidia.com/mig-1g.5gb`.
pub(crate) fn is_gpu(resource: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let parts = resource
        .strip_prefix("nvidia.com/mig-")
        .and_then(|slice| slice.strip_suffix("gb"))
        .and_then(|slice| slice.split_once("g."));
    resource.ends_with("gpu")
        || parts.is_some_and(|(slices, size)| is_number(slices) && is_number(size))
}

/// What all pods of a cluster request.
pub(crate) struct DesiredResources {
    pub(crate) cpu: Quantity,
    pub(crate) memory: Quantity,
    pub(crate) gpu: Quantity,
    pub(crate) tpu: Quantity,
}

/// Sums over the head and all groups that are not suspended. Replicas count within the bounds of their group, as their pods do.
pub(crate) fn desired_resources(spec: &RayClusterSpec) -> DesiredResources {
    let mut sums: BTreeMap<String, ResourceSum> = BTreeMap::new();
    add(&mut sums, &spec.head_group_spec.template, 1);
    for group in spec.worker_group_specs.iter().filter(|group| group.suspend != Some(true)) {
        add(
            &mut sums,
            &group.template,
            i128::from(desired_replicas(group)) * i128::from(hosts(group)),
        );
    }
    let named = |name: &str| sums.get(name).map_or_else(Quantity::default, ResourceSum::quantity);
    let mut gpu = ResourceSum::default();
    // Each vendor has a resource of its own, such as `nvidia.com/gpu` and `amd.com/gpu`.
    for (_, amount) in sums.iter().filter(|(name, _)| is_gpu(name)) {
        gpu.add(amount);
    }
    DesiredResources {
        cpu: named("cpu"),
        memory: named("memory"),
        gpu: gpu.quantity(),
        tpu: named("google.com/tpu"),
    }
}

/// A sum that keeps the format of its first part.
#[derive(Clone, Copy, Default)]
struct ResourceSum {
    nanos: i128,
    format: Option<Format>,
}

impl ResourceSum {
    fn add(&mut self, other: &Self) {
        self.nanos = self.nanos.saturating_add(other.nanos);
        self.format = self.format.or(other.format);
    }

    fn quantity(&self) -> Quantity {
        Quantity::from_nanos(self.nanos, self.format.unwrap_or_default())
    }
}

/// Adds what `count` pods request: requests, and limits of resources without a request.
fn add(sums: &mut BTreeMap<String, ResourceSum>, template: &Value, count: i128) {
    for container in items(&template["spec"]["containers"]) {
        let mut amounts: BTreeMap<&String, &Value> = BTreeMap::new();
        // Requests last: a limit counts only for a resource without a request.
        for list in ["limits", "requests"] {
            amounts.extend(container["resources"][list].as_object().into_iter().flatten());
        }
        for (name, amount) in amounts {
            let Some(amount) = quantity(amount) else { continue };
            let nanos = amount.nanos().saturating_mul(count);
            let part = ResourceSum { nanos, format: Some(amount.format()) };
            sums.entry(name.clone()).or_default().add(&part);
        }
    }
}
