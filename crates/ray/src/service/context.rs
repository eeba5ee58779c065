//! What all steps for a RayService read.

use crds::meta::is_controlled_by;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    PassInputs,
    cluster::{ClusterContext, of_cluster},
    json::{is_terminating, label, name, text},
    names,
    settings::OperatorSettings,
    v1::RayServiceSpec,
};

/// Why a pass does not come to its end.
pub(super) enum Unfinished {
    /// An order has no answer yet or was refused, or something is missing that the next pass may find. The status stays.
    Waiting,
    /// The new cluster cannot be made. The status follows from what is there.
    ClusterRefused,
}

/// A RayService, the objects around it, the settings and the time.
pub(super) struct ServiceContext<'a> {
    pub(super) service: &'a Value,
    pub(super) spec: &'a RayServiceSpec,
    pub(super) children: &'a [&'a Value],
    pub(super) settings: &'a OperatorSettings,
    pub(super) inputs: &'a PassInputs,
}

impl<'a> ServiceContext<'a> {
    pub(super) fn name(&self) -> &'a str {
        name(self.service)
    }

    pub(super) fn namespace(&self) -> &'a str {
        text(&self.service["metadata"]["namespace"])
    }

    /// `namespace/name` of an object beside the RayService, for messages.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.namespace())
    }

    pub(super) fn now(&self) -> Timestamp {
        self.inputs.now
    }

    /// The present generation of the RayService.
    pub(super) fn generation(&self) -> i64 {
        self.service["metadata"]["generation"].as_i64().unwrap_or_default()
    }

    /// Whether traffic moves step by step.
    pub(super) fn is_incremental(&self) -> bool {
        let strategy = self.spec.upgrade_strategy.as_ref();
        self.settings.gates.incremental_upgrade
            && strategy.and_then(|it| it.r#type.as_deref()) == Some(names::INCREMENTAL_UPGRADE)
    }

    /// Whether a changed spec gives a new cluster.
    pub(super) fn replaces_clusters(&self) -> bool {
        let strategy = self.spec.upgrade_strategy.as_ref();
        match strategy.and_then(|it| it.r#type.as_deref()) {
            None => self.settings.zero_downtime,
            Some("NewCluster") => true,
            Some(_) => self.is_incremental(),
        }
    }

    /// An object that the RayService made. One of another controller with the name is none.
    pub(super) fn own(&self, kind: &str, wanted: &str) -> Option<&'a Value> {
        self.child(kind, wanted).filter(|object| self.owns(object))
    }

    pub(super) fn child(&self, kind: &str, wanted: &str) -> Option<&'a Value> {
        self.children.iter().copied().find(|it| it["kind"] == kind && name(it) == wanted)
    }

    pub(super) fn owns(&self, object: &Value) -> bool {
        is_controlled_by(object, self.service)
    }

    /// A cluster of the RayService. None if no name is given, or no such cluster is there.
    pub(super) fn cluster(&self, wanted: &str) -> Option<&'a Value> {
        self.own("RayCluster", wanted).filter(|_| !wanted.is_empty())
    }

    /// All of its clusters.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &'a Value> {
        self.children.iter().copied().filter(|it| it["kind"] == "RayCluster" && self.owns(it))
    }

    /// The head of a cluster. One that is not on its way out comes first.
    pub(super) fn head_pod(&self, cluster: &Value) -> Option<&'a Value> {
        let heads = self.children.iter().copied().filter(|pod| {
            pod["kind"] == "Pod"
                && label(pod, names::CLUSTER_LABEL) == name(cluster)
                && label(pod, names::NODE_TYPE_LABEL) == "head"
                && is_controlled_by(pod, cluster)
        });
        heads.min_by_key(|pod| is_terminating(pod))
    }

    /// Calls a function that is written for a RayCluster. None if the spec of the cluster does not decode.
    pub(super) fn of_cluster<T>(
        &self,
        cluster: &Value,
        make: impl FnOnce(&ClusterContext<'_>) -> T,
    ) -> Option<T> {
        of_cluster(cluster, self.settings, make).ok()
    }

    pub(super) fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": "ray.io/v1",
            "kind": "RayService",
            "name": self.service["metadata"]["name"],
            "uid": self.service["metadata"]["uid"],
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// The labels that tell for which RayService an object was made.
    pub(super) fn origin_labels(&self) -> Value {
        json!({names::ORIGIN_KIND_LABEL: "RayService", names::ORIGIN_NAME_LABEL: self.name()})
    }
}
