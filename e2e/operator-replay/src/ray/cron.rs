//! What the official operator did with RayCronJobs, second by second.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use ray::{
    cron_job,
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

/// Seconds after which a step is over.
const QUIET: u32 = 8;

/// A RayCronJob and its RayJobs, second by second.
struct CronWorld {
    cron_job: Value,
    jobs: BTreeMap<String, Value>,
    events: Vec<(String, String)>,
    now: Timestamp,
    due: Option<Timestamp>,
    zone: TimeZone,
}

impl CronWorld {
    fn second(&mut self) {
        if self.due.is_some_and(|due| due <= self.now) {
            self.due = None;
            self.pass();
        }
        self.now += SignedDuration::from_secs(1);
    }

    fn pass(&mut self) {
        let settings = OperatorSettings::default();
        let mut answers = Vec::new();
        loop {
            let steps =
                cron_job::decide(&self.cron_job, &answers, self.now, Some(&self.zone), &settings);
            if !steps.iter().any(RayStep::is_order) {
                self.finish(steps);
                return;
            }
            for step in steps {
                let RayStep::Create(job) = step else { unreachable!("no other order") };
                let name = job["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                answers.push(if self.jobs.contains_key(&name) {
                    RayAnswer::Refused(RayRefusal { code: 409, message: "exists".to_owned() })
                } else {
                    RayAnswer::Done(job.clone().into())
                });
                self.jobs.entry(name).or_insert(job);
            }
        }
    }

    fn finish(&mut self, steps: Vec<RayStep>) {
        for step in steps {
            match step {
                RayStep::ReplaceStatus(status) => {
                    self.cron_job["status"] = status;
                    self.due = Some(self.now);
                }
                RayStep::Event(event) => {
                    self.events.push((event.reason.to_owned(), event.message));
                }
                RayStep::RequeueAfter(after) if self.due.is_none() => {
                    self.due = Some(self.now + SignedDuration::try_from(after).expect("short"));
                }
                _ => {}
            }
        }
    }
}

/// A RayJob without what depends on the time or on other programs.
fn reduced(job: &Value) -> Value {
    let mut metadata = job["metadata"].clone();
    metadata["annotations"]["ray.io/cronjob-scheduled-timestamp"] = json!("<time>");
    json!({
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
        "ownerReferences": metadata["ownerReferences"],
        "spec": without_empty(&job["spec"]),
    })
}

/// The official operator writes objects without a field as `{}`, and fields at their zero value.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let entries = map.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            let is_set = |value: &Value| *value != json!({}) && *value != json!(false);
            entries.filter(|(_, value)| is_set(value)).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

/// Replays a case that began at this second of a minute.
fn replay(case: &Value, second: u32) -> Vec<String> {
    let start: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
    let mut world = CronWorld {
        cron_job: Value::Null,
        jobs: BTreeMap::new(),
        events: Vec::new(),
        now: start + SignedDuration::from_secs(second.into()),
        due: None,
        zone: TimeZone::UTC,
    };
    let mut found = Vec::new();
    let mut n_expected = 0;
    for (index, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        let mut wait = QUIET;
        for operation in step["do"].as_array().into_iter().flatten() {
            match operation["op"].as_str().unwrap_or_default() {
                "create" => {
                    world.cron_job = operation["object"].clone();
                    let name = world.cron_job["metadata"]["name"].as_str().unwrap_or_default();
                    let uid = format!("<uid of RayCronJob/{name}>");
                    world.cron_job["metadata"]["uid"] = json!(uid);
                    world.cron_job["metadata"]["namespace"] = json!("<ns>");
                    world.cron_job["metadata"]["creationTimestamp"] = json!(world.now.to_string());
                    if operation["object"]["spec"]["timeZone"] == "Asia/Tokyo" {
                        world.zone = TimeZone::fixed(jiff::tz::offset(9));
                    }
                }
                "patch" => json_patch::merge(&mut world.cron_job, &operation["patch"]),
                "delete" => world.cron_job = Value::Null,
                "wait" => {
                    wait += u32::try_from(operation["seconds"].as_u64().unwrap_or(0)).unwrap_or(0);
                }
                _ => {}
            }
        }
        if world.cron_job.is_null() {
            continue;
        }
        let name = world.cron_job["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if let Some(stored) = step["put"].get(format!("RayCronJob/{name}")) {
            world.cron_job["spec"] = stored["spec"].clone();
        }
        world.due = Some(world.now);
        (0..wait).for_each(|_| world.second());
        let recorded = step["put"].as_object().into_iter().flatten();
        let recorded: Vec<&Value> =
            recorded.filter(|(id, _)| id.starts_with("RayJob/")).map(|(_, job)| job).collect();
        n_expected += recorded.len();
        if world.jobs.len() != n_expected {
            found.push(format!("step {index}: {n_expected} RayJobs, ours {}", world.jobs.len()));
        }
        let ours: Vec<Value> = world.jobs.values().map(reduced).collect();
        for theirs in recorded.into_iter().map(reduced).filter(|theirs| !ours.contains(theirs)) {
            found.push(format!("step {index}: no RayJob {theirs}\n  ours {ours:?}"));
        }
        for event in step["events"].as_array().into_iter().flatten() {
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            let is_ours = text("about").starts_with("RayCronJob/");
            if is_ours && !world.events.contains(&(text("reason"), text("message"))) {
                found.push(format!(
                    "step {index}: no event {}\n  ours {:?}",
                    text("message"),
                    world.events
                ));
            }
        }
    }
    found
}

/// What differs. The second of the minute at which a case began is not recorded, so each is tried.
pub(crate) fn differences(case: &Value) -> Vec<String> {
    let mut shortest: Option<Vec<String>> = None;
    for second in 0..60 {
        let found = replay(case, second);
        if found.is_empty() {
            return found;
        }
        if shortest.as_ref().is_none_or(|known| found.len() < known.len()) {
            shortest = Some(found);
        }
    }
    shortest.unwrap_or_default()
}
