//! Integrations: the known job kinds, and the managed ones (docs/reference/kueue.md §7.1, §7.3 row 0e).
//!
//! A kind is *known* if Kueue has an integration for it, enabled or not: the ancestor search passes through it. A
//! kind is *managed* if its integration is enabled, or if the configuration lists it as an external framework.

use std::{borrow::Cow, collections::BTreeSet};

pub use crds::meta::controller;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::{Gvk, Kinds, Pod, pods::pod};

/// Integration of a job kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integration {
    /// Name in the configuration.
    pub name: &'static str,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural resource name.
    pub plural: &'static str,
}

macro_rules! frameworks {
    ($($name:literal $group:literal $version:literal $kind:literal $plural:literal)*) => {
        /// All integrations.
        pub const INTEGRATIONS: &[Integration] = &[$(Integration {
            name: $name, group: $group, version: $version, kind: $kind, plural: $plural,
        }),*];
    };
}

#[rustfmt::skip]
frameworks! {
    "batch/job" "batch" "v1" "Job" "jobs"
    "jobset.x-k8s.io/jobset" "jobset.x-k8s.io" "v1alpha2" "JobSet" "jobsets"
    "kubeflow.org/mpijob" "kubeflow.org" "v2beta1" "MPIJob" "mpijobs"
    "kubeflow.org/paddlejob" "kubeflow.org" "v1" "PaddleJob" "paddlejobs"
    "kubeflow.org/pytorchjob" "kubeflow.org" "v1" "PyTorchJob" "pytorchjobs"
    "kubeflow.org/tfjob" "kubeflow.org" "v1" "TFJob" "tfjobs"
    "kubeflow.org/xgboostjob" "kubeflow.org" "v1" "XGBoostJob" "xgboostjobs"
    "kubeflow.org/jaxjob" "kubeflow.org" "v1" "JAXJob" "jaxjobs"
    "trainer.kubeflow.org/trainjob" "trainer.kubeflow.org" "v1alpha1" "TrainJob" "trainjobs"
    "ray.io/rayjob" "ray.io" "v1" "RayJob" "rayjobs"
    "ray.io/raycluster" "ray.io" "v1" "RayCluster" "rayclusters"
    "ray.io/rayservice" "ray.io" "v1" "RayService" "rayservices"
    "workload.codeflare.dev/appwrapper" "workload.codeflare.dev" "v1beta2" "AppWrapper" "appwrappers"
    "sparkoperator.k8s.io/sparkapplication" "sparkoperator.k8s.io" "v1beta2" "SparkApplication" "sparkapplications"
    "pod" "" "v1" "Pod" "pods"
    "deployment" "apps" "v1" "Deployment" "deployments"
    "statefulset" "apps" "v1" "StatefulSet" "statefulsets"
    "leaderworkerset.x-k8s.io/leaderworkerset" "leaderworkerset.x-k8s.io" "v1" "LeaderWorkerSet" "leaderworkersets"
}

/// Name of the batch/v1 Job integration.
pub const BATCH_JOB: &str = "batch/job";

/// Owner between a Deployment and its pods; the ancestor search passes through it.
const REPLICA_SET: Integration = Integration {
    name: "",
    group: "apps",
    version: "v1",
    kind: "ReplicaSet",
    plural: "replicasets",
};

/// Integrations that manage pods one by one: enabling one enables the pod integration.
const OF_PODS: &[&str] = &["deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"];

/// Integrations that none of these kinds is.
pub fn missing_from(kinds: &Kinds) -> impl Iterator<Item = &'static Integration> {
    INTEGRATIONS.iter().filter(|one| kinds.of_framework(one.name).is_none())
}

impl Integration {
    /// Group and version in the form of an object's `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        Gvk::api_version_of(self.group, self.version)
    }

    /// Path of a webhook; `verb` is `mutate` or `validate`.
    #[must_use]
    pub fn webhook_path(&self, verb: &str) -> String {
        webhook_path(verb, self.group, self.version, self.kind)
    }
}

/// Group, version, kind and resource of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerKind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural resource name; `None` for an external framework that discovery has not shown.
    pub plural: Option<Cow<'static, str>>,
}

impl OwnerKind {
    /// The kind as configurations name it: `Kind.version.group`.
    #[must_use]
    pub fn framework(&self) -> String {
        let Self { group, version, kind, .. } = self;
        format!("{kind}.{version}.{group}")
    }
}

