//! Which pods belong to a Workload: those whose controllers lead to an owner of it, by their uids.
//!
//! Labels and annotations are copied from templates, and any pod can bear them, so that they prove nothing. They only exclude: a pod that
//! names another Workload costs no search. An owner is read, and counts only if it has the uid that the reference says.

use std::collections::BTreeSet;

use crds::{
    meta::annotation,
    names::{
        annotations::{WORKLOAD, WORKLOAD_SLICE_NAME},
        labels::POD_GROUP_NAME,
    },
    v1beta2::Workload,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{
    call::is_name,
    observed::{controller, label, name_of},
};

/// The owners of a Workload, on the cluster that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodOwners {
    names: BTreeSet<String>,
    uids: BTreeSet<String>,
}

/// What is known about a pod, or about an owner of it.
#[derive(Debug, Clone, PartialEq)]
pub enum PodBelonging {
    /// It belongs to the Workload.
    Own,
    /// It does not.
    Foreign,
    /// It does if this owner, which has to be read, does.
    As(OwnerReference),
}

impl PodOwners {
    /// The owners of a Workload, as the cluster that runs it has it.
    #[must_use]
    pub fn of(workload: &Workload) -> Self {
        let metadata = &workload.metadata;
        let slice = annotation(metadata, WORKLOAD_SLICE_NAME);
        let names = [name_of(metadata)].into_iter().chain(slice).map(str::to_owned).collect();
        let owners = metadata.owner_references.iter().flatten();
        let uids = owners.map(|owner| owner.uid.clone()).filter(|uid| !uid.is_empty()).collect();
        Self { names, uids }
    }

    /// Whether a pod belongs to the Workload.
    #[must_use]
    pub fn of_pod(&self, pod: &ObjectMeta) -> PodBelonging {
        if self.names_another(pod) {
            return PodBelonging::Foreign;
        }
        match &pod.uid {
            // The pod is the job itself, alone or in a group.
            Some(uid) if self.uids.contains(uid) => PodBelonging::Own,
            _ => self.above(pod),
        }
    }

    /// Whether an owner belongs to the Workload, now that it was read. `None` if it does not exist.
    #[must_use]
    pub fn of_owner(&self, owner: &OwnerReference, read: Option<&ObjectMeta>) -> PodBelonging {
        match read {
            // Another object with the name of the owner is not the owner.
            Some(metadata) if metadata.uid.as_ref() == Some(&owner.uid) => self.above(metadata),
            _ => PodBelonging::Foreign,
        }
    }

    fn above(&self, metadata: &ObjectMeta) -> PodBelonging {
        match controller(metadata) {
            None => PodBelonging::Foreign,
            Some(owner) if self.uids.contains(&owner.uid) => PodBelonging::Own,
            Some(owner) => PodBelonging::As(owner.clone()),
        }
    }

    /// Slices of one job share pods, which name the slice that started them, or the first one.
    fn names_another(&self, pod: &ObjectMeta) -> bool {
        let group = label(pod, POD_GROUP_NAME);
        let slices = [WORKLOAD, WORKLOAD_SLICE_NAME].map(|key| annotation(pod, key));
        let is_other = |name: &&str| !self.names.contains(*name);
        let mut named = slices.into_iter().flatten().peekable();
        group.as_ref().is_some_and(is_other)
            || (named.peek().is_some() && named.all(|name| is_other(&name)))
    }
}

/// The path of an owner; `None` if the reference names none. Its texts come from a worker.
#[must_use]
pub fn owner_path(namespace: &str, owner: &OwnerReference) -> Option<String> {
    let base = match owner.api_version.split_once('/') {
        Some((group, version)) if is_name(group) && is_name(version) => {
            format!("/apis/{group}/{version}")
        }
        None if is_name(&owner.api_version) => format!("/api/{}", owner.api_version),
        _ => return None,
    };
    let plural = plural(&owner.kind);
    (is_name(&plural) && is_name(&owner.name))
        .then(|| format!("{base}/namespaces/{namespace}/{plural}/{}", owner.name))
}

