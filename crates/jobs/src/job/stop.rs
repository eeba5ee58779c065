//! Stopping a Job, step by step (docs/reference/kueue.md §7.8).
//!
//! ```text
//! running --suspend, mark--> suspended, marked --clear start time--> suspended, marked --restore, unmark--> as it was
//! ```
//! A Job that runs on another cluster is marked idle when nothing of it runs there, since nobody else would say so here.
//!
//! Kubernetes lets a template be changed only while a Job is suspended, has no start time and no active pods, and status
//! is written apart from the rest: hence three writes, and a pause before the last. The mark keeps a Job that is stopped
//! half-way from being taken for suspended.

use crds::names::annotations::STOPPING;

use super::{Job, pod_sets_info, remote};
use crate::{GenericJob, JobGates, generic_job::StopWrite, pod_set_info::PodSetInfo};

/// Field of the status that holds the start time.
pub(super) const START_TIME: &str = "startTime";

/// The next write of a stop, none when the Job has stopped or its pods must go first. `infos` is what its pod sets had
/// before they started, and empty where that is not known.
pub(super) fn step(job: &Job, infos: &[PodSetInfo], gates: JobGates) -> Option<StopWrite<Job>> {
    let mut next = job.clone();
    if !job.spec_suspended() {
        next.spec.suspend = Some(true);
        let annotations = next.metadata.annotations.get_or_insert_default();
        annotations.insert(STOPPING.to_owned(), "true".to_owned());
        return Some(StopWrite::Object(Box::new(next)));
    }
    if job.is_managed_elsewhere() {
        // Its status says what the copy does, and changes when the copy is gone.
        if job.is_active() {
            return None;
        }
        if let Some(idle) = remote::idle(job) {
            return Some(StopWrite::Status(Box::new(idle)));
        }
    } else if next.status.rest.remove(START_TIME).is_some_and(|time| !time.is_null()) {
        return Some(StopWrite::Status(Box::new(next)));
    }
    let restored = pod_sets_info::restore(&mut next, infos, gates);
    if restored && job.is_active() {
        return None;
    }
    let annotations = next.metadata.annotations.as_mut();
    let unmarked = annotations.is_some_and(|all| all.remove(STOPPING).is_some());
    (restored || unmarked).then(|| StopWrite::Object(Box::new(next)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A Job that waits, what its pod set had, and the same Job as it runs.
    fn started(gates: JobGates) -> (Job, Vec<PodSetInfo>, Job) {
        let waiting: Job = serde_json::from_value(json!({
            "metadata": { "name": "train", "annotations": { "own": "1" } },
            "spec": { "suspend": true, "template": { "spec": { "nodeSelector": { "zone": "a" } } } },
        }))
        .expect("a Job decodes");
        let before: Vec<PodSetInfo> = waiting.pod_sets(gates).iter().map(PodSetInfo::of).collect();
        let mut job = waiting.clone();
        let node_selector = [("gpu".to_owned(), "h100".to_owned())].into();
        let given = PodSetInfo { count: 1, node_selector, ..PodSetInfo::default() };
        job.run_with_pod_sets_info(&[given], gates).expect("starts");
        job.status.rest.insert("startTime".to_owned(), json!("2026-01-01T00:00:00Z"));
        (waiting, before, job)
    }

    #[test]
    fn a_template_is_not_put_back_while_pods_are_active() {
        let gates = JobGates::default();
        let (_, before, mut job) = started(gates);
        job.spec.suspend = Some(true);
        job.status.rest.clear();
        job.status.active = Some(1);
        assert_eq!(job.next_stop_write(&before, gates), None);
        job.status.active = None;
        assert!(job.next_stop_write(&before, gates).is_some());
    }

    #[test]
    fn a_stop_takes_three_writes_and_then_none() {
        let gates = JobGates::default();
        let (waiting, before, mut job) = started(gates);
        let mut writes = Vec::new();
        while let Some(step) = job.next_stop_write(&before, gates) {
            assert!(!job.is_suspended(), "not suspended before the last write");
            let (part, next) = match step {
                StopWrite::Object(next) => ("object", next),
                StopWrite::Status(next) => ("status", next),
            };
            writes.push(part);
            job = *next;
        }
        assert_eq!(writes, ["object", "status", "object"]);
        assert_eq!(job, waiting);
    }

    #[test]
    fn of_a_job_whose_workload_is_gone_only_what_names_it_is_taken_away() {
        let gates = JobGates::default();
        let mut job: Job = serde_json::from_value(json!({
            "metadata": { "annotations": { STOPPING: "true" } },
            "spec": { "suspend": true, "template": {
                "metadata": {
                    "labels": { "own": "1", "kueue.x-k8s.io/cluster-queue-name": "cq", "kueue.x-k8s.io/podset": "main" },
                    "annotations": { "kueue.x-k8s.io/workload": "job-train" },
                },
                "spec": { "nodeSelector": { "gpu": "h100" } },
            } },
        }))
        .expect("a Job decodes");
        let Some(StopWrite::Object(next)) = job.next_stop_write(&[], gates) else {
            unreachable!("its template changes")
        };
        job = *next;
        let metadata = job.spec.template.metadata.clone().expect("metadata");
        assert_eq!(metadata.labels, [("own".to_owned(), "1".to_owned())].into());
        assert!(metadata.annotations.is_empty() && job.is_suspended());
        assert_eq!(job.next_stop_write(&[], gates), None);
    }

    #[test]
    fn a_job_that_runs_elsewhere_is_put_back_when_its_copy_is_gone() {
        let gates = JobGates::default();
        let mut job: Job = serde_json::from_value(json!({
            "metadata": { "annotations": { STOPPING: "true" } },
            "spec": { "suspend": true, "managedBy": "kueue.x-k8s.io/multikueue", "template": {} },
            "status": {
                "active": 1, "startTime": "2026-01-01T00:00:00Z",
                "conditions": [{ "type": "Suspended", "status": "False" }],
            },
        }))
        .expect("a Job decodes");
        assert_eq!(job.next_stop_write(&[], gates), None, "its copy still runs");
        job.status.active = None;
        let Some(StopWrite::Status(idle)) = job.next_stop_write(&[], gates) else {
            unreachable!("nothing runs, and nobody else says so")
        };
        assert!(matches!(idle.next_stop_write(&[], gates), Some(StopWrite::Object(_))));
    }
}
