//! Events about jobs that show no end though their Workload has finished (docs/reference/multikueue.md §2.3).
//!
//! The end of a job is the status of its copy. If the copy was deleted on the worker before that status was copied, as by a TTL,
//! or was never made, the end is not known and none is invented: the job keeps the status that it has, as under Kueue, and an
//! Event about it says so. The same holds for a Job that shows how an earlier copy would have ended: the API server takes no
//! other end. And it holds for an end that the API server prunes or refuses.

use crds::names::reasons::JOB_END_UNKNOWN;
use runtime::events::{EventRecord, EventType};

use crate::control::{
    jobs::event,
    multikueue::{
        view::{
            evaluated_workload::EvaluatedWorkload,
            hub_jobs::{HubJob, shows_no_end},
        },
        workers::worker::Worker,
    },
    outbox::Outbox,
};

/// The copy was deleted or never made.
const NO_COPY: &str = "no copy of the job is left";

/// The copy has ended otherwise than the job will by what it shows.
const OTHER_END: &str = "its copy has ended otherwise than an earlier one, whose end the job shows";

/// The copy has ended, and the job shows no end although its status was written.
const LOST_END: &str =
    "its copy has an end that the API server of the manager cluster does not store";

/// How the clone of a Workload has ended.
#[derive(Clone, Copy)]
pub(crate) struct CloneEnd<'a> {
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Publishes an Event about each job that has no end and cannot get one from a copy on the recorded worker.
pub(crate) fn announce_open_jobs(
    workload: EvaluatedWorkload<'_>,
    worker: &Worker,
    end: CloneEnd<'_>,
    outbox: &mut Outbox,
) {
    // The step repeats until the end is written; the first time publishes the Event.
    if workload.record().is_none_or(|record| record.transitions().finish().is_some()) {
        return;
    }
    for (key, job) in workload.hub_jobs().into_iter().filter(|(_, job)| shows_no_end(job)) {
        let why = match worker.jobs.get(key) {
            None => NO_COPY,
            Some(copy) if job.refuses_end_of(copy.object()) => OTHER_END,
            Some(copy) if workload.jobs.statuses().loses_end_of(key, job, copy.object()) => {
                LOST_END
            }
            Some(_) => continue,
        };
        outbox.publish(open_job_event((key, job), worker.name(), end, why));
    }
}

fn open_job_event(
    (key, job): HubJob<'_>,
    cluster: &str,
    CloneEnd { reason, message }: CloneEnd<'_>,
    why: &str,
) -> EventRecord {
    tracing::warn!(job = %key, cluster, reason, why, "the end of the job is not known");
    let note = format!(
        "The workload has finished on worker cluster \"{cluster}\" ({reason}: {message}), where {why}; the status of the job stays as it is"
    );
    event(job, EventType::Warning, JOB_END_UNKNOWN, note)
}
