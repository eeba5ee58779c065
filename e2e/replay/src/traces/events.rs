//! Events of a trace: each recorded one must be there at its end, with its words, and no further ones of Kueue's controllers.
//!
//! Events lag behind objects and are recorded once, so they are compared over the whole trace. One that was seen in one of two
//! recordings only may be there or not.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    case::{TraceCase, TraceChanges, TraceEvent, TraceOutcome},
    clusters::ReplayClusters,
    placeholders::TraceNames,
};
use crate::{
    compare::{Difference, Level},
    run::{ReplayTarget, plain},
};

/// How long the last ones are awaited.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How long those of a step are awaited before the next one: longer than the least time between two reasons of a pending Workload.
const STEP_TIMEOUT: Duration = Duration::from_secs(8);

/// Between two looks at the cluster.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Which recorded events are missing, or have other words, after all steps of a case, and which are there that were not recorded.
///
/// # Errors
/// If an API server cannot be reached.
pub(super) async fn differences(
    clusters: &ReplayClusters,
    case: &TraceCase,
    names: &TraceNames,
) -> anyhow::Result<Vec<Difference>> {
    let steps = || case.steps.iter().filter_map(|step| step.then.as_ref());
    let of_manager = RecordedEvents::of(steps().map(|then| then.of_manager()));
    let of_worker = RecordedEvents::of(steps().filter_map(|then| then.worker.as_ref()));
    let until = Instant::now() + TIMEOUT;
    let mut found = of_cluster(&clusters.manager, &of_manager, until, names).await?;
    if let Some(worker) = &clusters.worker {
        let there = of_cluster(worker, &of_worker, until, names).await?;
        let prefixed =
            |one: Difference| Difference { text: format!("worker: {}", one.text), ..one };
        found.extend(there.into_iter().map(prefixed));
    }
    Ok(found)
}

/// Waits for the events of a step: what the next one changes would come too early for some. Those that do not come are found at the
/// end of the case.
///
/// # Errors
/// If an API server cannot be reached.
pub(super) async fn settle(
    clusters: &ReplayClusters,
    then: &TraceOutcome,
    names: &TraceNames,
) -> anyhow::Result<()> {
    let until = Instant::now() + STEP_TIMEOUT;
    let of_manager = RecordedEvents::of([then.of_manager()].into_iter());
    of_cluster(&clusters.manager, &of_manager, until, names).await?;
    if let (Some(worker), Some(then)) = (&clusters.worker, &then.worker) {
        of_cluster(worker, &RecordedEvents::of([then].into_iter()), until, names).await?;
    }
    Ok(())
}

