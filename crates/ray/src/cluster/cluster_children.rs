//! The objects around a RayCluster, sorted once for a decision: it reads its pods many times, and a cluster may have thousands.

use crds::meta::is_controlled_by;
use serde_json::Value;

use crate::{
    json::{label, name},
    names,
};

/// The children of a RayCluster, sorted by purpose.
#[derive(Default)]
pub(crate) struct ClusterChildren<'a> {
    /// Pods of the head.
    pub(super) heads: Vec<&'a Value>,
    /// Pods of workers.
    pub(super) workers: Vec<&'a Value>,
    /// Objects that are no pods.
    pub(super) others: Vec<&'a Value>,
}

impl<'a> ClusterChildren<'a> {
    /// Sorts objects. Pods of a deleted cluster of the same name are left out.
    pub(super) fn of(cluster: &Value, objects: &[&'a Value]) -> Self {
        let mut children = Self::default();
        for &object in objects {
            if object["kind"] != "Pod" {
                children.others.push(object);
                continue;
            }
            let list = match label(object, names::NODE_TYPE_LABEL) {
                "head" => &mut children.heads,
                "worker" => &mut children.workers,
                _ => continue,
            };
            // The labels also match pods of a deleted cluster that the garbage collector has not removed yet.
            if label(object, names::CLUSTER_LABEL) == name(cluster)
                && is_controlled_by(object, cluster)
            {
                list.push(object);
            }
        }
        children
    }
}
