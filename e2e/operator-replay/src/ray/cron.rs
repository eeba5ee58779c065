//! What the official operator did with RayCronJobs, second by second.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use ray::{
    cron_job,
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

use super::profile::settings;
use crate::operations;

/// Seconds after which a step is over.
const QUIET: u32 = 8;

/// A RayCronJob and its RayJobs, second by second.
struct CronWorld {
    cron_job: Value,
    jobs: BTreeMap<String, Value>,
    events: Vec<(String, String)>,
    now: Timestamp,
    due: Option<Timestamp>,
    settings: OperatorSettings,
}

impl CronWorld {
    fn begun_at(second: u32, settings: OperatorSettings) -> Self {
        let start: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
        Self {
            cron_job: Value::Null,
            jobs: BTreeMap::new(),
            events: Vec::new(),
            now: start + SignedDuration::from_secs(second.into()),
            due: None,
            settings,
        }
    }

    /// Does what the recording did.
    ///
    /// Only operations on the RayCronJob are played. The others concern RayJobs, their pods and Ray heads: none of them runs here, because
    /// no decision about a RayCronJob depends on them.
    fn take(&mut self, operation: &Value, stored: &Value) {
        let target = operation["target"].as_str().unwrap_or_default();
        let is_own = target.starts_with("RayCronJob/") && !self.cron_job.is_null();
        match operation["op"].as_str().unwrap_or_default() {
            "create" if operation["object"]["kind"] == "RayCronJob" => {
                self.create(&operation["object"]);
            }
            // The spec below is the one that came of it.
            "patch" | "jsonPatch" if is_own => {
                operations::patch(&mut self.cron_job, operation);
            }
            "delete" if is_own => self.cron_job = Value::Null,
            "wait" => {
                let seconds = operation["seconds"].as_u64().unwrap_or_default();
                (0..seconds).for_each(|_| self.second());
                return;
            }
            "waitFor" => return self.wait_for(operation, is_own),
            _ => return,
        }
        if !self.cron_job.is_null() {
            self.store(stored);
        }
    }

    /// Waits for a field of the RayCronJob. What is waited for in another object is not there.
    fn wait_for(&mut self, operation: &Value, is_own: bool) {
        for _ in 0..operation["timeout"].as_u64().unwrap_or(60) {
            if operations::holds(is_own.then_some(&self.cron_job), operation) {
                return;
            }
            self.second();
        }
    }

    fn create(&mut self, cron_job: &Value) {
        self.cron_job = cron_job.clone();
        let uid = format!("<uid of RayCronJob/{}>", self.name());
        let metadata = &mut self.cron_job["metadata"];
        metadata["uid"] = json!(uid);
        metadata["namespace"] = json!("<ns>");
        metadata["creationTimestamp"] = json!(self.now.to_string());
    }

