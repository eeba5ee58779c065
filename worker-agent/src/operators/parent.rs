//! The kinds that are operated, what their decisions read, and which of them an object concerns.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use appwrapper::{WrapperFacts, settings::WrapperSettings};
use crds::json::{label, name, text};
use ray::{
    PassInputs, names,
    service::ServiceMemory,
    settings::{OperatorSettings, RayGates},
};
use runtime::watch::{ApiResource, Key};
use serde_json::Value;

use super::{
    resources::{CLUSTER_ROLE_BINDING, resource},
    step::{OrderAnswer, PassStep, of_wrapper},
};

/// The label of the pods of an AppWrapper.
const WRAPPER_LABEL: &str = appwrapper::names::WRAPPER_LABEL;

/// A kind that is operated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ParentKind {
    RayCluster,
    RayJob,
    RayService,
    RayCronJob,
    AppWrapper,
}

/// An object that is operated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ParentId {
    pub(super) kind: ParentKind,
    pub(super) key: Key,
}

/// What a pass knows beside the objects of its namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct PassFacts {
    /// What the last pass about a RayService left.
    pub(super) memory: ServiceMemory,
    /// Nodes that the pods of AppWrappers must leave, with the resources of which they are the reason.
    pub(super) evicted_nodes: BTreeMap<String, BTreeSet<String>>,
}

/// Settings of all operators.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllSettings {
    pub(crate) ray: OperatorSettings,
    pub(crate) wrapper: WrapperSettings,
}

impl ParentKind {
    pub(super) const ALL: [Self; 5] =
        [Self::RayCluster, Self::RayJob, Self::RayService, Self::RayCronJob, Self::AppWrapper];

    /// The kinds that these gates leave on.
    pub(super) fn enabled(gates: RayGates) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |kind| gates.cron_jobs || *kind != Self::RayCronJob)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RayCluster => "RayCluster",
            Self::RayJob => "RayJob",
            Self::RayService => "RayService",
            Self::RayCronJob => "RayCronJob",
            Self::AppWrapper => "AppWrapper",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(super) fn resource(self) -> ApiResource {
        match self {
            Self::RayCluster => resource("ray.io", "v1", "RayCluster", "rayclusters"),
            Self::RayJob => resource("ray.io", "v1", "RayJob", "rayjobs"),
            Self::RayService => resource("ray.io", "v1", "RayService", "rayservices"),
            Self::RayCronJob => resource("ray.io", "v1", "RayCronJob", "raycronjobs"),
            Self::AppWrapper => {
                resource("workload.codeflare.dev", "v1beta2", "AppWrapper", "appwrappers")
            }
        }
    }

    /// The reporting controller of events, as the official operators name theirs.
    pub(super) fn reporter(self) -> &'static str {
        match self {
            Self::RayCluster => "raycluster-controller",
            Self::RayJob => "rayjob-controller",
            Self::RayService => "rayservice-controller",
            Self::RayCronJob => "raycronjob-controller",
            Self::AppWrapper => "appwrapper",
        }
    }

    /// The steps that `parent` needs next.
    pub(super) fn decide(
        self,
        (parent, children): (&Value, &[Arc<Value>]),
        facts: &PassFacts,
        answers: &[OrderAnswer],
        inputs: &PassInputs,
        settings: &AllSettings,
    ) -> Vec<PassStep> {
        let children: Vec<&Value> = children.iter().map(|child| &**child).collect();
        let ray_answers = || answers.iter().map(OrderAnswer::for_ray).collect::<Vec<_>>();
        let steps = match self {
            Self::RayCluster => {
                ray::cluster::decide(parent, &children, &ray_answers(), inputs, &settings.ray)
            }
            Self::RayJob => {
                ray::job::decide(parent, &children, &ray_answers(), inputs, &settings.ray)
            }
            Self::RayService => {
                let (answers, settings) = (ray_answers(), &settings.ray);
                ray::service::decide(parent, &children, &facts.memory, &answers, inputs, settings)
            }
            Self::RayCronJob => {
                ray::cron_job::decide(parent, &ray_answers(), inputs.now, &settings.ray)
            }
            Self::AppWrapper => {
                let answers: Vec<_> = answers.iter().map(OrderAnswer::for_wrapper).collect();
                let evicted_nodes = facts.evicted_nodes.clone();
                let facts = WrapperFacts { now: inputs.now, evicted_nodes };
                let wrapper = &settings.wrapper;
                let steps = appwrapper::decide(parent, &children, &answers, &facts, wrapper);
                return steps.into_iter().map(|step| of_wrapper(parent, step)).collect();
            }
        };
        steps.into_iter().map(PassStep::from).collect()
    }

    /// Whether the decision about `parent` reads `object`, which is in the same namespace.
    pub(super) fn reads(self, parent: &Value, object: &Value) -> bool {
        match self {
            Self::RayCluster => ray::cluster::reads(parent, object),
            Self::RayJob => ray::job::reads(parent, object),
            Self::RayService => ray::service::reads(parent, object),
            Self::RayCronJob => false,
            Self::AppWrapper => {
                object["kind"] == "Pod" && label(object, WRAPPER_LABEL) == name(parent)
            }
        }
    }
}

