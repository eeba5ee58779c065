//! The writes of a stop (docs/reference/kueue.md §7.8).
//!
//! ```text
//! running --suspend, mark--> suspended, marked --clear start time--> suspended, marked --restore, unmark--> stopped
//! ```
//! A Job that ran on a worker gets an idle status once its copy is gone; the Job controller of this cluster does not
//! write it.
//!
//! Kubernetes allows changes of a template only while a Job is suspended, has no start time and no active pods, and
//! the status is a separate subresource: hence three writes, with a wait before the last. The mark prevents a stop
//! that is not complete from counting as suspended.

use crds::names::annotations::STOPPING;

use super::{Job, pod_sets_info, remote};
use crate::{
    GenericJob, JobGates,
    generic_job::{Stop, StopWrite},
};

/// Status field with the start time.
pub(super) const START_TIME: &str = "startTime";

/// The next write of a stop; `None` if the Job has stopped or has to wait for its pods.
pub(super) fn step(job: &Job, stop: &Stop<'_>, gates: JobGates) -> Option<StopWrite<Job>> {
    let mut next = job.clone();
    if !job.spec_suspended() {
        next.spec.suspend = Some(true);
        let annotations = next.metadata.annotations.get_or_insert_default();
        annotations.insert(STOPPING.to_owned(), "true".to_owned());
        return Some(StopWrite::Object(Box::new(next)));
    }
    if job.is_managed_elsewhere() {
        // The status is that of the remote copy, and changes when the copy is gone.
        if job.is_active() {
            return None;
        }
        if let Some(idle) = remote::idle(job) {
            return Some(StopWrite::Status(Box::new(idle)));
        }
        // The API server refuses template changes while a start time is set.
    } else if next.status.rest.remove(START_TIME).is_some_and(|time| !time.is_null()) {
        return Some(StopWrite::Status(Box::new(next)));
    }
    let restored = if stop.resized {
        pod_sets_info::restore_template(&mut next, stop.infos)
    } else {
        pod_sets_info::restore(&mut next, stop.infos, gates)
    };
    // Templates may change only after all pods are gone.
    if restored && job.is_active() {
        return None;
    }
    let annotations = next.metadata.annotations.as_mut();
    let mark_removed = annotations.is_some_and(|all| all.remove(STOPPING).is_some());
    (restored || mark_removed).then(|| StopWrite::Object(Box::new(next)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::start::pod_set_info::PodSetInfo;

    fn from(infos: &[PodSetInfo]) -> Stop<'_> {
        Stop { infos, ..Stop::default() }
    }

    /// A suspended Job, the info of its pod set, and the same Job after its start.
    fn started(gates: JobGates) -> (Job, Vec<PodSetInfo>, Job) {
        let suspended_job: Job = serde_json::from_value(json!({
            "metadata": { "name": "train", "annotations": { "own": "1" } },
            "spec": { "suspend": true, "template": { "spec": { "nodeSelector": { "zone": "a" } } } },
        }))
        .expect("a Job decodes");
        let before: Vec<PodSetInfo> =
            suspended_job.pod_sets(gates).iter().map(PodSetInfo::of).collect();
        let mut job = suspended_job.clone();
        let node_selector = [("gpu".to_owned(), "h100".to_owned())].into();
        let info = PodSetInfo { count: 1, node_selector, ..PodSetInfo::default() };
        job.run_with_pod_sets_info(&[info], gates).expect("starts");
        job.status.rest.insert("startTime".to_owned(), json!("2026-01-01T00:00:00Z"));
        (suspended_job, before, job)
    }

    #[test]
    fn a_template_is_not_restored_while_pods_are_active() {
        let gates = JobGates::default();
        let (_, before, mut job) = started(gates);
        job.spec.suspend = Some(true);
        job.status.rest.clear();
        job.status.active = Some(1);
        assert_eq!(job.next_stop_write(&from(&before), gates), None);
        job.status.active = None;
        assert!(job.next_stop_write(&from(&before), gates).is_some());
    }

    #[test]
    fn a_stop_takes_three_writes() {
        let gates = JobGates::default();
        let (suspended_job, before, mut job) = started(gates);
        let mut writes = Vec::new();
        while let Some(step) = job.next_stop_write(&from(&before), gates) {
            assert!(!job.is_suspended(), "not suspended before the last write");
            let (part, next) = match step {
                StopWrite::Object(next) => ("object", next),
                StopWrite::Status(next) => ("status", next),
                StopWrite::Delete(_) => unreachable!("a Job is suspended"),
            };
            writes.push(part);
            job = *next;
        }
        assert_eq!(writes, ["object", "status", "object"]);
        assert_eq!(job, suspended_job);
    }

    #[test]
    fn without_a_workload_only_identity_labels_are_removed() {
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
        let Some(StopWrite::Object(next)) = job.next_stop_write(&from(&[]), gates) else {
            unreachable!("its template changes")
        };
        job = *next;
        let metadata = job.spec.template.metadata.clone().expect("metadata");
        assert_eq!(metadata.labels.iter().collect::<Vec<_>>(), [("own", "1")]);
        assert!(metadata.annotations.is_empty() && job.is_suspended());
        assert_eq!(job.next_stop_write(&from(&[]), gates), None);
    }

    #[test]
    fn a_job_that_ran_on_a_worker_is_restored_when_its_copy_is_gone() {
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
        assert_eq!(job.next_stop_write(&from(&[]), gates), None, "its copy still runs");
        job.status.active = None;
        let Some(StopWrite::Status(idle)) = job.next_stop_write(&from(&[]), gates) else {
            unreachable!("nothing runs, so an idle status is next")
        };
        assert!(matches!(idle.next_stop_write(&from(&[]), gates), Some(StopWrite::Object(_))));
    }
}
