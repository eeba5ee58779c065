//! The Event object, within the length limits of the API server.

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

use super::EventRecord;
use crate::watch::Key;

/// Maximum length of a note, in bytes.
const MAX_NOTE: usize = 1024;
/// Maximum length of an action, a reason and an instance, in bytes.
const MAX_WORD: usize = 128;
/// Maximum length of an object name, in bytes.
const MAX_NAME: usize = 253;
/// The namespace of events about cluster-scoped objects.
const CLUSTER_SCOPED_NAMESPACE: &str = "default";

/// The reporting controller and instance of an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// The controller, a qualified name such as `example.com/controller`.
    pub component: String,
    /// The instance of the controller, usually the process.
    pub instance: String,
}

/// Truncates the texts of a record to the limits, so that records which are equal in the API are equal in the cache.
pub(super) fn within_limits(mut record: EventRecord) -> EventRecord {
    truncate(&mut record.note, MAX_NOTE);
    truncate(&mut record.action, MAX_WORD);
    truncate(&mut record.reason, MAX_WORD);
    record
}

/// Namespace and name of a new Event: the name of the object with a timestamp in nanoseconds.
pub(super) fn key(record: &EventRecord, nanosecond: i128) -> Key {
    let end = format!(".{nanosecond:x}");
    let mut name = record.regarding.key.name.to_string();
    // Only the name of the object is cut: the end makes the name of the Event unique.
    truncate(&mut name, MAX_NAME - end.len());
    // A DNS label ends with a letter or a digit.
    let name = name.trim_end_matches(['.', '-']);
    // Events are namespaced even if the object is not; the API server accepts `default` for these.
    let namespace = record.regarding.key.namespace.as_deref().unwrap_or(CLUSTER_SCOPED_NAMESPACE);
    Key { namespace: Some(namespace.into()), name: format!("{name}{end}").into() }
}

/// The Event of the first record of a series.
pub(super) fn event(reporter: &Reporter, record: &EventRecord, key: &Key, at: Timestamp) -> Event {
    let text = |text: &str| Some(text.to_owned());
    let mut instance = reporter.instance.clone();
    truncate(&mut instance, MAX_WORD);
    let regarding = &record.regarding;
    Event {
        metadata: ObjectMeta {
            name: text(&key.name),
            namespace: key.namespace.as_deref().map(str::to_owned),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(at)),
        reporting_controller: text(record.controller.as_ref().unwrap_or(&reporter.component)),
        reporting_instance: Some(instance),
        action: text(&record.action),
        reason: text(&record.reason),
        note: text(&record.note),
        type_: text(record.event_type.word()),
        regarding: Some(ObjectReference {
            api_version: text(&regarding.api_version),
            kind: text(&regarding.kind),
            namespace: regarding.key.namespace.as_deref().map(str::to_owned),
            name: text(&regarding.key.name),
            uid: Some(regarding.uid.clone()).filter(|uid| !uid.is_empty()),
            resource_version: Some(regarding.version.clone()).filter(|one| !one.is_empty()),
            ..ObjectReference::default()
        }),
        ..Event::default()
    }
}

/// Truncates a text to at most `most` bytes, at a character boundary.
fn truncate(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventType, Regarding};

    fn record(namespace: Option<&str>, name: &str, note: &str) -> EventRecord {
        let key = Key { namespace: namespace.map(Into::into), name: name.into() };
        let regarding = Regarding {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            key,
            uid: "u".to_owned(),
            version: String::new(),
        };
        EventRecord {
            regarding,
            event_type: EventType::Normal,
            action: "Act".to_owned(),
            reason: "Why".to_owned(),
            note: note.to_owned(),
            controller: None,
        }
    }

    #[test]
    fn a_note_is_truncated_at_a_character_boundary() {
        for (note, length) in [
            ("short".to_owned(), 5),
            ("x".repeat(1024), 1024),
            ("x".repeat(1025), 1024),
            ("ä".repeat(512), 1024),
            (format!("x{}", "ä".repeat(600)), 1023),
            (format!("xx{}", "😀".repeat(300)), 1022),
        ] {
            let cut = within_limits(record(None, "n", &note)).note;
            assert_eq!(cut.len(), length);
            assert!(note.starts_with(&cut));
        }
    }

    #[test]
    fn an_event_name_is_valid_for_any_object_name() {
        let time = 0x17f3_a1b2_c3d4_e5f6;
        let name = |object: &str| key(&record(Some("ns"), object, ""), time).name.to_string();
        assert_eq!(name("job"), "job.17f3a1b2c3d4e5f6");
        let long = name(&format!("{}.{}", "a".repeat(235), "b".repeat(17)));
        assert_eq!(long, format!("{}.17f3a1b2c3d4e5f6", "a".repeat(235)));
        assert_eq!(name(&"a".repeat(253)).len(), 253);
    }

    #[test]
    fn events_of_cluster_scoped_objects_are_in_the_default_namespace() {
        let reporter = Reporter { component: "c".to_owned(), instance: "i".repeat(200) };
        let at = Timestamp::UNIX_EPOCH;
        for (namespace, expected) in [(None, "default"), (Some("ns"), "ns")] {
            let record = record(namespace, "n", "m");
            let event = event(&reporter, &record, &key(&record, 1), at);
            assert_eq!(event.metadata.namespace.as_deref(), Some(expected));
            assert_eq!(
                event.regarding.and_then(|regarding| regarding.namespace).as_deref(),
                namespace
            );
            assert_eq!(event.reporting_instance.map(|one| one.len()), Some(128));
        }
    }
}
