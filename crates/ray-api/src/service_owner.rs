//! The Ray object on the manager cluster that a Service belongs to. Its Workload says which cluster runs it.
//!
//! A worker makes Services and RayClusters of objects that were submitted to the manager, under names that follow from the names of
//! these objects. The manager cluster has neither, so an owner is found by name: first the objects that the name of the Service
//! gives, then all objects of the namespace, because a head's Service may have any name.

use serde_json::Value;

/// Ends of the names of Services.
const SUFFIXES: &[&str] = &["-head-svc", "-serve-svc", "-headless"];

/// The length of the random end of a RayCluster that was made for another object.
const RANDOM_LENGTH: usize = 5;

/// The longest name of a Service of a RayCluster; of longer ones the end counts.
const MAX_NAME: usize = 50;

/// A kind of object that has Ray clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RayOwnerKind {
    /// A RayCluster.
    Cluster,
    /// A RayJob.
    Job,
    /// A RayService.
    Service,
    /// An AppWrapper with any of them.
    AppWrapper,
}

/// An object that may own a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceOwner {
    /// The kind.
    pub kind: RayOwnerKind,
    /// The name.
    pub name: String,
}

impl RayOwnerKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Cluster, Self::Job, Self::Service, Self::AppWrapper];

    /// The plural name.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Cluster => "rayclusters",
            Self::Job => "rayjobs",
            Self::Service => "rayservices",
            Self::AppWrapper => "appwrappers",
        }
    }

    /// Group and version.
    #[must_use]
    pub fn group_version(self) -> (&'static str, &'static str) {
        match self {
            Self::AppWrapper => ("workload.codeflare.dev", "v1beta2"),
            _ => ("ray.io", "v1"),
        }
    }

    fn of(kind: &str) -> Option<Self> {
        match kind {
            "RayCluster" => Some(Self::Cluster),
            "RayJob" => Some(Self::Job),
            "RayService" => Some(Self::Service),
            _ => None,
        }
    }
}

/// Objects that a Service belongs to by its name. Whether one does, [`owns_service`] says.
#[must_use]
pub fn owner_candidates(service: &str) -> Vec<ServiceOwner> {
    use RayOwnerKind::{Cluster, Job, Service};
    let Some(base) = SUFFIXES.iter().find_map(|suffix| service.strip_suffix(suffix)) else {
        return Vec::new();
    };
    let owner = |kind| move |name: &str| ServiceOwner { kind, name: name.to_owned() };
    let mut candidates: Vec<ServiceOwner> =
        [Cluster, Job, Service].map(|kind| owner(kind)(base)).into();
    if let Some(parent) = parent(base) {
        candidates.extend([Job, Service].map(|kind| owner(kind)(parent)));
    }
    candidates.retain(|candidate| !candidate.name.is_empty());
    candidates
}

/// The name of the object that a RayCluster of this name was made for.
fn parent(cluster: &str) -> Option<&str> {
    let (parent, random) = cluster.rsplit_once('-')?;
    (random.len() == RANDOM_LENGTH && !parent.is_empty()).then_some(parent)
}

/// Whether a Service belongs to an object, by the object's name, spec and status.
#[must_use]
pub fn owns_service(kind: RayOwnerKind, object: &Value, service: &str) -> bool {
    let (name, status) = (text(&object["metadata"]["name"]), &object["status"]);
    let spec = &object["spec"];
    match kind {
        RayOwnerKind::Cluster => is_of_cluster(name, spec, service) || is_reported(status, service),
        RayOwnerKind::Job => {
            let cluster = text(&status["rayClusterName"]);
            is_of(name, service)
                || is_of_cluster(cluster, &spec["rayClusterSpec"], service)
                || is_reported(&status["rayClusterStatus"], service)
        }
        RayOwnerKind::Service => {
            let states = [&status["activeServiceStatus"], &status["pendingServiceStatus"]];
            let mut states = states.into_iter();
            is_of(name, service)
                || is_named(&spec["serveService"], service)
                || states.any(|state| {
                    is_of(text(&state["rayClusterName"]), service)
                        || is_reported(&state["rayClusterStatus"], service)
                })
        }
        RayOwnerKind::AppWrapper => has_component(spec, service),
    }
}

