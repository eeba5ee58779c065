//! Which pods belong to a Workload: the controllers of each lead to a job of it.
//!
//! Labels and annotations of pods are copied from templates, and any pod can bear them, so that they prove nothing. They only exclude: a
//! pod that names another Workload costs no search. An owner is read, and counts only if it has the uid that the reference says.
//!
//! The jobs of a Workload are its owners on the manager cluster. There their uids are known. On a worker they have copies of the same kind
//! and name, which the manager has marked with its origin and with what they are copies of; a clone has no owners.

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    meta::{annotation, controller, label},
    names::{
        annotations::{MULTI_KUEUE_ORIGIN_UID, WORKLOAD, WORKLOAD_SLICE_NAME, WORKLOAD_UID},
        labels::{MULTI_KUEUE_ORIGIN, POD_GROUP_NAME, PREBUILT_WORKLOAD_NAME},
    },
    plural::guessed_plural,
    v1beta2::Workload,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{call::is_name, observed::name_of};

/// The jobs of a Workload, as a cluster has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadOwners {
    /// The Workload, and the first slice of its chain.
    names: BTreeSet<String>,
    /// The uids on the manager cluster, by group, kind and name.
    jobs: BTreeMap<JobIdentity, String>,
    /// What marks copies on a worker; `None` on the manager cluster.
    copies: Option<CopyMark>,
}

/// Group, kind and name of a job. Clusters may serve different versions.
type JobIdentity = (String, String, String);

/// What the copies of a Workload's jobs say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CopyMark {
    origin: String,
    workload: String,
    workload_uid: Option<String>,
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

impl WorkloadOwners {
    /// On the manager cluster.
    #[must_use]
    pub fn at_home(workload: &Workload) -> Self {
        let metadata = &workload.metadata;
        let slice = annotation(metadata, WORKLOAD_SLICE_NAME);
        let names = [name_of(metadata)].into_iter().chain(slice).map(str::to_owned).collect();
        let owners = metadata.owner_references.iter().flatten();
        let owners = owners.filter(|owner| !owner.uid.is_empty());
        let jobs = owners.map(|owner| (identity(owner), owner.uid.clone())).collect();
        Self { names, jobs, copies: None }
    }

    /// On a worker of the manager with this origin, for a Workload as the manager cluster has it.
    #[must_use]
    pub fn on_worker(workload: &Workload, origin: &str) -> Self {
        let copies = CopyMark {
            origin: origin.to_owned(),
            workload: name_of(&workload.metadata).to_owned(),
            workload_uid: workload.metadata.uid.clone(),
        };
        Self { copies: Some(copies), ..Self::at_home(workload) }
    }

    /// Whether a pod belongs to the Workload.
    #[must_use]
    pub fn of_pod(&self, pod: &ObjectMeta) -> PodBelonging {
        if self.names_another(pod) {
            return PodBelonging::Foreign;
        }
        // The pod is the job itself, alone or in a group.
        let identity = (String::new(), "Pod".to_owned(), name_of(pod).to_owned());
        if self.is_job(&identity, pod) { PodBelonging::Own } else { self.above(pod) }
    }

    /// Whether an owner belongs to the Workload, now that it was read. `None` if it does not exist.
    #[must_use]
    pub fn of_owner(&self, owner: &OwnerReference, read: Option<&ObjectMeta>) -> PodBelonging {
        match read {
            // Another object with the name of the owner is not the owner.
            Some(metadata) if metadata.uid.as_ref() == Some(&owner.uid) => {
                if self.is_job(&identity(owner), metadata) {
                    PodBelonging::Own
                } else {
                    self.above(metadata)
                }
            }
            _ => PodBelonging::Foreign,
        }
    }

    fn above(&self, metadata: &ObjectMeta) -> PodBelonging {
        match controller(metadata) {
            None => PodBelonging::Foreign,
            // On the manager cluster the reference has the uid that is wanted.
            Some(owner)
                if self.copies.is_none() && self.jobs.values().any(|it| *it == owner.uid) =>
            {
                PodBelonging::Own
            }
            Some(owner) => PodBelonging::As(owner.clone()),
        }
    }

    /// Whether an object is a job of the Workload, or the copy of one.
    fn is_job(&self, identity: &JobIdentity, metadata: &ObjectMeta) -> bool {
        let Some(uid) = self.jobs.get(identity) else { return false };
        match &self.copies {
            None => metadata.uid.as_ref() == Some(uid),
            Some(mark) => mark.is_copy(uid, metadata),
        }
    }

