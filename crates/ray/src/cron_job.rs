//! RayCronJob: a RayJob for each time of a schedule.
//!
//! Source: docs/reference/ray.md §10.

use std::time::Duration;

use crds::decode::from_value;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use crate::{
    cron_schedule::CronSchedule,
    cron_zone::zone_of,
    job::check_job_spec,
    json::{is_terminating, name, text},
    pass::{OrderOutcome, Pass},
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
    v1::RayCronJobSpec,
};

/// The most characters of the name: names of its RayJobs are longer.
const LONGEST_NAME: usize = 36;

/// More missed times than this are not made up. After a long suspension a RayCronJob would otherwise make thousands of RayJobs at once.
const MOST_MISSED: usize = 100;

/// When a refused RayJob is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// What a RayCronJob needs next.
///
/// The protocol of steps and answers is that of [`crate::cluster::decide`].
#[must_use]
pub fn decide(
    cron_job: &Value,
    answers: &[RayAnswer],
    now: Timestamp,
    settings: &OperatorSettings,
) -> Vec<RayStep> {
    let mut pass = Pass::new(answers);
    // A deletion in the foreground waits for the RayJobs, and so for each that would follow.
    if is_terminating(cron_job) {
        return pass.finish();
    }
    let path = format!("{}/{}", text(&cron_job["metadata"]["namespace"]), name(cron_job));
    match check(cron_job, settings) {
        Err(why) => pass.warning("InvalidRayCronJobSpec", format!("{path}: {why}")),
        Ok((spec, _, _)) if spec.suspend => {
            let message = "RayCronJob suspended, no new RayJobs will be created";
            pass.normal("SuspendedRayCronJob", message.to_owned());
        }
        Ok((_, schedule, zone)) => follow(cron_job, &schedule, &zone, now, &mut pass),
    }
    pass.finish()
}

type CheckedCronJob = (RayCronJobSpec, CronSchedule, TimeZone);

fn check(cron_job: &Value, settings: &OperatorSettings) -> Result<CheckedCronJob, String> {
    let spec = from_value::<RayCronJobSpec>(&cron_job["spec"]);
    let spec = spec.map_err(|error| error.to_string())?;
    // The name is checked by its length only; its RayJobs are refused if they cannot have it.
    if name(cron_job).chars().count() > LONGEST_NAME {
        return Err(format!("RayCronJob name should be no more than {LONGEST_NAME} characters"));
    }
    // The official operator's parser takes a zone from this prefix; `timeZone` is the field for it.
    if spec.schedule.contains("TZ") {
        return Err("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned());
    }
    let schedule = CronSchedule::parse(&spec.schedule)
        .map_err(|error| format!("invalid cron schedule: {error}"))?;
    if spec.time_zone.as_ref().is_some_and(String::is_empty) {
        return Err("timeZone must not be empty string, omit the field to use the local time zone of the KubeRay operator".to_owned());
    }
    let zone = zone_of(spec.time_zone.as_deref())
        .map_err(|error| format!("invalid time zone: {error}"))?;
    // Each RayJob of an invalid template would end as ValidationFailed.
    // They have neither the annotations of the RayCronJob nor any of their own.
    check_job_spec(&json!({}), &spec.job_template, settings)
        .map_err(|why| format!("invalid RayJob template: {why}"))?;
    Ok((spec, schedule, zone))
}

/// Makes the RayJob of the next time that is due.
fn follow(
    cron_job: &Value,
    schedule: &CronSchedule,
    zone: &TimeZone,
    now: Timestamp,
    pass: &mut Pass<'_>,
) {
    let since =
        [&cron_job["status"]["lastScheduleTime"], &cron_job["metadata"]["creationTimestamp"]];
    let since = since.into_iter().find_map(|time| text(time).parse::<Timestamp>().ok());
    let base = since.unwrap_or(now);
    let Some(tick) = next_due(schedule, zone, base, now) else { return };
    if tick > now {
        wait(tick, now, pass);
        return;
    }
    match pass.order(RayStep::Create(ray_job(cron_job, tick))) {
        OrderOutcome::Pending => {}
        OrderOutcome::Refused(refusal) if !refusal.is_conflict() => {
            let message = format!("Failed to create the RayJob of {tick}: {}", refusal.message);
            pass.warning("FailedToCreateRayJob", message);
            pass.requeue(RETRY);
        }
        // A RayJob that is there was made before a crash.
        OrderOutcome::Done(_) | OrderOutcome::Refused(_) => {
            // The time of the schedule and not of the pass: the next one is counted from it.
            pass.status(json!({"lastScheduleTime": tick.to_string()}));
            if let Some(next) = schedule.next(tick, zone) {
                wait(next, now, pass);
            }
        }
    }
}

/// The next time after `base`. If too many were missed, the last of them.
fn next_due(
    schedule: &CronSchedule,
    zone: &TimeZone,
    base: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let first = schedule.next(base, zone)?;
    let mut tick = first;
    for _ in 0..MOST_MISSED {
        match schedule.next(tick, zone).filter(|next| *next <= now) {
            Some(next) => tick = next,
            // One time per pass: the status write brings the pass of the next one.
            None => return Some(first),
        }
    }
    Some(last_due(schedule, zone, tick, now))
}

/// The last time that is due. The time after which nothing is due is searched by halving, so that a long gap costs few steps,
/// however uneven the schedule is.
fn last_due(
    schedule: &CronSchedule,
    zone: &TimeZone,
    known: Timestamp,
    now: Timestamp,
) -> Timestamp {
    // Nothing is due after `none_after`; `tick` is due. Times of a schedule are whole seconds.
    let (mut tick, mut none_after) = (known, now);
    while none_after.duration_since(tick) >= SignedDuration::from_secs(1) {
        let middle = tick + none_after.duration_since(tick) / 2;
        match schedule.next(middle, zone).filter(|next| *next <= now) {
            Some(next) => tick = next,
            None => none_after = middle,
        }
    }
    tick
}

fn wait(until: Timestamp, now: Timestamp, pass: &mut Pass<'_>) {
    pass.requeue(until.duration_since(now).max(SignedDuration::ZERO).unsigned_abs());
}

fn ray_job(cron_job: &Value, tick: Timestamp) -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            // The name follows from the time, so a repeated pass meets its own RayJob.
            "name": format!("{}-{}", name(cron_job), tick.as_second().div_euclid(60)),
            "namespace": cron_job["metadata"]["namespace"],
            "labels": {"ray.io/cronjob-name": name(cron_job)},
            "annotations": {"ray.io/cronjob-scheduled-timestamp": tick.to_string()},
            "ownerReferences": [{
                "apiVersion": "ray.io/v1",
                "kind": "RayCronJob",
                "name": cron_job["metadata"]["name"],
                "uid": cron_job["metadata"]["uid"],
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": cron_job["spec"]["jobTemplate"],
    })
}