/// The managed job kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedKinds {
    enabled: BTreeSet<&'static str>,
    external: Vec<OwnerKind>,
    /// Only the integration of a controller of pods enables that of pods.
    pods_of_parents: bool,
}

impl ManagedKinds {
    /// Reads the configuration: integration names, and external frameworks as `Kind.version.group`. Unknown names are
    /// ignored; the configuration refuses them.
    #[must_use]
    pub fn new(frameworks: &[String], external: &[String]) -> Self {
        let named =
            INTEGRATIONS.iter().filter(|one| frameworks.iter().any(|name| name == one.name));
        let mut enabled: BTreeSet<&'static str> = named.map(|one| one.name).collect();
        // Their webhooks only mark the pods, which the pod integration manages
        // (docs/reference/kueue.md §7.1, §7.8).
        let of_parents = OF_PODS.iter().any(|name| enabled.contains(name));
        let pods_of_parents = of_parents && enabled.insert(pod::FRAMEWORK);
        let external = external.iter().filter_map(|name| external_kind(name)).collect();
        Self { enabled, external, pods_of_parents }
    }

    /// With further kinds that are managed: those that the administrator declares.
    #[must_use]
    pub fn with(mut self, kinds: &Kinds) -> Self {
        self.external.extend(kinds.iter().map(|kind| OwnerKind {
            group: kind.group().to_owned(),
            version: kind.version().to_owned(),
            kind: kind.name().to_owned(),
            plural: Some(kind.plural().to_owned().into()),
        }));
        self
    }

    /// The external frameworks without a known name of their resource.
    pub fn undiscovered(&self) -> impl Iterator<Item = &OwnerKind> {
        self.external.iter().filter(|one| one.plural.is_none())
    }

    /// The same with the names of resources that `plural` knows of external frameworks.
    #[must_use]
    pub fn with_plurals(mut self, plural: impl Fn(&OwnerKind) -> Option<String>) -> Self {
        for one in self.external.iter_mut().filter(|one| one.plural.is_none()) {
            one.plural = plural(one).map(Into::into);
        }
        self
    }

    /// Whether an integration is enabled.
    #[must_use]
    pub fn is_enabled(&self, framework: &str) -> bool {
        self.enabled.contains(framework)
    }

    /// Whether a pod is managed only if its parent suspends it, and this one is not suspended by any
    /// (docs/reference/kueue.md §7.1).
    #[must_use]
    pub fn leaves_alone(&self, pod: &Pod) -> bool {
        self.pods_of_parents && !pod.has_suspending_parent()
    }

    /// Whether the owner's kind is managed.
    #[must_use]
    pub fn manages(&self, owner: &OwnerReference) -> bool {
        let enabled = INTEGRATIONS.iter().filter(|one| self.enabled.contains(one.name));
        enabled.into_iter().any(|one| is_kind(owner, one))
            || self.external.iter().any(|one| is_owner_kind(owner, one))
    }

    /// The owner's kind, if it is known.
    #[must_use]
    pub fn owner_kind(&self, owner: &OwnerReference) -> Option<OwnerKind> {
        let built_in = INTEGRATIONS.iter().chain([&REPLICA_SET]).find(|one| is_kind(owner, one));
        let built_in = built_in.map(|one| OwnerKind {
            group: one.group.to_owned(),
            version: one.version.to_owned(),
            kind: one.kind.to_owned(),
            plural: Some(one.plural.into()),
        });
        built_in.or_else(|| self.external.iter().find(|one| is_owner_kind(owner, one)).cloned())
    }
}

fn is_kind(owner: &OwnerReference, framework: &Integration) -> bool {
    owner.kind == framework.kind && owner.api_version == framework.api_version()
}

fn is_owner_kind(owner: &OwnerReference, kind: &OwnerKind) -> bool {
    owner.kind == kind.kind && owner.api_version == Gvk::api_version_of(&kind.group, &kind.version)
}

/// Path of a webhook of a kind, as Kueue derives it.
pub(crate) fn webhook_path(verb: &str, group: &str, version: &str, kind: &str) -> String {
    let group = group.replace('.', "-");
    format!("/{verb}-{group}-{version}-{}", kind.to_ascii_lowercase())
}

