//! A RayCluster with the objects around it, as the decisions about its security read them.

use serde_json::{Value, json};

use super::{config::SecuritySettings, object_names::ObjectNames};
use crate::{
    json::{items, name, text},
    names,
};

/// A RayCluster with the objects that its security depends on.
pub(super) struct SecuredCluster<'a> {
    pub(super) cluster: &'a Value,
    pub(super) children: &'a [&'a Value],
    pub(super) settings: &'a SecuritySettings,
    pub(super) names: ObjectNames<'a>,
}

impl<'a> SecuredCluster<'a> {
    pub(super) fn new(
        cluster: &'a Value,
        children: &'a [&'a Value],
        settings: &'a SecuritySettings,
    ) -> Self {
        Self { cluster, children, settings, names: ObjectNames::of(cluster) }
    }

    /// The child of this kind and name.
    pub(super) fn child(&self, kind: &str, wanted: &str) -> Option<&'a Value> {
        self.children.iter().copied().find(|child| child["kind"] == kind && name(child) == wanted)
    }

    /// Whether the cluster is an owner of an object. One of CodeFlare has it as an owner, too.
    pub(super) fn owns(&self, object: &Value) -> bool {
        let uid = &self.cluster["metadata"]["uid"];
        items(&object["metadata"]["ownerReferences"]).iter().any(|owner| owner["uid"] == *uid)
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.cluster["status"]["state"] == names::STATE_SUSPENDED
    }

    /// An object of the cluster without its content.
    pub(super) fn object(&self, api_version: &str, kind: &str, name: &str) -> Value {
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": self.names.namespace,
                "labels": {
                    // By this label the operator sees its objects; CodeFlare has the other one only.
                    names::CLUSTER_LABEL: self.names.cluster,
                    names::SECURED_CLUSTER_LABEL: self.names.cluster,
                },
                "ownerReferences": [{
                    "apiVersion": "ray.io/v1",
                    "kind": "RayCluster",
                    "name": self.names.cluster,
                    "uid": self.cluster["metadata"]["uid"],
                }],
            },
        })
    }
}

/// The Service of the head.
pub(super) fn head_service(cluster: &Value) -> String {
    match text(&cluster["spec"]["headGroupSpec"]["headService"]["metadata"]["name"]) {
        "" => names::head_service_name(name(cluster)),
        given => given.to_owned(),
    }
}
