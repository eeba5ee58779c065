//! Whether a cluster is of the present spec of a RayService.
//!
//! A cluster bears a hash of the spec that it was made from, without what scales it and without what admission adds, and the number of
//! its worker groups. Groups that are appended later change the cluster itself; every other difference is one for a new cluster.
//!
//! Source: docs/reference/ray.md §9.

use serde_json::{Value, json};

use super::{context::ServiceContext, go_form::go_form};
use crate::{
    cluster::recreate_hash,
    json::{annotation, items, list, object},
    names,
};

/// How a cluster differs from the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClusterFit {
    /// Not at all, or in its scale only.
    Same,
    /// Another version of the operator made it, and the spec is the same. It gets the annotations of this version, and keeps its spec: its
    /// scale may be that of the autoscaler, and Kueue has added to its pods.
    OtherVersion,
    /// Another version of the operator made it, and the spec is another one. It is changed in place.
    OtherVersionAndSpec,
    /// The spec has more worker groups, behind those of the cluster. It is changed in place.
    InPlace,
    /// A new cluster is needed.
    Other,
}

impl ClusterFit {
    /// Whether the cluster gets what it lacks, and stays.
    pub(super) fn is_updated(self) -> bool {
        matches!(self, Self::OtherVersion | Self::OtherVersionAndSpec | Self::InPlace)
    }

    /// Whether the pods of the cluster are those of the spec, or of a part of it to which groups are appended.
    pub(super) fn is_of_the_spec(self) -> bool {
        matches!(self, Self::Same | Self::OtherVersion | Self::InPlace)
    }
}

/// Compares a cluster with the spec of the RayService.
pub(super) fn fit(context: &ServiceContext<'_>, cluster: &Value) -> ClusterFit {
    let spec = &context.service["spec"]["rayClusterConfig"];
    // Hashes of another version cannot be compared: the cluster is completed, and bears ours from then on.
    if annotation(cluster, names::OPERATOR_VERSION) != context.settings.version {
        return if is_made_from(&cluster["spec"], spec) {
            ClusterFit::OtherVersion
        } else {
            ClusterFit::OtherVersionAndSpec
        };
    }
    let made_from = annotation(cluster, names::SPEC_HASH);
    if made_from == recreate_hash(spec) {
        return ClusterFit::Same;
    }
    let Ok(count) = annotation(cluster, names::GROUP_COUNT).parse::<usize>() else {
        // A cluster that does not say what it is made of is completed and not replaced.
        return ClusterFit::InPlace;
    };
    if items(&spec["workerGroupSpecs"]).len() < count {
        return ClusterFit::Other;
    }
    let mut without_new = spec.clone();
    if !without_new["workerGroupSpecs"].is_null() {
        list(&mut without_new, "workerGroupSpecs").truncate(count);
    }
    let mut is_extended = made_from == recreate_hash(&without_new);
    if count == 0 && !is_extended {
        // A spec without groups may have an empty list or none.
        object(&mut without_new).remove("workerGroupSpecs");
        is_extended = made_from == recreate_hash(&without_new);
    }
    if is_extended { ClusterFit::InPlace } else { ClusterFit::Other }
}

/// Whether the pods of a cluster's spec are those of another spec, for an operator that has decoded the spec and written it again.
fn is_made_from(cluster: &Value, spec: &Value) -> bool {
    recreate_hash(&go_form(cluster)) == recreate_hash(&go_form(spec))
}

/// The annotations of a cluster that is made from the present spec.
pub(super) fn goal_annotations(context: &ServiceContext<'_>) -> Value {
    let spec = &context.service["spec"]["rayClusterConfig"];
    json!({
        names::SPEC_HASH: recreate_hash(spec),
        names::GROUP_COUNT: items(&spec["workerGroupSpecs"]).len().to_string(),
        names::OPERATOR_VERSION: context.settings.version,
    })
}
