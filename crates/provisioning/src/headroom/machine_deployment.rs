//! Node groups of Cluster API: MachineDeployments with the annotations that scaling from zero needs.
//!
//! Sizes come from the status of cluster-autoscaler only: a management cluster has the MachineDeployments of other clusters as well,
//! and the status names those of its own.

use std::collections::BTreeMap;

use crds::{
    decode::Decode,
    meta::{Taint, annotation},
    quantity::Quantity,
};
use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::Deserialize;
use serde_json::Error;

use super::NewNodeShape;
use crate::api::{OnlyMetadata, resource};

/// The prefix of the annotations.
const PREFIX: &str = "capacity.cluster-autoscaler.kubernetes.io/";

/// The number of pods of a node that declares none.
const DEFAULT_PODS: &str = "110";

/// A MachineDeployment, of which only annotations are read.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct MachineDeployment {
    /// Name, namespace, annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

resource!(
    MachineDeployment in NamespaceResourceScope = "cluster.x-k8s.io",
    "v1beta1",
    "cluster.x-k8s.io/v1beta1",
    "MachineDeployment",
    "machinedeployments"
);

impl Decode for MachineDeployment {
    #[inline(never)]
    fn decode_text(text: &str) -> Result<Self, Error> {
        let metadata = serde_json::from_str::<OnlyMetadata>(text)?.metadata.unwrap_or_default();
        // Managed fields and labels would be most of what a store keeps.
        let ObjectMeta { name, namespace, annotations, resource_version, uid, .. } = metadata;
        let annotations = annotations
            .map(|all| all.into_iter().filter(|(key, _)| key.starts_with(PREFIX)).collect());
        Ok(Self {
            metadata: ObjectMeta {
                name,
                namespace,
                annotations,
                resource_version,
                uid,
                ..ObjectMeta::default()
            },
        })
    }
}

impl MachineDeployment {
    /// Whether it is the group of this name in the status of cluster-autoscaler.
    #[must_use]
    pub fn is_group(&self, name: &str) -> bool {
        let mut parts = name.split('/');
        let mut next = || parts.next().unwrap_or_default();
        let ObjectMeta { namespace, name, .. } = &self.metadata;
        let (namespace, name) = (namespace.as_deref(), name.as_deref());
        (next(), next(), next())
            == ("MachineDeployment", namespace.unwrap_or_default(), name.unwrap_or_default())
    }

    /// The shape that its annotations declare; `None` unless they declare cpu and memory and all of them parse.
    #[must_use]
    pub fn declared_shape(&self) -> Option<NewNodeShape> {
        let text = |name: &str| annotation(&self.metadata, &format!("{PREFIX}{name}"));
        let mut allocatable = BTreeMap::new();
        let mut declare = |resource: &str, amount: &str| {
            allocatable.insert(resource.to_owned(), amount.trim().parse::<Quantity>().ok()?);
            Some(())
        };
        declare("cpu", text("cpu")?)?;
        declare("memory", text("memory")?)?;
        declare("pods", text("maxPods").unwrap_or(DEFAULT_PODS))?;
        if let Some(disk) = text("ephemeral-disk") {
            declare("ephemeral-storage", disk)?;
        }
        if let Some(count) = text("gpu-count") {
            declare(text("gpu-type")?, count)?;
        }
        let listed = |name: &str| text(name).unwrap_or_default().split(',').map(str::trim);
        let labels = listed("labels").filter(|one| !one.is_empty()).map(label);
        let taints = listed("taints").filter(|one| !one.is_empty()).map(taint);
        Some(NewNodeShape {
            labels: labels.collect::<Option<_>>()?,
            taints: taints.collect::<Option<_>>()?,
            allocatable,
        })
    }
}

/// `key=value`.
fn label(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    Some((key.to_owned(), value.to_owned()))
}

/// `key=value:effect`.
fn taint(text: &str) -> Option<Taint> {
    let (rest, effect) = text.rsplit_once(':')?;
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    let (key, value, effect) = (key.to_owned(), value.to_owned(), effect.to_owned());
    Some(Taint { effect, key, time_added: None, value })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(annotations: &[(&str, &str)]) -> MachineDeployment {
        let annotations: BTreeMap<String, &str> =
            annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), *value)).collect();
        MachineDeployment::decode(&json!({
            "metadata": {"namespace": "fleet", "name": "gpu", "annotations": annotations},
            "spec": {"replicas": 0, "clusterName": "east"},
        }))
        .expect("a MachineDeployment")
    }

    #[test]
    fn annotations_declare_the_shape_of_a_group_without_nodes() {
        let declared = deployment(&[
            ("cpu", "16"),
            ("memory", "64G"),
            ("gpu-type", "nvidia.com/gpu"),
            ("gpu-count", "8"),
            ("labels", "gpu=h100, zone=a"),
            ("taints", "gpu=true:NoSchedule"),
        ]);
        let shape = declared.declared_shape().expect("a shape");
        let amounts: Vec<_> =
            shape.allocatable.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
        assert_eq!(amounts, ["cpu 16", "memory 64G", "nvidia.com/gpu 8", "pods 110"]);
        assert_eq!(
            shape.labels,
            [("gpu", "h100"), ("zone", "a")].map(|(k, v)| (k.into(), v.into())).into()
        );
        let taint = shape.taints.first().expect("a taint");
        assert_eq!((&*taint.key, &*taint.value, &*taint.effect), ("gpu", "true", "NoSchedule"));
        assert!(declared.is_group("MachineDeployment/fleet/gpu"));
        assert!(!declared.is_group("MachineDeployment/other/gpu"));
        assert!(!declared.is_group("gpu"));
    }

    #[test]
    fn an_incomplete_declaration_declares_no_shape() {
        for annotations in [
            &[("cpu", "16")][..],
            &[("cpu", "16"), ("memory", "lots")],
            &[("cpu", "16"), ("memory", "64G"), ("gpu-count", "8")],
            &[("cpu", "16"), ("memory", "64G"), ("taints", "gpu")],
        ] {
            assert_eq!(deployment(annotations).declared_shape(), None, "{annotations:?}");
        }
    }
}