/// Waits for the recorded events of a cluster, and returns all differences.
async fn of_cluster(
    target: &ReplayTarget,
    recorded: &RecordedEvents<'_>,
    until: Instant,
    names: &TraceNames,
) -> anyhow::Result<Vec<Difference>> {
    loop {
        let present = present(target, names).await?;
        let mut found = recorded.missing(&present, names);
        if found.is_empty() || Instant::now() >= until {
            found.extend(recorded.others(&present, names));
            return Ok(found);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The events of one cluster over a whole trace.
struct RecordedEvents<'a> {
    /// Those that must be there.
    always: Vec<&'a TraceEvent>,
    /// Those that may be there.
    sometimes: Vec<&'a TraceEvent>,
}

impl<'a> RecordedEvents<'a> {
    fn of(changes: impl Iterator<Item = &'a TraceChanges>) -> Self {
        let mut all = Self { always: Vec::new(), sometimes: Vec::new() };
        for changes in changes {
            let (sometimes, always): (Vec<_>, Vec<_>) =
                changes.events.iter().partition(|event| changes.may_vary(&event.about));
            all.always.extend(always);
            all.sometimes.extend(sometimes.into_iter().chain(&changes.events_sometimes));
        }
        all
    }

    fn missing(&self, present: &[Value], names: &TraceNames) -> Vec<Difference> {
        self.always.iter().filter_map(|event| difference(event, present, names)).collect()
    }

    /// Events that were in no recording.
    fn others(&self, present: &[Value], names: &TraceNames) -> Vec<Difference> {
        let recorded = || self.always.iter().chain(&self.sometimes);
        let other = |one: &&Value| !recorded().any(|event| is(event, one, names));
        let other = present.iter().filter(is_of_kueue).filter(other).map(|one| {
            let about = &one["regarding"];
            let words = [&one["reason"], &about["kind"], &about["name"], &one["note"]];
            let [reason, kind, name, note] = words.map(text);
            format!("event {reason} about {kind}/{name} is not recorded: {note}")
        });
        // An object of a name that was there before has another uid.
        let distinct: BTreeSet<String> = other.collect();
        distinct.into_iter().map(|text| Difference { level: Level::Objects, text }).collect()
    }
}

async fn present(target: &ReplayTarget, names: &TraceNames) -> anyhow::Result<Vec<Value>> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", names.namespace());
    let reply = target.send(&plain("GET", &path, "application/json"), None).await?;
    Ok(reply.body["items"].as_array().cloned().unwrap_or_default())
}

/// Whether a controller of Kueue has reported an event. Those of Kubernetes are not recorded.
fn is_of_kueue(one: &&Value) -> bool {
    text(&one["reportingController"]).contains("kueue")
}

/// Whether an event is a recorded one, words included.
fn is(event: &TraceEvent, one: &Value, names: &TraceNames) -> bool {
    is_of_reason(event, one, names)
        && names.matches(&names.fill(&event.message), text(&one["note"]))
}

fn difference(event: &TraceEvent, present: &[Value], names: &TraceNames) -> Option<Difference> {
    let of_reason: Vec<&Value> =
        present.iter().filter(|one| is_of_reason(event, one, names)).collect();
    if of_reason.iter().any(|one| is(event, one, names)) {
        return None;
    }
    let message = names.fill(&event.message);
    let what = format!("event {} about {}", event.reason, event.about);
    Some(match of_reason.first() {
        None => Difference { level: Level::Objects, text: format!("{what} is not there") },
        Some(other) => Difference {
            level: Level::Words,
            text: format!(
                "{what} says\n      {}\n    instead of\n      {message}",
                text(&other["note"])
            ),
        },
    })
}

fn is_of_reason(event: &TraceEvent, one: &Value, names: &TraceNames) -> bool {
    let (kind, name) = event.about.split_once('/').unwrap_or_default();
    let about = &one["regarding"];
    // Which of several equal pods an event is about is a matter of chance.
    let is_about = about["kind"] == kind
        && (kind == "Pod" || names.matches(&names.fill(name), text(&about["name"])));
    is_about
        && one["reason"] == event.reason
        && one["type"] == event.event_type
        && one["action"] == event.action
        && one["reportingController"] == event.controller
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(message: &str) -> TraceEvent {
        TraceEvent {
            about: "Workload/job-j-<h5:1>".to_owned(),
            event_type: "Normal".to_owned(),
            reason: "Admitted".to_owned(),
            action: "Admitted".to_owned(),
            controller: "kueue-admission".to_owned(),
            message: message.to_owned(),
        }
    }

    fn stored(name: &str, note: &str) -> Value {
        json!({
            "regarding": {"kind": "Workload", "name": name}, "type": "Normal", "note": note,
            "reason": "Admitted", "action": "Admitted", "reportingController": "kueue-admission",
        })
    }

    #[test]
    fn an_event_is_found_by_what_it_is_about_and_its_words() {
        let mut names = TraceNames::of("t-1");
        names.bind("Workload", "job-j-<h5:1>", "job-j-0a1b2");
        let recorded = event("Admitted by ClusterQueue <ns>-cq, wait time was <duration>");
        let found = |present: Value| {
            let found = difference(&recorded, &[present], &names);
            found.map(|one| one.level)
        };
        let note = "Admitted by ClusterQueue t-1-cq, wait time was 3s";
        assert_eq!(found(stored("job-j-0a1b2", note)), None);
        assert_eq!(found(stored("job-j-99999", note)), Some(Level::Objects));
        assert_eq!(found(stored("job-j-0a1b2", "Admitted")), Some(Level::Words));
        let mut warning = stored("job-j-0a1b2", note);
        warning["type"] = json!("Warning");
        assert_eq!(found(warning), Some(Level::Objects));
    }

    #[test]
    fn an_event_that_was_not_recorded_is_a_difference() {
        let names = TraceNames::of("t-1");
        let note = "Admitted by ClusterQueue t-1-cq";
        let mut of_kubernetes = stored("job-j-0a1b2", "Scheduled");
        of_kubernetes["reportingController"] = json!("default-scheduler");
        let present = [stored("job-j-0a1b2", note), of_kubernetes];
        let texts = |changes: &TraceChanges| -> Vec<String> {
            let others = RecordedEvents::of([changes].into_iter()).others(&present, &names);
            others.into_iter().map(|one| one.text).collect()
        };
        let seen = vec![event("Admitted by ClusterQueue <ns>-cq")];
        let always = TraceChanges { events: seen.clone(), ..TraceChanges::default() };
        let sometimes = TraceChanges { events_sometimes: seen, ..TraceChanges::default() };
        assert_eq!(texts(&always), [""; 0]);
        assert_eq!(texts(&sometimes), [""; 0]);
        let text = format!("event Admitted about Workload/job-j-0a1b2 is not recorded: {note}");
        assert_eq!(texts(&TraceChanges::default()), [text]);
    }

    #[test]
    fn an_event_about_an_object_that_varies_may_be_there_or_not() {
        let changes = |varies: &[&str]| TraceChanges {
            events: vec![event("x")],
            varies: varies.iter().map(|of| (*of).to_owned()).collect(),
            ..TraceChanges::default()
        };
        let n_expected =
            |changes: &TraceChanges| RecordedEvents::of([changes].into_iter()).always.len();
        assert_eq!(n_expected(&changes(&[])), 1);
        assert_eq!(n_expected(&changes(&["Workload/job-j-<h5:1>"])), 0);
    }
}