/// Whether a component of an AppWrapper owns the Service. Components have no status here: the worker keeps it.
fn has_component(spec: &Value, service: &str) -> bool {
    let components = spec["components"].as_array().into_iter().flatten();
    let mut templates = components.map(|component| &component["template"]);
    templates.any(|template| {
        let Some(kind) = RayOwnerKind::of(text(&template["kind"])) else { return false };
        let base = SUFFIXES.iter().find_map(|suffix| service.strip_suffix(suffix));
        let made_for = base.and_then(parent).filter(|_| kind != RayOwnerKind::Cluster);
        // The random end of a cluster's name is not known here, so the rest has to be enough.
        owns_service(kind, template, service)
            || made_for.is_some_and(|parent| parent == text(&template["metadata"]["name"]))
    })
}

fn is_of_cluster(cluster: &str, spec: &Value, service: &str) -> bool {
    is_of(cluster, service) || is_named(&spec["headGroupSpec"]["headService"], service)
}

/// Whether a Service has one of the names that follow from that of an object.
fn is_of(name: &str, service: &str) -> bool {
    !name.is_empty()
        && SUFFIXES.iter().any(|suffix| is_shortened(&format!("{name}{suffix}"), service))
}

fn is_shortened(full: &str, service: &str) -> bool {
    if full == service {
        return true;
    }
    let end = full.len().checked_sub(MAX_NAME).and_then(|start| full.get(start..));
    // The operator replaces a first character with which no name begins.
    end.is_some_and(|end| {
        let replaced = end.starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_punctuation());
        end == service || replaced && service.strip_prefix('r') == end.get(1..)
    })
}

fn is_named(template: &Value, service: &str) -> bool {
    template["metadata"]["name"] == service
}

fn is_reported(cluster_status: &Value, service: &str) -> bool {
    cluster_status["head"]["serviceName"] == service
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_name_of_a_service_gives_its_owners() {
        let names = |service: &str| -> Vec<String> {
            let all = owner_candidates(service).into_iter();
            all.map(|it| format!("{} {}", it.kind.plural(), it.name)).collect()
        };
        assert_eq!(names("c-head-svc"), ["rayclusters c", "rayjobs c", "rayservices c"]);
        let of_job = names("train-x7k2p-head-svc");
        assert_eq!(of_job[3..], ["rayjobs train", "rayservices train"]);
        assert_eq!(names("s-serve-svc").len(), 3);
        assert!(names("my-dashboard").is_empty() && names("-head-svc").is_empty());
    }

    #[test]
    fn an_object_owns_the_services_of_its_clusters() {
        use RayOwnerKind::{AppWrapper, Cluster, Job, Service};
        let cluster = json!({
            "metadata": {"name": "c"}, "status": {"head": {"serviceName": "reported"}},
            "spec": {"headGroupSpec": {"headService": {"metadata": {"name": "own"}}}},
        });
        let long = json!({"metadata": {"name": format!("a1{}", "b".repeat(50))}});
        let job = json!({
            "metadata": {"name": "train"}, "status": {"rayClusterName": "train-x7k2p"},
        });
        let service = json!({
            "metadata": {"name": "s"}, "spec": {"serveService": {"metadata": {"name": "front"}}},
            "status": {
                "activeServiceStatus": {"rayClusterName": "s-aaaaa"},
                "pendingServiceStatus": {"rayClusterName": "s-bbbbb"},
            },
        });
        let template = json!({"kind": "RayJob", "metadata": {"name": "train"}});
        let other = json!({"kind": "Job", "metadata": {"name": "plain"}});
        let components = json!([{"template": template}, {"template": other}]);
        let wrapper = json!({"metadata": {"name": "w"}, "spec": {"components": components}});
        let shortened = format!("{}-head-svc", "b".repeat(41));
        for (kind, object, name, expected) in [
            (Cluster, &cluster, "c-head-svc", true),
            (Cluster, &cluster, "c-serve-svc", true),
            (Cluster, &cluster, "c-headless", true),
            (Cluster, &cluster, "own", true),
            (Cluster, &cluster, "reported", true),
            (Cluster, &cluster, "d-head-svc", false),
            (Cluster, &long, shortened.as_str(), true),
            (Job, &job, "train-head-svc", true),
            (Job, &job, "train-x7k2p-head-svc", true),
            (Job, &job, "train-yyyyy-head-svc", false),
            (Service, &service, "s-serve-svc", true),
            (Service, &service, "front", true),
            (Service, &service, "s-bbbbb-head-svc", true),
            (Service, &service, "s-ccccc-head-svc", false),
            (AppWrapper, &wrapper, "train-head-svc", true),
            (AppWrapper, &wrapper, "train-x7k2p-head-svc", true),
            (AppWrapper, &wrapper, "plain-head-svc", false),
            (AppWrapper, &wrapper, "w-head-svc", false),
        ] {
            assert_eq!(owns_service(kind, object, name), expected, "{kind:?} {name}");
        }
    }
}