/// Parses `Kind.version.group`.
fn external_kind(name: &str) -> Option<OwnerKind> {
    let mut parts = name.splitn(3, '.').map(str::to_owned);
    let (kind, version, group) = (parts.next()?, parts.next()?, parts.next()?);
    Some(OwnerKind { group, version, kind, plural: None })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn owner(api_version: &str, kind: &str) -> OwnerReference {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        OwnerReference { api_version, kind, ..OwnerReference::default() }
    }

    fn kinds(frameworks: &[&str]) -> ManagedKinds {
        let frameworks: Vec<String> = frameworks.iter().map(|name| (*name).to_owned()).collect();
        ManagedKinds::new(&frameworks, &["Train.v2.example.com".to_owned()])
    }

    #[test]
    fn webhook_paths_equal_those_of_kueue() {
        let path = |name: &str| {
            let one = INTEGRATIONS.iter().find(|one| one.name == name).expect("a framework");
            (one.webhook_path("mutate"), one.webhook_path("validate"))
        };
        let pair = |mutate: &str, validate: &str| (mutate.to_owned(), validate.to_owned());
        assert_eq!(path("batch/job"), pair("/mutate-batch-v1-job", "/validate-batch-v1-job"));
        assert_eq!(path("pod"), pair("/mutate--v1-pod", "/validate--v1-pod"));
        assert_eq!(
            path("jobset.x-k8s.io/jobset"),
            pair(
                "/mutate-jobset-x-k8s-io-v1alpha2-jobset",
                "/validate-jobset-x-k8s-io-v1alpha2-jobset"
            )
        );
    }

    #[test]
    fn a_managed_kind_is_known() {
        let kinds = kinds(&["batch/job"]);
        for (api_version, kind, managed, known) in [
            ("batch/v1", "Job", true, true),
            ("batch/v2", "Job", false, false),
            ("batch/v1", "CronJob", false, false),
            ("ray.io/v1", "RayJob", false, true),
            ("apps/v1", "ReplicaSet", false, true),
            ("v1", "Pod", false, true),
            ("example.com/v2", "Train", true, true),
            ("example.com/v1", "Train", false, false),
        ] {
            let owner = owner(api_version, kind);
            let found = (kinds.manages(&owner), kinds.owner_kind(&owner).is_some());
            assert_eq!(found, (managed, known), "{api_version} {kind}");
        }
    }

    #[test]
    fn integrations_of_pod_controllers_enable_the_pod_integration() {
        assert!(!kinds(&["batch/job"]).is_enabled("pod"));
        let pod = |annotations: serde_json::Value| -> Pod {
            let pod = serde_json::json!({ "metadata": { "annotations": annotations } });
            serde_json::from_value(pod).expect("a pod decodes")
        };
        let parent =
            pod(serde_json::json!({ "kueue.x-k8s.io/pod-suspending-parent": "deployment" }));
        let plain = pod(serde_json::json!({}));
        for name in OF_PODS {
            assert!(kinds(&[name]).is_enabled("pod"), "{name}");
            assert!(kinds(&[name]).leaves_alone(&plain) && !kinds(&[name]).leaves_alone(&parent));
            assert!(!kinds(&[name, "pod"]).leaves_alone(&plain), "enabled by name as well");
        }
    }

    #[test]
    fn the_resource_of_an_external_framework_has_the_name_that_is_known() {
        let train = owner("example.com/v2", "Train");
        let plural = |kinds: &ManagedKinds| kinds.owner_kind(&train).and_then(|one| one.plural);
        let unnamed = kinds(&[]);
        assert_eq!(plural(&unnamed), None);
        let names: Vec<String> = unnamed.undiscovered().map(OwnerKind::framework).collect();
        assert_eq!(names, ["Train.v2.example.com"]);
        let named = unnamed.with_plurals(|_| Some("rolling-stock".to_owned()));
        assert_eq!(plural(&named).as_deref(), Some("rolling-stock"));
        assert_eq!(named.undiscovered().count(), 0);
    }

    #[test]
    fn only_the_controller_reference_counts() {
        let mut metadata = ObjectMeta::default();
        assert_eq!(controller(&metadata), None);
        let plain = owner("batch/v1", "Job");
        let first = OwnerReference { controller: Some(true), ..owner("ray.io/v1", "RayJob") };
        metadata.owner_references = Some(vec![plain, first.clone()]);
        assert_eq!(controller(&metadata), Some(&first));
    }
}
