//! Rules for RayCronJobs that no recording shows.

use jiff::{Timestamp, tz::TimeZone};
use proptest::prelude::*;
use ray::{cron_job, cron_schedule::CronSchedule, settings::OperatorSettings, step::RayStep};
use serde_json::{Value, json};

fn cron_job_since(last: &str) -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCronJob",
        "metadata": {"name": "cj", "namespace": "default", "uid": "u1"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"clusterSelector": {"ray.io/cluster": "c"}}},
        "status": {"lastScheduleTime": last},
    })
}

fn made(cron_job: &Value, now: &str) -> Vec<String> {
    let now = now.parse().expect("a time");
    let settings = OperatorSettings::default();
    let steps = cron_job::decide(cron_job, &[], now, &settings);
    let times = steps.iter().filter_map(|step| match step {
        RayStep::Create(job) => {
            job["metadata"]["annotations"]["ray.io/cronjob-scheduled-timestamp"].as_str()
        }
        _ => None,
    });
    times.map(str::to_owned).collect()
}

#[test]
fn a_few_missed_times_are_made_up_one_by_one() {
    let cron_job = cron_job_since("2026-01-01T00:00:00Z");
    assert_eq!(made(&cron_job, "2026-01-01T01:30:00Z"), ["2026-01-01T00:01:00Z"]);
}

#[test]
fn the_last_missed_time_of_an_uneven_schedule_is_made_up() {
    // Every minute of the first hour of a day.
    let mut cron_job = cron_job_since("2026-01-01T00:30:00Z");
    cron_job["spec"]["schedule"] = json!("* 0 * * *");
    assert_eq!(made(&cron_job, "2026-01-11T12:00:00Z"), ["2026-01-11T00:59:00Z"]);
    assert_eq!(made(&cron_job, "2026-01-11T00:10:30Z"), ["2026-01-11T00:10:00Z"]);
}

#[test]
fn after_many_missed_times_only_the_last_is_made_up() {
    let cron_job = cron_job_since("2026-01-01T00:00:00Z");
    assert_eq!(made(&cron_job, "2026-03-01T12:34:56Z"), ["2026-03-01T12:34:00Z"]);
}

#[test]
fn a_clock_that_goes_back_makes_nothing() {
    let cron_job = cron_job_since("2026-01-01T00:00:00Z");
    assert_eq!(made(&cron_job, "2025-12-31T00:00:00Z"), Vec::<String>::new());
}

/// A RayJob of a deleted one holds up a deletion in the foreground, and the next takes its place.
#[test]
fn a_cron_job_that_is_being_deleted_makes_nothing() {
    let mut cron_job = cron_job_since("2026-01-01T00:00:00Z");
    cron_job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
    let (now, settings) = (Timestamp::UNIX_EPOCH, OperatorSettings::default());
    for schedule in ["* * * * *", "no schedule"] {
        cron_job["spec"]["schedule"] = json!(schedule);
        assert_eq!(made(&cron_job, "2026-01-01T00:01:30Z"), Vec::<String>::new());
        let steps = cron_job::decide(&cron_job, &[], now, &settings);
        assert_eq!(steps, [], "{schedule}");
    }
}

/// Its RayJobs have none of them.
#[test]
fn annotations_of_a_cron_job_do_not_count_for_its_template() {
    let mut cron_job = cron_job_since("2026-01-01T00:00:00Z");
    cron_job["metadata"]["annotations"] = json!({"ray.io/ft-enabled": "true"});
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    cron_job["spec"]["jobTemplate"] = json!({"rayClusterSpec": {
        "headGroupSpec": {"template": template},
        "gcsFaultToleranceOptions": {"redisAddress": "redis:6379"},
    }});
    assert_eq!(made(&cron_job, "2026-01-01T00:01:30Z"), ["2026-01-01T00:01:00Z"]);
}

#[test]
fn an_unknown_zone_is_an_event() {
    let mut cron_job = cron_job_since("2026-01-01T00:00:00Z");
    for (zone, expected) in [
        ("Mars/Base", "unknown time zone Mars/Base"),
        ("asia/tokyo", "unknown time zone asia/tokyo"),
        ("../UTC", "time: invalid location name"),
    ] {
        cron_job["spec"]["timeZone"] = json!(zone);
        let (now, settings) = (Timestamp::UNIX_EPOCH, OperatorSettings::default());
        let steps = cron_job::decide(&cron_job, &[], now, &settings);
        let [RayStep::Event(event)] = &steps[..] else { unreachable!("{steps:?}") };
        assert_eq!(event.message, format!("default/cj: invalid time zone: {expected}"));
    }
}

#[test]
fn the_times_of_a_schedule_are_those_of_its_zone() {
    let mut cron_job = cron_job_since("2026-01-01T00:00:00Z");
    cron_job["spec"]["schedule"] = json!("0 1 * * *");
    for (zone, expected) in
        [("Asia/Tokyo", "2026-01-01T16:00:00Z"), ("Local", "2026-01-01T01:00:00Z")]
    {
        cron_job["spec"]["timeZone"] = json!(zone);
        assert_eq!(made(&cron_job, "2026-01-01T18:00:00Z"), [expected], "{zone}");
    }
}

#[test]
fn an_empty_zone_and_a_suspension_are_events() {
    let message = |field: &str, value: Value| {
        let mut cron_job = cron_job_since("2026-01-01T00:00:00Z");
        cron_job["spec"][field] = value;
        let (now, settings) = (Timestamp::UNIX_EPOCH, OperatorSettings::default());
        let steps = cron_job::decide(&cron_job, &[], now, &settings);
        let [RayStep::Event(event)] = &steps[..] else { unreachable!("{steps:?}") };
        (event.reason, event.message.clone())
    };
    let empty = "default/cj: timeZone must not be empty string, omit the field to use the local time zone of the KubeRay operator";
    assert_eq!(message("timeZone", json!("")), ("InvalidRayCronJobSpec", empty.to_owned()));
    let suspended = "RayCronJob suspended, no new RayJobs will be created";
    assert_eq!(message("suspend", json!(true)), ("SuspendedRayCronJob", suspended.to_owned()));
}

proptest! {
    #[test]
    fn any_schedule_is_read_or_refused(text in "[0-9*/,@a-z -]{0,24}", base in 0_i64..4_000_000_000) {
        if let Ok(schedule) = CronSchedule::parse(&text) {
            let base = Timestamp::from_second(base).expect("in range");
            let next = schedule.next(base, &TimeZone::UTC);
            prop_assert!(next.is_none_or(|next| next > base));
        }
    }
}