    /// Whether a pod says that it belongs to the Workload, which proves nothing.
    #[must_use]
    pub fn is_named_by(&self, pod: &ObjectMeta) -> bool {
        let slices = [WORKLOAD, WORKLOAD_SLICE_NAME].map(|key| annotation(pod, key));
        let mut names = slices.into_iter().chain([label(pod, POD_GROUP_NAME)]).flatten();
        names.any(|name| self.names.contains(name))
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

impl CopyMark {
    /// Whether an object with the kind and name of the job is its copy. What it says about the job or the Workload has to be true, and
    /// it has to say something: a uid is known to those only that see the job.
    fn is_copy(&self, job_uid: &str, metadata: &ObjectMeta) -> bool {
        let prebuilt = annotation(metadata, PREBUILT_WORKLOAD_NAME)
            .or_else(|| label(metadata, PREBUILT_WORKLOAD_NAME));
        let said = [
            (annotation(metadata, WORKLOAD_UID), self.workload_uid.as_deref()),
            (annotation(metadata, MULTI_KUEUE_ORIGIN_UID), Some(job_uid)),
            (prebuilt, Some(&*self.workload)),
        ];
        let is_true = said.iter().all(|(said, truth)| said.is_none() || said == truth);
        let says_something = said.iter().any(|(said, _)| said.is_some());
        // An object with a controller is no copy, whatever labels its operator has copied.
        let of_manager = label(metadata, MULTI_KUEUE_ORIGIN) == Some(&*self.origin);
        of_manager && is_true && says_something && controller(metadata).is_none()
    }
}

fn identity(owner: &OwnerReference) -> JobIdentity {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    (group.to_owned(), owner.kind.clone(), owner.name.clone())
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
    let plural = guessed_plural(&owner.kind);
    (is_name(&plural) && is_name(&owner.name))
        .then(|| format!("{base}/namespaces/{namespace}/{plural}/{}", owner.name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn metadata(value: &Value) -> ObjectMeta {
        serde_json::from_value(value.clone()).expect("metadata")
    }

    /// A Workload of the Job `j` and the pod `member`, or of neither.
    fn workload(job_uid: &str) -> Workload {
        let owner = |api_version: &str, kind: &str, name: &str, uid: &str| json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid});
        let workload = json!({
            "metadata": {
                "name": "w", "uid": "w-uid",
                "ownerReferences": [
                    owner("batch/v1", "Job", "j", job_uid), owner("v1", "Pod", "member", "pod-uid"),
                ],
                "annotations": {"kueue.x-k8s.io/workload-slice-name": "w-1"},
            },
            "spec": {},
        });
        serde_json::from_value(workload).expect("a Workload")
    }

    fn at_home() -> WorkloadOwners {
        WorkloadOwners::at_home(&workload("job-1"))
    }

    fn on_worker() -> WorkloadOwners {
        WorkloadOwners::on_worker(&workload("job-1"), "multikueue")
    }

    /// The marks of a copy, which a template may carry as well.
    fn marks() -> Value {
        json!({
            "labels": {
                "kueue.x-k8s.io/podset": "main",
                "kueue.x-k8s.io/multikueue-worker-workload-pod": "true",
                "kueue.x-k8s.io/multikueue-origin": "multikueue",
            },
            "annotations": {
                "kueue.x-k8s.io/workload": "w", "sluice.dev/workload-uid": "w-uid",
                "kueue.x-k8s.io/prebuilt-workload-name": "w",
            },
        })
    }

    fn owned(by: Option<(&str, &str, &str)>) -> ObjectMeta {
        let mut pod = marks();
        pod["name"] = json!("p");
        pod["uid"] = json!("p-uid");
        if let Some((kind, name, uid)) = by {
            let version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
            pod["ownerReferences"] = json!([
                {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true},
            ]);
        }
        metadata(&pod)
    }

    fn owner_to_read(owners: &WorkloadOwners, pod: &ObjectMeta) -> OwnerReference {
        match owners.of_pod(pod) {
            PodBelonging::As(owner) => owner,
            other => panic!("an owner has to be read: {other:?}"),
        }
    }

    #[test]
    fn a_pod_with_copied_labels_is_foreign_without_a_job_of_the_workload() {
        for owners in [at_home(), on_worker()] {
            assert_eq!(owners.of_pod(&owned(None)), PodBelonging::Foreign);
            // An owner that is no controller started nothing.
            let mut pod = owned(Some(("Job", "j", "job-1")));
            pod.owner_references.iter_mut().flatten().for_each(|one| one.controller = None);
            assert_eq!(owners.of_pod(&pod), PodBelonging::Foreign);
        }
    }

    #[test]
    fn on_the_manager_cluster_uids_of_jobs_count() {
        let owners = at_home();
        assert_eq!(owners.of_pod(&owned(Some(("Job", "j", "job-1")))), PodBelonging::Own);
        let another = owner_to_read(&owners, &owned(Some(("Job", "j", "job-2"))));
        let job = metadata(&json!({"name": "j", "uid": "job-2"}));
        assert_eq!(owners.of_owner(&another, Some(&job)), PodBelonging::Foreign);
        let member = metadata(&json!({"name": "member", "uid": "pod-uid"}));
        assert_eq!(owners.of_pod(&member), PodBelonging::Own);
        let recreated = metadata(&json!({"name": "member", "uid": "another"}));
        assert_eq!(owners.of_pod(&recreated), PodBelonging::Foreign);
    }

    #[test]
    fn a_workload_without_jobs_has_no_pods() {
        let owners = WorkloadOwners::at_home(&workload(""));
        let pod = owned(Some(("Job", "j", "")));
        assert!(matches!(owners.of_pod(&pod), PodBelonging::As(_)), "an empty uid is that of none");
    }

    #[test]
    fn on_a_worker_the_copy_of_a_job_counts() {
        let owners = on_worker();
        let owner = owner_to_read(&owners, &owned(Some(("Job", "j", "copy"))));
        let copy = |change: &dyn Fn(&mut Value)| {
            let mut copy = marks();
            copy["uid"] = json!("copy");
            change(&mut copy);
            owners.of_owner(&owner, Some(&metadata(&copy)))
        };
        assert_eq!(copy(&|_| {}), PodBelonging::Own);
        let origin = "kueue.x-k8s.io/multikueue-origin";
        assert_eq!(copy(&|it| it["labels"][origin] = json!("other")), PodBelonging::Foreign);
        assert_eq!(copy(&|it| it["uid"] = json!("recreated")), PodBelonging::Foreign);
        for (annotation, value) in [
            ("sluice.dev/workload-uid", "of-a-former-one"),
            ("kueue.x-k8s.io/prebuilt-workload-name", "another"),
            ("kueue.x-k8s.io/multikueue-origin-uid", "another"),
        ] {
            let said = copy(&|it| it["annotations"][annotation] = json!(value));
            assert_eq!(said, PodBelonging::Foreign, "{annotation}");
        }
        assert_eq!(copy(&|it| it["annotations"] = json!({})), PodBelonging::Foreign, "no mark");
        // A child with the labels of its owner, and the name of the job.
        let controller = json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "a",
                                 "controller": true}]);
        let child = copy(&|it| it["ownerReferences"] = controller.clone());
        assert!(matches!(child, PodBelonging::As(_)), "{child:?}");
        // A job with another name is none of the Workload, whatever it says.
        let other = owner_to_read(&owners, &owned(Some(("Job", "mine", "copy"))));
        let mut mine = marks();
        mine["uid"] = json!("copy");
        assert_eq!(owners.of_owner(&other, Some(&metadata(&mine))), PodBelonging::Foreign);
    }

    #[test]
    fn a_copy_of_a_pod_counts_by_itself() {
        let mut member = marks();
        member["name"] = json!("member");
        member["uid"] = json!("uid-on-the-worker");
        assert_eq!(on_worker().of_pod(&metadata(&member)), PodBelonging::Own);
        member["labels"] = json!({});
        assert_eq!(on_worker().of_pod(&metadata(&member)), PodBelonging::Foreign);
    }

    #[test]
    fn a_chain_of_owners_is_followed_by_uids() {
        let owners = on_worker();
        let owner = owner_to_read(&owners, &owned(Some(("ReplicaSet", "s", "set-1"))));
        let set = |uid: &str| {
            let mut set = owned(Some(("Job", "j", "copy")));
            set.uid = Some(uid.to_owned());
            set
        };
        let above = owners.of_owner(&owner, Some(&set("set-1")));
        assert!(matches!(above, PodBelonging::As(job) if job.uid == "copy"));
        let recreated = owners.of_owner(&owner, Some(&set("set-2")));
        assert_eq!(recreated, PodBelonging::Foreign, "another object of the name");
        assert_eq!(owners.of_owner(&owner, None), PodBelonging::Foreign);
    }

    #[test]
    fn a_pod_that_names_another_workload_is_not_searched_for() {
        let owners = at_home();
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
            let mut pod = owned(Some(("Job", "j", "job-1")));
            pod.annotations = serde_json::from_value(annotations.clone()).expect("annotations");
            assert_eq!(owners.of_pod(&pod), expected, "{annotations}");
            assert_eq!(owners.is_named_by(&pod), expected == PodBelonging::Own);
        }
        // Another replica of the same set.
        let mut pod = owned(Some(("Job", "j", "job-1")));
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
        assert_eq!(
            path("example.com/v1", "Study", "a"),
            at("/apis/example.com/v1/namespaces/ml/studies/a")
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
