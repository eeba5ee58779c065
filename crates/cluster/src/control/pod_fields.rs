//! The fields of a Pod that decide about room, nodes and gates.
//!
//! An agent observes every Pod of its cluster, and each several times. Most of the text of a Pod never matters there: volumes, probes,
//! environments, managed fields. It is skipped, not decoded.

use std::collections::BTreeMap;

use ::jobs::{
    Pod,
    pods::pod::{PodCondition, PodStatus},
};
use crds::{
    pod::{Container, PodSpec, ResourceRequirements, SharedFields, SharedResources},
    quantity::Quantity,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::Deserialize;
use serde_json::{Value, json};

/// A Pod with these fields only.
#[derive(Debug, Deserialize)]
#[serde(from = "PodText")]
pub struct PodFields(pub(crate) Pod);

crds::decode!(PodFields);

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodText {
    metadata: MetadataText,
    spec: SpecText,
    status: StatusText,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetadataText {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecText {
    containers: Vec<ContainerText>,
    init_containers: Vec<ContainerText>,
    node_name: Option<String>,
    node_selector: BTreeMap<String, String>,
    overhead: BTreeMap<String, Quantity>,
    resources: Option<ResourcesText>,
    scheduling_gates: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerText {
    resources: Option<ResourcesText>,
    restart_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourcesText {
    limits: BTreeMap<String, Quantity>,
    requests: BTreeMap<String, Quantity>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusText {
    phase: String,
    conditions: Vec<ConditionText>,
    init_container_statuses: Vec<ContainerStatusText>,
    container_statuses: Vec<ContainerStatusText>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConditionText {
    r#type: String,
    #[serde(default)]
    status: String,
    last_transition_time: Option<Time>,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerStatusText {
    name: String,
    state: ContainerStateText,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerStateText {
    /// Why the container does not start.
    waiting: Option<Value>,
}

impl From<PodText> for PodFields {
    fn from(pod: PodText) -> Self {
        let PodText { metadata, spec, status } = pod;
        Self(Pod {
            metadata: metadata.into(),
            spec: PodSpec::from(spec).into(),
            status: status.into(),
        })
    }
}

impl From<MetadataText> for ObjectMeta {
    fn from(metadata: MetadataText) -> Self {
        Self {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: metadata.labels,
            annotations: metadata.annotations,
            owner_references: metadata.owner_references,
            deletion_timestamp: metadata.deletion_timestamp,
            deletion_grace_period_seconds: metadata.deletion_grace_period_seconds,
            ..Self::default()
        }
    }
}

impl From<SpecText> for PodSpec {
    fn from(spec: SpecText) -> Self {
        let gates = Some(spec.scheduling_gates).filter(|gates| !gates.is_empty());
        let rest = [
            ("nodeName", spec.node_name.map(Value::from)),
            ("schedulingGates", gates.map(Value::from)),
        ];
        Self {
            containers: spec.containers.into_iter().map(Container::from).collect(),
            init_containers: spec.init_containers.into_iter().map(Container::from).collect(),
            node_selector: spec.node_selector,
            overhead: spec.overhead,
            resources: spec.resources.map(SharedResources::from),
            rest: present(rest),
            ..Self::default()
        }
    }
}

impl From<ContainerText> for Container {
    fn from(container: ContainerText) -> Self {
        Self {
            resources: container.resources.map(SharedResources::from),
            restart_policy: container.restart_policy,
            ..Self::default()
        }
    }
}

impl From<ResourcesText> for SharedResources {
    fn from(resources: ResourcesText) -> Self {
        let ResourcesText { limits, requests } = resources;
        ResourceRequirements { limits, requests, ..ResourceRequirements::default() }.into()
    }
}

impl From<StatusText> for PodStatus {
    fn from(status: StatusText) -> Self {
        let rest = [
            ("initContainerStatuses", waiting(status.init_container_statuses)),
            ("containerStatuses", waiting(status.container_statuses)),
        ];
        Self {
            phase: status.phase,
            conditions: status.conditions.into_iter().map(PodCondition::from).collect(),
            rest: present(rest),
            ..Self::default()
        }
    }
}

impl From<ConditionText> for PodCondition {
    fn from(condition: ConditionText) -> Self {
        let rest = [
            ("reason", condition.reason.map(Value::from)),
            ("message", condition.message.map(Value::from)),
        ];
        Self {
            r#type: condition.r#type,
            status: condition.status,
            last_transition_time: condition.last_transition_time,
            rest: present(rest),
        }
    }
}

/// The containers that do not start.
fn waiting(statuses: Vec<ContainerStatusText>) -> Option<Value> {
    let waiting = statuses.into_iter().filter_map(|status| {
        let state = json!({ "waiting": status.state.waiting? });
        Some(json!({ "name": status.name, "state": state }))
    });
    let waiting: Vec<Value> = waiting.collect();
    (!waiting.is_empty()).then(|| Value::from(waiting))
}

fn present<const N: usize>(fields: [(&str, Option<Value>); N]) -> SharedFields {
    let fields = fields.into_iter();
    fields.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use crds::decode::Decode;
    use proptest::prelude::*;

    use super::*;
    use crate::control::{
        capacity::PodInfo, elastic_pods::WatchedElasticPod,
        failure_recovery::WatchedTerminatingPod, observed::Reduced, topology::WatchedPod,
    };

    /// What a decision keeps of a pod with all of its fields, and of one with these.
    fn is_read_alike<T: Reduced<Object = PodFields> + PartialEq>(text: &str) -> bool {
        let whole = PodFields(Pod::decode_text(text).expect("a pod"));
        let fields = PodFields::decode_text(text).expect("its fields");
        T::of(&whole) == T::of(&fields)
    }

    fn maybe(value: Value) -> impl Strategy<Value = Value> {
        prop_oneof![Just(Value::Null), Just(value)]
    }

    fn container() -> impl Strategy<Value = Value> {
        let requests = maybe(json!({"cpu": "1500m", "nvidia.com/gpu": "2"}));
        let limits = maybe(json!({"memory": "1Gi"}));
        (requests, limits, maybe(json!("Always"))).prop_map(|(requests, limits, policy)| {
            let resources = without_nulls(json!({"requests": requests, "limits": limits}));
            without_nulls(json!({
                "name": "main", "image": "i", "env": [{"name": "A", "value": "1"}],
                "volumeMounts": [{"name": "token", "mountPath": "/t"}],
                "resources": resources, "restartPolicy": policy,
            }))
        })
    }

    fn without_nulls(mut object: Value) -> Value {
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        object
    }

    fn spec() -> impl Strategy<Value = Value> {
        let containers = || prop::collection::vec(container(), 0..3);
        let node = prop_oneof![Just(Value::Null), Just(json!("")), Just(json!("node"))];
        let gates = json!([{"name": "kueue.x-k8s.io/elastic-job"}, {"name": "other"}]);
        let rest = (
            maybe(json!({"cpu": "100m"})),
            maybe(json!({"requests": {"cpu": "3"}})),
            maybe(gates),
            maybe(json!({"zone": "a"})),
        );
        (containers(), containers(), node, rest).prop_map(|(init, main, node, rest)| {
            let (overhead, resources, gates, selector) = rest;
            without_nulls(json!({
                "initContainers": init, "containers": main, "nodeName": node,
                "overhead": overhead, "resources": resources, "schedulingGates": gates,
                "nodeSelector": selector, "priority": 3, "volumes": [{"name": "token"}],
            }))
        })
    }

    fn status() -> impl Strategy<Value = Value> {
        let phase = prop::sample::select(vec!["", "Pending", "Running", "Succeeded", "Failed"]);
        let scheduled = json!([
            {"type": "TerminatedByKueue", "status": "True"},
            {
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1", "lastTransitionTime": "2026-01-01T00:00:00Z",
            },
        ]);
        let waits = json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}});
        let containers = json!([
            {"name": "ok", "image": "i", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}},
            {"name": "main", "image": "i", "state": waits},
        ]);
        (phase, maybe(scheduled), maybe(containers.clone()), maybe(containers)).prop_map(
            |(phase, conditions, init, containers)| {
                without_nulls(json!({
                    "phase": phase, "conditions": conditions, "hostIP": "10.0.0.1",
                    "initContainerStatuses": init, "containerStatuses": containers,
                }))
            },
        )
    }

    fn metadata() -> impl Strategy<Value = Value> {
        let labels = json!({
            "kueue.x-k8s.io/multikueue-worker-workload-pod": "true",
            "kueue.x-k8s.io/podset": "main",
        });
        let annotations = json!({
            "kueue.x-k8s.io/workload": "clone",
            "kueue.x-k8s.io/workload-slice-name": "first",
            "kueue.x-k8s.io/podset-required-topology": "rack",
            "kueue.x-k8s.io/safe-to-forcefully-delete": "true",
        });
        let owner = json!([{
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u",
            "controller": true,
        }]);
        (maybe(labels), maybe(annotations), maybe(owner), maybe(json!("2026-01-01T00:00:00Z")))
            .prop_map(|(labels, annotations, owners, deleted)| {
                let grace = if deleted.is_null() { Value::Null } else { json!(30) };
                without_nulls(json!({
                    "name": "p", "namespace": "ns", "uid": "u1", "resourceVersion": "7",
                    "labels": labels, "annotations": annotations, "ownerReferences": owners,
                    "deletionTimestamp": deleted, "deletionGracePeriodSeconds": grace,
                    "managedFields": [{"manager": "kubelet", "operation": "Update"}],
                }))
            })
    }

    proptest! {
        #[test]
        fn a_decision_reads_nothing_else(
            (metadata, spec, status) in (metadata(), spec(), status())
        ) {
            let text = json!({"metadata": metadata, "spec": spec, "status": status}).to_string();
            prop_assert!(is_read_alike::<PodInfo>(&text));
            prop_assert!(is_read_alike::<WatchedElasticPod>(&text));
            prop_assert!(is_read_alike::<WatchedPod>(&text));
            prop_assert!(is_read_alike::<WatchedTerminatingPod>(&text));
        }
    }
}
