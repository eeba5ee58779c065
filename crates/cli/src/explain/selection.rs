//! Which Workloads a name on the command line means.

use std::str::FromStr;

use crds::{
    names::annotations::{JOB_OWNER_GVK, JOB_OWNER_NAME},
    v1beta2::Workload,
};

/// `NAME`, or `KIND/NAME` in any case, with or without a plural.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadQuery {
    kind: Option<String>,
    name: String,
}

/// A name that selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither NAME nor KIND/NAME")]
pub struct NameParseFailure(String);

impl FromStr for WorkloadQuery {
    type Err = NameParseFailure;

    fn from_str(text: &str) -> Result<Self, NameParseFailure> {
        let (kind, name) = match text.split_once('/') {
            None => (None, text),
            Some((kind, name)) if !kind.is_empty() => (Some(kind), name),
            Some(_) => return Err(NameParseFailure(text.to_owned())),
        };
        if name.is_empty() || name.contains('/') {
            return Err(NameParseFailure(text.to_owned()));
        }
        Ok(Self { kind: kind.map(str::to_lowercase), name: name.to_owned() })
    }
}

impl WorkloadQuery {
    /// The name without a kind.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it names an object of this kind, with its kind.
    #[must_use]
    pub fn names(&self, kind: &str) -> bool {
        self.kind.is_some() && self.may_be(kind)
    }

    /// Whether it may name an object of this kind.
    #[must_use]
    pub fn may_be(&self, kind: &str) -> bool {
        let singular = kind.to_lowercase();
        self.kind.as_ref().is_none_or(|asked| {
            // `job.batch`, `jobs`, `jobs.batch`: what kubectl accepts.
            let asked = asked.split('.').next().unwrap_or_default();
            let plural = asked.strip_suffix('s');
            asked == singular
                || plural == Some(&singular)
                || (singular == "workload" && asked == "wl")
        })
    }
}

/// The Workloads of this name, and those of jobs of this name. A Workload by its own name comes first.
#[must_use]
pub fn workloads_of<'a>(name: &WorkloadQuery, workloads: &'a [Workload]) -> Vec<&'a Workload> {
    let own = |one: &&Workload| {
        name.may_be("Workload") && one.metadata.name.as_deref() == Some(name.name())
    };
    let of_job = |one: &&Workload| {
        !own(one) && owners(one).any(|(kind, owner)| owner == name.name() && name.may_be(kind))
    };
    workloads.iter().filter(own).chain(workloads.iter().filter(of_job)).collect()
}

/// Kind and name of the jobs of a Workload.
pub(super) fn owners(workload: &Workload) -> impl Iterator<Item = (&str, &str)> {
    let references = workload.metadata.owner_references.iter().flatten();
    let references = references.map(|one| (one.kind.as_str(), one.name.as_str()));
    let annotation = |key: &str| workload.metadata.annotations.as_ref()?.get(key);
    // A job that cannot own its Workload, such as one on another cluster, is named by annotations: group/version, Kind=NAME.
    let named = annotation(JOB_OWNER_NAME).map(|name| {
        let gvk = annotation(JOB_OWNER_GVK).map(String::as_str).unwrap_or_default();
        (gvk.rsplit_once("Kind=").map_or("Job", |(_, kind)| kind), name.as_str())
    });
    references.chain(named)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(name: &str, kind: &str, owner: &str) -> Workload {
        serde_json::from_value(json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {"name": name, "ownerReferences": [
                {"apiVersion": "v1", "kind": kind, "name": owner, "uid": "u"},
            ]},
        }))
        .expect("a Workload")
    }

    fn selected(name: &str) -> Vec<String> {
        let all = [
            workload("job-train-1", "Job", "train"),
            workload("train", "JobSet", "other"),
            workload("jobset-train-2", "JobSet", "train"),
        ];
        let name = name.parse().expect("a name");
        workloads_of(&name, &all).iter().filter_map(|one| one.metadata.name.clone()).collect()
    }

    #[test]
    fn a_name_means_a_workload_and_the_workloads_of_jobs() {
        assert_eq!(selected("train"), ["train", "job-train-1", "jobset-train-2"]);
        for name in ["job/train", "Jobs/train", "jobs.batch/train"] {
            assert_eq!(selected(name), ["job-train-1"], "{name}");
        }
        assert_eq!(selected("wl/train"), ["train"]);
        assert_eq!(selected("workload/job-train-1"), ["job-train-1"]);
        assert!(selected("pod/train").is_empty());
        let names_pod = |name: &str| name.parse::<WorkloadQuery>().expect(name).names("Pod");
        assert!(names_pod("pods/a") && !names_pod("a") && !names_pod("job/a"));
    }

    #[test]
    fn a_name_with_empty_parts_is_refused() {
        for name in ["", "/train", "job/", "a/b/c"] {
            assert!(name.parse::<WorkloadQuery>().is_err(), "{name}");
        }
    }
}
