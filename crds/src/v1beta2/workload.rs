//! Workload: the pod sets of a job.

use k8s_openapi::{Resource, apimachinery::pkg::apis::meta::v1::OwnerReference};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::workload_status::WorkloadStatus;
use crate::{
    kind::kind,
    meta::is_true,
    names::{
        conditions::{ADMITTED, EVICTED, FINISHED, QUOTA_RESERVED},
        labels::CONCURRENT_ADMISSION_PARENT,
    },
    pod::PodTemplate,
    rules,
    schema::{DnsLabel, DnsSubdomain, PodTemplateShape, Text},
};

kind! {
    /// A unit of admission: pod sets that start together.
    Workload, NamespaceResourceScope, "kueue.x-k8s.io" / "v1beta2" / "workloads" {
        /// What is wanted.
        #[serde(default)]
        spec: WorkloadSpec,
        /// What is observed.
        #[serde(default)]
        status: WorkloadStatus,
    }
}

impl Workload {
    /// Whether it has variants, which compete for quota in its place.
    #[must_use]
    pub fn has_variants(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels.and_then(|all| all.get(CONCURRENT_ADMISSION_PARENT)).is_some_and(|one| one == "true")
    }

    /// The Workload that it is a variant of.
    #[must_use]
    pub fn parent(&self) -> Option<&OwnerReference> {
        let owners = self.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().find(|one| one.kind == Self::KIND && one.api_version == Self::API_VERSION)
    }

    /// Whether it may have quota: it was not deactivated.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.spec.active != Some(false)
    }

    /// Whether quota is reserved for it, also when it is evicted or finished.
    #[must_use]
    pub fn has_quota_reservation(&self) -> bool {
        is_true(&self.status.conditions, QUOTA_RESERVED)
    }

    /// Whether it is admitted, also when it is evicted or finished.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        is_true(&self.status.conditions, ADMITTED)
    }

    /// Whether it is evicted.
    #[must_use]
    pub fn is_evicted(&self) -> bool {
        is_true(&self.status.conditions, EVICTED)
    }

    /// Whether it is finished.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        is_true(&self.status.conditions, FINISHED)
    }

    /// Whether it is admitted, and neither evicted nor finished.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.is_admitted() && !self.is_evicted() && !self.is_finished()
    }
}

/// The most pod sets that a Workload has.
pub const MAX_POD_SETS: usize = 18;

/// One layer of slices: the number of pods that are placed together, and their domain.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["size", "topology"]))]
pub struct PodSetSliceTopologyConstraint {
    /// Pods of a slice.
    #[serde(default)]
    #[schemars(extend("minimum" = 1))]
    pub size: i32,
    /// The level, as node label key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Text<1, 63>")]
    pub topology: String,
}

/// The topology constraints of a pod set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSetTopologyRequest {
    /// Pod label that holds the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 317>")]
    pub pod_index_label: Option<String>,
    /// Pod sets of one name share flavors and domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 256>")]
    pub pod_set_group_name: Option<String>,
    /// Level that holds a whole slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 63>")]
    pub pod_set_slice_required_topology: Option<String>,
    /// Pods of a slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub pod_set_slice_size: Option<i32>,
    /// Layers of slices, from the broadest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 3, "x-list" = "atomic"))]
    pub podset_slice_required_topology_constraints: Vec<PodSetSliceTopologyConstraint>,
    /// Level that should hold all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 63>")]
    pub preferred: Option<String>,
    /// Level that must hold all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 63>")]
    pub required: Option<String>,
    /// Number of groups of equal pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub sub_group_count: Option<i32>,
    /// Pod label that holds the index of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 317>")]
    pub sub_group_index_label: Option<String>,
    /// Any node will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconstrained: Option<bool>,
}

/// Equal pods of a Workload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["template"], "x-kubernetes-validations" = rules::POD_SET))]
pub struct PodSet {
    /// Number of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0, "x-default" = 1))]
    pub count: Option<i32>,
    /// The minimum count; enables partial admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub min_count: Option<i32>,
    /// Name, unique in the Workload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsLabel", extend("x-default" = "main"))]
    pub name: String,
    /// The pod.
    #[serde(default)]
    #[schemars(with = "PodTemplateShape")]
    pub template: PodTemplate,
    /// The topology constraints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_request: Option<Box<PodSetTopologyRequest>>,
}

/// A gate that keeps a Workload from preempting.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct PreemptionGate {
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Text<1, 63>")]
    pub name: String,
}

/// The class of a priority.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["group", "kind", "name"]))]
pub struct PriorityClassRef {
    /// Group of the class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["kueue.x-k8s.io", "scheduling.k8s.io"]))]
    pub group: String,
    /// Kind of the class: WorkloadPriorityClass or PriorityClass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["WorkloadPriorityClass", "PriorityClass"]))]
    pub kind: String,
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain", extend("minLength" = 1))]
    pub name: String,
}

/// What is to be run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::WORKLOAD_SPEC))]
pub struct WorkloadSpec {
    /// Whether the Workload may run; switching it off evicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = true))]
    pub active: Option<bool>,
    /// Longest run time in seconds, over all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub maximum_execution_time_seconds: Option<i32>,
    /// The pods.
    #[serde(
        default,
        deserialize_with = "crate::exact::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(extend("minItems" = 1, "maxItems" = 18, "x-list" = "map name"))]
    pub pod_sets: Vec<PodSet>,
    /// Gates that keep the Workload from preempting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 8, "x-list" = "map name"))]
    pub preemption_gates: Vec<PreemptionGate>,
    /// The priority; higher values are first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The class of the priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules::PRIORITY_CLASS_REF))]
    pub priority_class_ref: Option<Box<PriorityClassRef>>,
    /// The LocalQueue.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "DnsSubdomain")]
    pub queue_name: String,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(metadata: &Value) -> Workload {
        serde_json::from_value(json!({ "metadata": metadata })).expect("a Workload")
    }

    /// A shared Workload of pods without a topology, class or backoff is allocated in 768 bytes, its pod set in 64.
    #[test]
    fn rare_fields_take_little_room() {
        let counts = 2 * size_of::<usize>();
        let sizes = (size_of::<Workload>() + counts, size_of::<PodSet>());
        assert!(sizes.0 <= 768 && sizes.1 <= 64, "{sizes:?}");
    }

    #[test]
    fn the_owning_workload_is_the_parent() {
        let owner = |version: &str, kind: &str, uid: &str| json!({"apiVersion": version, "kind": kind, "name": "n", "uid": uid});
        let owners = json!([
            owner("batch/v1", "Job", "j"),
            owner("kueue.x-k8s.io/v1beta1", "Workload", "old"),
            owner("kueue.x-k8s.io/v1beta2", "Workload", "p"),
        ]);
        let variant = of(&json!({ "ownerReferences": owners }));
        assert_eq!(variant.parent().map(|owner| owner.uid.as_str()), Some("p"));
        assert_eq!(of(&json!({})).parent(), None);
        for (value, is) in [("true", true), ("false", false)] {
            let labels = json!({"labels": {CONCURRENT_ADMISSION_PARENT: value}});
            assert_eq!(of(&labels).has_variants(), is);
        }
    }
}
