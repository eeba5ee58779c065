//! The size of an elastic job on a worker (docs/reference/multikueue.md §2.13).
//!
//! ```text
//! job of the manager 5 -> 3, its Workload 5 -> 3 (quota is free), clone 5 -> 3 (room is free), copy of the job 5 -> 3 (pods end)
//! ```
//! The clone comes first, so that a worker which refuses the size does so before a pod ends.
//!
//! ```text
//! job of the manager 3 -> 5, its next slice gets quota, clone of that slice is admitted, copy of the job 3 -> 5 and names that clone
//! ```
//! One write changes name and size, so that the copy never has more pods than the Workload that it names.

use crds::{
    meta::annotation,
    names::annotations::ELASTIC_JOB,
    template_defaults::{same_pod_set, same_pod_sets},
    v1beta2::{PodSet, Workload},
};
use serde_json::{Value, json};

use crate::{
    GenericJob, JobGates,
    group_sizes::GroupSizes,
    pod_counts::{count, n_pods, pods_of},
};

/// The size of a job, as far as its copies follow it.
#[derive(Clone, Debug, PartialEq)]
pub enum CopiedSize {
    /// That of a batch Job.
    Parallelism(JobParallelism),
    /// Groups of pods, a pod set each.
    Groups(GroupSizes),
}

impl CopiedSize {
    /// Whether another number of pods is another amount of work: each pod has an index of its own.
    #[must_use]
    pub fn is_amount_of_work(&self) -> bool {
        matches!(self, Self::Parallelism(job) if job.is_amount_of_work())
    }
}

/// The size of a batch Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobParallelism {
    /// Pods that run at the same time.
    pub parallelism: i32,
    /// Pods that must succeed.
    pub completions: Option<i32>,
    /// The API server takes other completions, if they equal the parallelism.
    pub resizable_completions: bool,
}

impl JobParallelism {
    /// Pods that the job has at most.
    #[must_use]
    pub fn pods(self) -> i32 {
        self.completions.map_or(self.parallelism, |completions| completions.min(self.parallelism))
    }

    fn is_amount_of_work(self) -> bool {
        self.resizable_completions && self.completions == Some(self.parallelism)
    }
}

/// Whether the copies of a job shrink with it.
pub fn shrinks_on_workers<J: GenericJob>(job: &J, gates: JobGates) -> bool {
    job.is_elastic(gates) && job.copied_size().is_some()
}

/// Whether a Workload or its clone is that of an elastic job.
#[must_use]
pub fn is_of_elastic_job(workload: &Workload) -> bool {
    annotation(&workload.metadata, ELASTIC_JOB) == Some("true")
}

/// The pod sets of the clone of an elastic job with the counts that are wanted, if these are smaller and nothing else differs.
#[must_use]
pub fn shrunk_pod_sets(clone: &Workload, wanted: &[PodSet]) -> Option<Vec<PodSet>> {
    if !is_of_elastic_job(clone) {
        return None;
    }
    let clone = &clone.spec.pod_sets;
    // A schema of another version on the worker may give templates other defaults.
    if clone.len() != wanted.len() || same_pod_sets(clone, wanted) {
        return None;
    }
    let shrunk = clone.iter().zip(wanted).map(|(set, wanted)| {
        let shrunk = PodSet { count: wanted.count, ..set.clone() };
        (same_pod_set(&shrunk, wanted) && count(wanted) <= count(set)).then_some(shrunk)
    });
    shrunk.collect()
}

/// The sizes of the copy of an elastic job, and of the job; `None` if it keeps its size on workers.
fn sizes<J: GenericJob>(copy: &J, job: &J, gates: JobGates) -> Option<(CopiedSize, CopiedSize)> {
    shrinks_on_workers(job, gates).then_some(())?;
    Some((copy.copied_size()?, job.copied_size()?))
}

/// Fields of the spec that shrink the copy of a job to the `granted` pods of its Workload; `None` if it is as small, or the Workload
/// has not followed its job yet.
pub fn size_to_push<J: GenericJob>(
    copy: &J,
    job: &J,
    granted: &[PodSet],
    gates: JobGates,
) -> Option<Value> {
    match sizes(copy, job, gates)? {
        (CopiedSize::Parallelism(now), CopiedSize::Parallelism(wanted)) => {
            fewer_at_a_time(now, wanted, n_pods(granted))
        }
        (CopiedSize::Groups(now), CopiedSize::Groups(wanted)) => {
            let target = |name: &str, now, wanted| shrunk(now, wanted, pods_of(granted, name));
            now.resized(&wanted, target)
        }
        // A copy is of the kind of its job.
        _ => None,
    }
}