    fn name(&self) -> &str {
        self.cron_job["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Takes the spec as it was stored. The operator sees the change at once.
    fn store(&mut self, stored: &Value) {
        if let Some(stored) = stored.get(format!("RayCronJob/{}", self.name())) {
            self.cron_job["spec"] = stored["spec"].clone();
        }
        self.due = Some(self.now);
    }

    /// Recorded RayJobs that this operator has not made.
    fn missing_jobs(&self, recorded: &[&Value]) -> Vec<String> {
        let ours: Vec<Value> = self.jobs.values().map(reduced).collect();
        let theirs = recorded.iter().map(|job| reduced(job));
        let missing = theirs.filter(|theirs| !ours.contains(theirs));
        missing.map(|theirs| format!("no RayJob {theirs}\n  ours {ours:?}")).collect()
    }

    /// Recorded Events about the RayCronJob that this operator has not published.
    fn missing_events(&self, step: &Value) -> Vec<String> {
        let mut missing = Vec::new();
        for event in step["events"].as_array().into_iter().flatten() {
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            let is_ours = text("about").starts_with("RayCronJob/");
            if is_ours && !self.events.contains(&(text("reason"), text("message"))) {
                missing.push(format!("no event {}\n  ours {:?}", text("message"), self.events));
            }
        }
        missing
    }

    fn second(&mut self) {
        // It may have been deleted.
        if self.due.is_some_and(|due| due <= self.now) && !self.cron_job.is_null() {
            self.due = None;
            self.pass();
        }
        self.now += SignedDuration::from_secs(1);
    }

    fn pass(&mut self) {
        let mut answers = Vec::new();
        loop {
            let steps = cron_job::decide(&self.cron_job, &answers, self.now, &self.settings);
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
    let settings = settings(case["profile"].as_str().unwrap_or_default());
    let mut world = CronWorld::begun_at(second, settings);
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for (index, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        for operation in operations::carried_out(step) {
            world.take(operation, &step["put"]);
        }
        if world.cron_job.is_null() {
            continue;
        }
        (0..QUIET).for_each(|_| world.second());
        let recorded = new_jobs(step, &mut known);
        if world.jobs.len() != known.len() {
            let (theirs, ours) = (known.len(), world.jobs.len());
            found.push(format!("step {index}: {theirs} RayJobs, ours {ours}"));
        }
        let missing = world.missing_jobs(&recorded).into_iter().chain(world.missing_events(step));
        found.extend(missing.map(|missing| format!("step {index}: {missing}")));
    }
    found
}

/// The RayJobs that the official operator made in a step, and that stayed or went. One that changed is not new.
fn new_jobs<'a>(step: &'a Value, known: &mut BTreeSet<&'a str>) -> Vec<&'a Value> {
    let recorded = ["put", "passed"].into_iter().flat_map(|part| step[part].as_object());
    let jobs = recorded.flatten().filter(|(id, job)| {
        id.starts_with("RayJob/") && !job["metadata"]["ownerReferences"].is_null()
    });
    jobs.filter(|(id, _)| known.insert(id)).map(|(_, job)| job).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_that_of_the_case() {
        for (zone, message) in [
            ("Mars/Base", "<ns>/cj: invalid time zone: unknown time zone Mars/Base"),
            ("/UTC", "<ns>/cj: invalid time zone: time: invalid location name"),
        ] {
            let object = json!({
                "apiVersion": "ray.io/v1",
                "kind": "RayCronJob",
                "metadata": {"name": "cj"},
                "spec": {
                    "schedule": "* * * * *",
                    "timeZone": zone,
                    "jobTemplate": {"clusterSelector": {"ray.io/cluster": "c"}},
                },
            });
            let event = json!({
                "about": "RayCronJob/cj", "reason": "InvalidRayCronJobSpec", "message": message,
            });
            let create = json!([{"op": "create", "object": object}]);
            let step = json!({"do": create, "put": {}, "events": [event]});
            let case = json!({"profile": "default", "steps": [step]});
            assert_eq!(differences(&case), Vec::<String>::new());
        }
    }

    #[test]
    fn an_operation_on_another_object_leaves_the_cron_job() {
        let cron_job = json!({"kind": "RayCronJob", "metadata": {"name": "cj"}, "spec": {"a": 1}});
        let mut world = CronWorld::begun_at(0, OperatorSettings::default());
        for operation in [
            json!({"op": "create", "object": cron_job}),
            json!({"op": "patch", "target": "RayJob/cj-1", "patch": {"spec": null}}),
            json!({"op": "delete", "target": "RayJob/cj-1"}),
            json!({"op": "waitFor", "target": "RayJob/cj-1", "field": "a", "value": "b", "timeout": 1}),
        ] {
            world.take(&operation, &Value::Null);
        }
        assert_eq!(world.cron_job["spec"], json!({"a": 1}));
    }

    #[test]
    fn a_ray_job_that_changed_is_not_new() {
        let owners = json!([{"kind": "RayCronJob"}]);
        let job = json!({"metadata": {"ownerReferences": owners}});
        let first = json!({"put": {"RayJob/a": job}, "passed": {"RayJob/b": job}});
        let second = json!({"put": {"RayJob/a": job, "RayJob/own": {}}});
        let mut known = BTreeSet::new();
        assert_eq!(new_jobs(&first, &mut known).len(), 2);
        assert_eq!(new_jobs(&second, &mut known).len(), 0);
    }
}