/// The operated objects that a change of `object` concerns, itself included.
pub(super) fn concerned(object: &Value) -> Vec<ParentId> {
    let namespace: Option<Arc<str>> = object["metadata"]["namespace"].as_str().map(Arc::from);
    let id = |kind, name: &str| ParentId {
        kind,
        key: Key { namespace: namespace.clone(), name: name.into() },
    };
    let mut found = Vec::new();
    if let Some(kind) = ParentKind::parse(text(&object["kind"])) {
        found.push(id(kind, name(object)));
    }
    for owner in object["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
        if let Some(kind) = ParentKind::parse(text(&owner["kind"])) {
            found.push(id(kind, text(&owner["name"])));
        }
    }
    let by_label = [
        (Some(ParentKind::RayCluster), label(object, names::CLUSTER_LABEL)),
        (
            ParentKind::parse(label(object, names::ORIGIN_KIND_LABEL)),
            label(object, names::ORIGIN_NAME_LABEL),
        ),
        (Some(ParentKind::AppWrapper), label(object, WRAPPER_LABEL)),
    ];
    if object["kind"] == CLUSTER_ROLE_BINDING {
        found.extend(secured_cluster(object));
    }
    for (kind, name) in by_label {
        if let (Some(kind), false) = (kind, name.is_empty()) {
            found.push(id(kind, name));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The RayCluster of an object without a namespace, which cannot have it as an owner.
fn secured_cluster(object: &Value) -> Option<ParentId> {
    let name = label(object, names::SECURED_CLUSTER_LABEL);
    let namespace = label(object, names::SECURED_NAMESPACE_LABEL);
    let key = Key { namespace: Some(namespace.into()), name: name.into() };
    (!name.is_empty()).then_some(ParentId { kind: ParentKind::RayCluster, key })
}

impl fmt::Display for ParentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.key)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ray_cron_jobs_are_left_alone_without_their_gate() {
        let enabled =
            |cron_jobs| ParentKind::enabled(RayGates { cron_jobs, ..RayGates::default() });
        assert_eq!(enabled(true).collect::<Vec<_>>(), ParentKind::ALL);
        assert!(!enabled(false).any(|kind| kind == ParentKind::RayCronJob));
        assert_eq!(enabled(false).count(), 4);
    }

    #[test]
    fn an_object_concerns_its_owner_and_those_that_its_labels_name() {
        let pod = json!({
            "kind": "Pod",
            "metadata": {
                "namespace": "ns", "name": "p",
                "labels": {
                    "ray.io/cluster": "c", "workload.codeflare.dev/appwrapper": "w",
                    "ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "j",
                },
                "ownerReferences": [
                    {"kind": "RayCluster", "name": "c"}, {"kind": "ReplicaSet", "name": "r"},
                ],
            },
        });
        let found: Vec<String> = concerned(&pod).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["RayCluster ns/c", "RayJob ns/j", "AppWrapper ns/w"]);
    }

    #[test]
    fn time_zones_are_known_without_files_of_the_system() {
        let is_known = |name| ray::cron_zone::zone_of(Some(name)).is_ok();
        assert!(is_known("Europe/Berlin") && !is_known("Europe/Nowhere"));
    }
}
