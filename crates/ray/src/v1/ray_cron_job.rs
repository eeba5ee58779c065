//! A RayCronJob: a RayJob on a schedule.

use crds::schema::{Text, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RayJobSpec;

/// What a RayCronJob runs, and when.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["jobTemplate", "schedule"]))]
pub struct RayCronJobSpec {
    /// The spec of the RayJobs.
    pub job_template: RayJobSpec,
    /// Five fields of cron.
    pub schedule: String,
    /// Whether no RayJobs are made.
    pub suspend: bool,
    /// The time zone of the schedule.
    #[schemars(with = "Option<Text<1, 0>>")]
    pub time_zone: Option<String>,
}

/// The state of a RayCronJob.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RayCronJobStatus {
    /// The last time of the schedule that got a RayJob.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub last_schedule_time: Option<String>,
}