/// The plural name of a kind, by the rule that all kinds between a job and its pods follow.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.ends_with(['s', 'x']) {
        true => format!("{kind}es"),
        false => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn metadata(value: Value) -> ObjectMeta {
        serde_json::from_value(value).expect("metadata")
    }

    fn owners(of: &[&str]) -> PodOwners {
        let references: Vec<Value> = of
            .iter()
            .map(|uid| json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid}))
            .collect();
        let workload = json!({
            "metadata": {
                "name": "w", "ownerReferences": references,
                "annotations": {"kueue.x-k8s.io/workload-slice-name": "w-1"},
            },
            "spec": {},
        });
        PodOwners::of(&serde_json::from_value(workload).expect("a Workload"))
    }

    fn owned_by(kind: &str, uid: &str, annotations: &Value) -> ObjectMeta {
        metadata(json!({
            "name": "p", "uid": "pod", "annotations": annotations,
            "labels": {
                "kueue.x-k8s.io/podset": "main",
                "kueue.x-k8s.io/multikueue-worker-workload-pod": "true",
                "kueue.x-k8s.io/multikueue-origin": "multikueue",
                "kueue.x-k8s.io/prebuilt-workload-name": "w",
            },
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": uid, "controller": true},
            ],
        }))
    }

    #[test]
    fn a_pod_with_copied_labels_is_foreign_without_an_owner_of_the_workload() {
        let own = json!({"kueue.x-k8s.io/workload": "w"});
        let mut pod = owned_by("Job", "job-1", &own);
        let owners = owners(&["job-1"]);
        assert_eq!(owners.of_pod(&pod), PodBelonging::Own);
        pod.owner_references = None;
        assert_eq!(owners.of_pod(&pod), PodBelonging::Foreign);
        // An owner that is no controller started nothing.
        let mut pod = owned_by("Job", "job-1", &json!({}));
        pod.owner_references.iter_mut().flatten().for_each(|one| one.controller = None);
        assert_eq!(owners.of_pod(&pod), PodBelonging::Foreign);
    }

    #[test]
    fn a_workload_without_owners_has_no_pods() {
        let pod = owned_by("Job", "", &json!({}));
        let none = owners(&[""]);
        assert!(matches!(none.of_pod(&pod), PodBelonging::As(_)), "an empty uid is that of none");
    }

    #[test]
    fn a_chain_of_owners_is_followed_by_uids() {
        let owners = owners(&["job-1"]);
        let PodBelonging::As(owner) = owners.of_pod(&owned_by("ReplicaSet", "set-1", &json!({})))
        else {
            panic!("the set has to be read");
        };
        let set = |uid: &str, above: &str| {
            let mut set = owned_by("Job", above, &json!({}));
            set.uid = Some(uid.to_owned());
            set
        };
        assert_eq!(owners.of_owner(&owner, Some(&set("set-1", "job-1"))), PodBelonging::Own);
        let of_another = owners.of_owner(&owner, Some(&set("set-1", "job-2")));
        assert!(matches!(of_another, PodBelonging::As(next) if next.uid == "job-2"));
        let recreated = owners.of_owner(&owner, Some(&set("set-2", "job-1")));
        assert_eq!(recreated, PodBelonging::Foreign, "another object of the name");
        assert_eq!(owners.of_owner(&owner, None), PodBelonging::Foreign);
    }

    #[test]
    fn a_pod_that_is_a_job_belongs_by_its_own_uid() {
        let pod = owned_by("ReplicaSet", "set-1", &json!({}));
        assert_eq!(owners(&["pod"]).of_pod(&pod), PodBelonging::Own);
    }

    #[test]
    fn a_pod_that_names_another_workload_is_not_searched_for() {
        let owners = owners(&["job-1"]);
        for (annotations, expected) in [
            (json!({"kueue.x-k8s.io/workload": "v"}), PodBelonging::Foreign),
            (json!({"kueue.x-k8s.io/workload": "w"}), PodBelonging::Own),
            // A later slice of the same job.
            (
                json!({
                    "kueue.x-k8s.io/workload": "w-2", "kueue.x-k8s.io/workload-slice-name": "w-1",
                }),
                PodBelonging::Own,
            ),
        ] {
            let pod = owned_by("Job", "job-1", &annotations);
            assert_eq!(owners.of_pod(&pod), expected, "{annotations}");
        }
        // Another replica of the same set.
        let mut pod = owned_by("Job", "job-1", &json!({}));
        let labels = pod.labels.get_or_insert_default();
        labels.insert("kueue.x-k8s.io/pod-group-name".to_owned(), "v".to_owned());
        assert_eq!(owners.of_pod(&pod), PodBelonging::Foreign);
    }

    #[test]
    fn an_owner_has_a_path_if_its_reference_is_one() {
        let path = |api_version: &str, kind: &str, name: &str| {
            let owner = OwnerReference {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
                ..OwnerReference::default()
            };
            owner_path("ml", &owner)
        };
        let at = |path: &str| Some(path.to_owned());
        assert_eq!(path("v1", "Pod", "a"), at("/api/v1/namespaces/ml/pods/a"));
        assert_eq!(
            path("ray.io/v1", "RayCluster", "a-b.c"),
            at("/apis/ray.io/v1/namespaces/ml/rayclusters/a-b.c")
        );
        for (api_version, kind, name) in [
            ("v1", "Pod", "../../secrets/a"),
            ("v1", "Pod/../secret", "a"),
            ("../v1", "Pod", "a"),
            ("a/b/c", "Pod", "a"),
            ("", "Pod", "a"),
            ("v1", "", ""),
        ] {
            assert_eq!(path(api_version, kind, name), None, "{api_version} {kind} {name}");
        }
    }
}