/// Fields of the spec by which the copy of a job gets the `granted` pods of a later slice; none if it has them.
pub fn size_of_later_slice<J: GenericJob>(
    copy: &J,
    job: &J,
    granted: &[PodSet],
    gates: JobGates,
) -> Option<Value> {
    let size = match sizes(copy, job, gates)? {
        (CopiedSize::Parallelism(now), CopiedSize::Parallelism(wanted)) => {
            let granted = n_pods(granted);
            fewer_at_a_time(now, wanted, granted).or_else(|| {
                let pods = grown(now.pods(), wanted.pods(), granted);
                (now.pods() < pods).then(|| json!({ "parallelism": pods }))
            })
        }
        (CopiedSize::Groups(now), CopiedSize::Groups(wanted)) => {
            let target = |name: &str, now, wanted| {
                let granted = pods_of(granted, name);
                match shrunk(now, wanted, granted) {
                    pods if pods < now => pods,
                    _ => grown(now, wanted, granted),
                }
            };
            now.resized(&wanted, target)
        }
        _ => return None,
    };
    Some(size.unwrap_or_else(|| json!({})))
}

/// Fields that shrink the copy of a batch Job.
fn fewer_at_a_time(now: JobParallelism, wanted: JobParallelism, granted: i32) -> Option<Value> {
    if wanted.pods() < granted {
        return None;
    }
    let fewer =
        |completions: &i32| wanted.resizable_completions && Some(*completions) < now.completions;
    match wanted.completions.filter(fewer) {
        // Of two resizes on the manager only the last one may be seen. The API server takes them one after the other.
        Some(both) => Some(json!({ "parallelism": both, "completions": both })),
        None => (now.pods() > granted).then(|| json!({ "parallelism": granted })),
    }
}

/// Pods of a copy that shrinks to those of its Workload, once that has followed the job.
fn shrunk(now: i32, wanted: i32, granted: i32) -> i32 {
    if wanted < granted { now } else { now.min(granted) }
}

