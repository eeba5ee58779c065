//! The events of a step against the recorded ones.
//!
//! An event is compared by its object, its reason and its type; of those about invalid specs also the message.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::normal::without_parser;

/// An event of ours, with the names of the recording.
pub(super) struct OurEvent {
    /// `Kind/name` of its object.
    pub(super) about: String,
    pub(super) reason: &'static str,
    pub(super) warning: bool,
    pub(super) message: String,
}

/// Object, reason, and whether it is a warning.
type EventKey<'a> = (&'a str, &'a str, bool);

/// What differs, and how many events are not compared because they depend on the delay of a watch.
pub(super) fn compare_events(ours: &[OurEvent], recorded: &[Value]) -> (Vec<String>, usize) {
    let theirs: BTreeSet<EventKey<'_>> = recorded.iter().map(recorded_key).collect();
    let own: BTreeSet<EventKey<'_>> =
        ours.iter().map(|it| (it.about.as_str(), it.reason, it.warning)).collect();
    let mut found = Vec::new();
    let mut n_exempt = 0;
    for key @ (about, reason, _) in theirs.difference(&own) {
        if is_race(key, &theirs) {
            n_exempt += 1;
        } else {
            found.push(format!("{about}: no event {reason}"));
        }
    }
    for key @ (about, reason, _) in own.difference(&theirs) {
        if is_late(key, &theirs) {
            n_exempt += 1;
        } else {
            found.push(format!("{about}: event {reason} is not recorded"));
        }
    }
    found.extend(ours.iter().filter_map(|event| other_message(event, recorded)));
    (found, n_exempt)
}

fn recorded_key(event: &Value) -> EventKey<'_> {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    (text("about"), text("reason"), event["type"] == "Warning")
}

/// Deletions of what is gone already, and creates of what is there, depend on the delay of a watch.
fn is_race((about, reason, _): &EventKey<'_>, theirs: &BTreeSet<EventKey<'_>>) -> bool {
    let succeeded = reason.replace("FailedToCreate", "Created");
    let succeeded = succeeded.replace("FailedToUpdate", "Updated");
    let is_there = |(other, of, _): &EventKey<'_>| other == about && *of == succeeded;
    reason.starts_with("FailedToDelete") || (succeeded != *reason && theirs.iter().any(is_there))
}

/// The official operator may fail to delete what the garbage collector took away before.
fn is_late((about, reason, _): &EventKey<'_>, theirs: &BTreeSet<EventKey<'_>>) -> bool {
    let failed = |(other, of, _): &EventKey<'_>| other == about && of.starts_with("FailedToDelete");
    reason.starts_with("Deleted") && theirs.iter().any(failed)
}

fn other_message(event: &OurEvent, recorded: &[Value]) -> Option<String> {
    let is_same = |it: &&Value| it["reason"] == event.reason && it["about"] == event.about;
    let theirs = recorded.iter().find(is_same).filter(|_| event.reason.starts_with("Invalid"))?;
    let theirs = theirs["message"].as_str().unwrap_or_default();
    (without_parser(theirs) != without_parser(&event.message))
        .then(|| format!("message\n  theirs {theirs}\n  ours   {}", event.message))
}
