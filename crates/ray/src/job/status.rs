//! The status of a RayJob while a pass changes it.
//!
//! Source: docs/reference/ray.md §8.

use crds::decode::from_value;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::phase::JobPhase;
use crate::{
    cluster::{no_cluster_status, rfc3339, same_status},
    head::HeadJobInfo,
    v1::{RayJobInfo, RayJobSpec, RayJobStatus},
};

/// The job in Ray failed.
const FAILED: &str = "FAILED";
/// The job in Ray succeeded.
const SUCCEEDED: &str = "SUCCEEDED";
/// The job in Ray was stopped.
const STOPPED: &str = "STOPPED";

/// Why an attempt failed, as `status.reason`.
pub(super) mod reasons {
    /// The job itself failed.
    pub(in crate::job) const APP_FAILED: &str = "AppFailed";
    /// The job did not reach Ray.
    pub(in crate::job) const SUBMISSION_FAILED: &str = "SubmissionFailed";
    /// `activeDeadlineSeconds` passed.
    pub(in crate::job) const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// `preRunningDeadlineSeconds` passed.
    pub(in crate::job) const PRE_RUNNING_DEADLINE_EXCEEDED: &str = "PreRunningDeadlineExceeded";
    /// The head did not say how the job is.
    pub(in crate::job) const CHECK_TIMEOUT_EXCEEDED: &str = "JobStatusCheckTimeoutExceeded";
    /// The job ended, and its submitter did not; or the other way round.
    pub(in crate::job) const GRACE_EXCEEDED: &str =
        "JobDeploymentStatusTransitionGracePeriodExceeded";
    /// The RayJob is invalid.
    pub(in crate::job) const VALIDATION_FAILED: &str = "ValidationFailed";
}

/// The status, with its phase parsed and the copy of the cluster's status as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttemptStatus {
    pub(super) phase: JobPhase,
    pub(super) fields: RayJobStatus,
    pub(super) cluster: Value,
}

impl AttemptStatus {
    /// Reads the status of a RayJob. One that does not decode counts as new, since no attempt can be recognized from it.
    pub(super) fn read(job: &Value) -> Self {
        let mut value = job["status"].clone();
        let cluster = match value.get_mut("rayClusterStatus").map(Value::take) {
            Some(cluster) if cluster.is_object() => cluster,
            _ => no_cluster_status(),
        };
        let fields: RayJobStatus = from_value(&value).unwrap_or_default();
        Self { phase: JobPhase::parse(&fields.job_deployment_status), fields, cluster }
    }

    /// The status as it is stored. Like the official operator it has counters and copies also where they are empty.
    pub(super) fn to_value(&self) -> Value {
        let mut fields = self.fields.clone();
        self.phase.name().clone_into(&mut fields.job_deployment_status);
        fields.failed.get_or_insert(0);
        fields.succeeded.get_or_insert(0);
        fields.ray_job_info.get_or_insert_default();
        let mut value = json!(fields);
        value["rayClusterStatus"] = self.cluster.clone();
        value
    }

    /// Whether a write is worth it. Messages and times of the job in Ray alone are none: a head may change them at every look.
    pub(super) fn differs(&self, before: &Self) -> bool {
        let (a, b) = (&self.fields, &before.fields);
        self.phase != before.phase
            || a.job_status != b.job_status
            || a.job_status_check_failure_start_time != b.job_status_check_failure_start_time
            || !same_status(&self.cluster, &before.cluster)
    }

    /// Begins an attempt: its names are stored before anything is made, so that a crash does not make it twice.
    pub(super) fn begin(&mut self, job_id: String, cluster_name: String, now: Timestamp) {
        self.phase = JobPhase::Initializing;
        self.fields.job_id = job_id;
        self.fields.ray_cluster_name = cluster_name;
        self.fields.start_time = Some(rfc3339(now));
    }

    /// Forgets an attempt after its objects are gone.
    pub(super) fn forget_attempt(&mut self) {
        let fields = &mut self.fields;
        for text in [
            &mut fields.job_id,
            &mut fields.ray_cluster_name,
            &mut fields.dashboard_url,
            &mut fields.job_status,
            &mut fields.reason,
            &mut fields.message,
        ] {
            text.clear();
        }
        fields.ray_job_info = None;
        fields.job_status_check_failure_start_time = None;
        self.cluster = no_cluster_status();
    }

    pub(super) fn fail(&mut self, reason: &str, message: Option<String>) {
        self.phase = JobPhase::Failed;
        reason.clone_into(&mut self.fields.reason);
        if let Some(message) = message {
            self.fields.message = message;
        }
    }

    /// Takes over what the head says of the job. An answer without a state, such as that of an error, changes nothing.
    pub(super) fn take(&mut self, info: &HeadJobInfo) {
        if info.status.is_empty() {
            return;
        }
        self.fields.job_status.clone_from(&info.status);
        self.fields.message.clone_from(&info.message);
        let time = |milliseconds: i64| {
            let time = Timestamp::from_millisecond(milliseconds).ok();
            time.filter(|_| milliseconds > 0).map(rfc3339)
        };
        self.fields.ray_job_info =
            Some(RayJobInfo { start_time: time(info.start_time), end_time: time(info.end_time) });
    }

    pub(super) fn job_failed(&self) -> bool {
        self.fields.job_status == FAILED
    }

    pub(super) fn job_succeeded(&self) -> bool {
        self.fields.job_status == SUCCEEDED
    }

    pub(super) fn give_up_job(&mut self) {
        FAILED.clone_into(&mut self.fields.job_status);
    }

    /// Whether the job in Ray has ended.
    pub(super) fn job_ended(&self) -> bool {
        [SUCCEEDED, FAILED, STOPPED].contains(&self.fields.job_status.as_str())
    }

    /// Counts an attempt that has just ended, and begins another one if some are left.
    pub(super) fn count_end(&mut self, before: &Self, spec: &RayJobSpec, now: Timestamp) {
        if self.phase == before.phase {
            return;
        }
        match self.phase {
            JobPhase::Failed => {
                let failed = self.fields.failed.unwrap_or_default().saturating_add(1);
                self.fields.failed = Some(failed);
                if failed <= spec.backoff_limit.unwrap_or_default() && self.may_retry() {
                    self.phase = JobPhase::Retrying;
                    return;
                }
            }
            JobPhase::Complete if self.job_succeeded() => {
                self.fields.succeeded = Some(self.fields.succeeded.unwrap_or_default() + 1);
            }
            JobPhase::Complete => {}
            _ => return,
        }
        self.fields.end_time = Some(rfc3339(now));
    }

    /// A deadline holds for all attempts together, and a head that is silent may still run the job.
    fn may_retry(&self) -> bool {
        let reason = self.fields.reason.as_str();
        ![reasons::DEADLINE_EXCEEDED, reasons::CHECK_TIMEOUT_EXCEEDED].contains(&reason)
    }
}