/// Pods of a copy that grows to those of a later slice. The job may have shrunk again, and its Workload follows.
fn grown(now: i32, wanted: i32, granted: i32) -> i32 {
    now.max(granted.min(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;

    fn job(parallelism: i32, completions: Option<i32>, mode: &str) -> Job {
        serde_json::from_value(json!({
            "metadata": { "name": "train", "annotations": { ELASTIC_JOB: "true" } },
            "spec": {
                "parallelism": parallelism, "completions": completions, "completionMode": mode,
                "template": {},
            },
        }))
        .expect("a Job decodes")
    }

    fn granted(pods: i32) -> Vec<PodSet> {
        vec![PodSet { name: "main".to_owned(), count: Some(pods), ..PodSet::default() }]
    }

    fn pushed(copy: &Job, (job, pods): (&Job, i32)) -> Value {
        size_to_push(copy, job, &granted(pods), JobGates::default()).unwrap_or_default()
    }

    #[test]
    fn a_copy_shrinks_to_what_its_workload_has() {
        let many = |pods| job(pods, Some(100), "NonIndexed");
        let smaller = json!({ "parallelism": 3 });
        assert_eq!(pushed(&many(5), (&many(3), 3)), smaller);
        assert_eq!(pushed(&many(5), (&many(8), 3)), smaller, "the job grew since");
        assert_eq!(pushed(&many(5), (&many(3), 5)), Value::Null, "its Workload follows first");
        assert_eq!(pushed(&many(3), (&many(3), 3)), Value::Null);
        assert_eq!(pushed(&many(3), (&many(8), 3)), Value::Null, "nothing grows");
        let (few, other) = (job(9, Some(3), "NonIndexed"), job(5, Some(3), "NonIndexed"));
        assert_eq!(pushed(&few, (&other, 3)), Value::Null, "neither has more than three pods");
        let off = JobGates { elastic_jobs: false, ..JobGates::default() };
        assert_eq!(size_to_push(&many(5), &many(3), &granted(3), off), None);
    }

    #[test]
    fn a_copy_gets_the_pods_of_a_later_slice() {
        let many = |pods| job(pods, Some(100), "NonIndexed");
        let later = |now, wanted, pods| {
            let granted = granted(pods);
            size_of_later_slice(&many(now), &many(wanted), &granted, JobGates::default())
        };
        let to = |pods: i32| Some(json!({ "parallelism": pods }));
        assert_eq!(later(2, 5, 5), to(5));
        assert_eq!(later(2, 9, 5), to(5), "the job grew again");
        assert_eq!(later(2, 4, 5), to(4), "it shrank, and its Workload follows");
        assert_eq!(later(2, 1, 1), to(1));
        assert_eq!(later(5, 5, 5), Some(json!({})));
        assert_eq!(later(2, 1, 5), Some(json!({})), "nothing is taken before its Workload follows");
        let off = JobGates { elastic_jobs: false, ..JobGates::default() };
        assert_eq!(size_of_later_slice(&many(2), &many(5), &granted(5), off), None);
    }

    #[test]
    fn completions_of_an_indexed_job_follow() {
        let indexed = |pods, completions| job(pods, Some(completions), "Indexed");
        let both = |pods| json!({ "parallelism": pods, "completions": pods });
        assert_eq!(pushed(&indexed(5, 5), (&indexed(3, 3), 3)), both(3));
        assert_eq!(pushed(&indexed(5, 9), (&indexed(5, 5), 5)), both(5));
        assert_eq!(pushed(&indexed(5, 5), (&indexed(3, 5), 3)), json!({ "parallelism": 3 }));
        // First to four and four, then to two and four.
        assert_eq!(pushed(&indexed(5, 5), (&indexed(2, 4), 2)), both(4));
        assert_eq!(pushed(&indexed(4, 4), (&indexed(2, 4), 2)), json!({ "parallelism": 2 }));
    }

    #[test]
    fn only_smaller_counts_of_an_elastic_workload_are_a_smaller_size() {
        let sets = |count: i32, image: &str| -> Vec<PodSet> {
            let container = json!({ "name": "c", "image": image });
            let template = json!({ "spec": { "containers": [container] } });
            let set = json!({ "name": "main", "count": count, "template": template });
            vec![serde_json::from_value(set).expect("a pod set decodes")]
        };
        let shrunk = |elastic: &str, to: &[PodSet]| {
            let metadata = json!({ "annotations": { ELASTIC_JOB: elastic } });
            let clone = json!({ "metadata": metadata, "spec": { "podSets": sets(5, "i") } });
            shrunk_pod_sets(&serde_json::from_value(clone).expect("a clone decodes"), to)
        };
        assert_eq!(shrunk("true", &sets(3, "i")), Some(sets(3, "i")));
        for (elastic, to) in [
            ("false", sets(3, "i")),
            ("true", sets(5, "i")),
            ("true", sets(6, "i")),
            ("true", sets(3, "j")),
            ("true", vec![]),
        ] {
            assert_eq!(shrunk(elastic, &to), None, "{elastic} {to:?}");
        }
    }

    /// The worker's schema has no default for the service of a probe, the manager's has.
    #[test]
    fn a_default_that_only_the_manager_has_keeps_no_copy_from_shrinking() {
        let sets = |count: i32, probe: &Value| -> Vec<PodSet> {
            let container = json!({ "name": "c", "livenessProbe": { "grpc": probe } });
            let template = json!({ "spec": { "containers": [container] } });
            let set = json!({ "name": "main", "count": count, "template": template });
            vec![serde_json::from_value(set).expect("a pod set decodes")]
        };
        let (worker, manager) = (json!({ "port": 1 }), json!({ "port": 1, "service": "" }));
        let metadata = json!({ "annotations": { ELASTIC_JOB: "true" } });
        let clone = json!({ "metadata": metadata, "spec": { "podSets": sets(5, &worker) } });
        let clone: Workload = serde_json::from_value(clone).expect("a clone decodes");
        assert_eq!(shrunk_pod_sets(&clone, &sets(3, &manager)), Some(sets(3, &worker)));
        assert_eq!(shrunk_pod_sets(&clone, &sets(5, &manager)), None, "it has its size");
    }
}
