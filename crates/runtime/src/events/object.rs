//! The Event object: within the limits of the API server, which refuses what is longer.

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

use super::EventRecord;
use crate::watch::Key;

/// The longest note, in bytes.
const NOTE: usize = 1024;
/// The longest action, reason and instance, in bytes.
const WORD: usize = 128;
/// The longest name of an object, in bytes.
const NAME: usize = 253;
/// Where events about objects without a namespace are.
const NO_NAMESPACE: &str = "default";

/// Who tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// The part of the program, a qualified name such as `example.com/controller`.
    pub component: String,
    /// The process.
    pub instance: String,
}

/// Cuts what would be refused for its length, so that two that are equal on the wire are equal before.
pub(super) fn within_limits(mut news: EventRecord) -> EventRecord {
    cut(&mut news.note, NOTE);
    cut(&mut news.action, WORD);
    cut(&mut news.reason, WORD);
    news
}

/// Namespace and name of a new Event: that of the object, and the time of the first of its kind.
pub(super) fn key(news: &EventRecord, nanosecond: i128) -> Key {
    let end = format!(".{nanosecond:x}");
    let mut name = news.regarding.key.name.to_string();
    cut(&mut name, NAME - end.len());
    // A part of a name ends with a letter or a digit.
    let name = name.trim_end_matches(['.', '-']);
    let namespace = news.regarding.key.namespace.as_deref().unwrap_or(NO_NAMESPACE);
    Key { namespace: Some(namespace.into()), name: format!("{name}{end}").into() }
}

/// The Event of the first of its kind.
pub(super) fn event(reporter: &Reporter, news: &EventRecord, key: &Key, at: Timestamp) -> Event {
    let text = |text: &str| Some(text.to_owned());
    let mut instance = reporter.instance.clone();
    cut(&mut instance, WORD);
    let about = &news.regarding;
    Event {
        metadata: ObjectMeta {
            name: text(&key.name),
            namespace: key.namespace.as_deref().map(str::to_owned),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(at)),
        reporting_controller: text(&reporter.component),
        reporting_instance: Some(instance),
        action: text(&news.action),
        reason: text(&news.reason),
        note: text(&news.note),
        type_: text(news.event_type.word()),
        regarding: Some(ObjectReference {
            api_version: text(&about.api_version),
            kind: text(&about.kind),
            namespace: about.key.namespace.as_deref().map(str::to_owned),
            name: text(&about.key.name),
            uid: Some(about.uid.clone()).filter(|uid| !uid.is_empty()),
            ..ObjectReference::default()
        }),
        ..Event::default()
    }
}

/// Shortens a text to whole characters within `most` bytes.
fn cut(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventType, Regarding};

    fn news(namespace: Option<&str>, name: &str, note: &str) -> EventRecord {
        let key = Key { namespace: namespace.map(Into::into), name: name.into() };
        let regarding = Regarding {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            key,
            uid: "u".to_owned(),
        };
        EventRecord {
            regarding,
            event_type: EventType::Normal,
            action: "Act".to_owned(),
            reason: "Why".to_owned(),
            note: note.to_owned(),
        }
    }

    #[test]
    fn a_note_ends_with_a_whole_character_within_the_limit() {
        for (note, length) in [
            ("short".to_owned(), 5),
            ("x".repeat(1024), 1024),
            ("x".repeat(1025), 1024),
            ("ä".repeat(512), 1024),
            (format!("x{}", "ä".repeat(600)), 1023),
            (format!("xx{}", "😀".repeat(300)), 1022),
        ] {
            let cut = within_limits(news(None, "n", &note)).note;
            assert_eq!(cut.len(), length);
            assert!(note.starts_with(&cut));
        }
    }

    #[test]
    fn a_name_is_a_name_whatever_the_object_is_called() {
        let time = 0x17f3_a1b2_c3d4_e5f6;
        let name = |object: &str| key(&news(Some("ns"), object, ""), time).name.into_string();
        assert_eq!(name("job"), "job.17f3a1b2c3d4e5f6");
        let long = name(&format!("{}.{}", "a".repeat(235), "b".repeat(17)));
        assert_eq!(long, format!("{}.17f3a1b2c3d4e5f6", "a".repeat(235)));
        assert_eq!(name(&"a".repeat(253)).len(), 253);
    }

    #[test]
    fn events_about_objects_without_a_namespace_are_in_the_default_one() {
        let reporter = Reporter { component: "c".to_owned(), instance: "i".repeat(200) };
        let at = Timestamp::UNIX_EPOCH;
        for (namespace, expected) in [(None, "default"), (Some("ns"), "ns")] {
            let news = news(namespace, "n", "m");
            let event = event(&reporter, &news, &key(&news, 1), at);
            assert_eq!(event.metadata.namespace.as_deref(), Some(expected));
            assert_eq!(event.regarding.and_then(|about| about.namespace).as_deref(), namespace);
            assert_eq!(event.reporting_instance.map(|one| one.len()), Some(128));
        }
    }
}
