//! The Event about integrations that are enabled and not built.

use config::JobKinds;
use crds::names::reasons::INTEGRATION_NOT_BUILT;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

/// The Event about integrations that are enabled and not built; none if there are none. It regards the namespace of the manager.
pub(super) fn event_of_not_built(kinds: &JobKinds, namespace: &str) -> Option<EventRecord> {
    let names = kinds.not_built.join(", ");
    (!names.is_empty()).then(|| EventRecord {
        regarding: Regarding {
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            key: Key { namespace: None, name: namespace.into() },
            uid: String::new(),
        },
        event_type: EventType::Warning,
        action: INTEGRATION_NOT_BUILT.to_owned(),
        reason: INTEGRATION_NOT_BUILT.to_owned(),
        note: format!(
            "integrations.frameworks enables {names}, which this version does not have: such jobs run without quota"
        ),
        controller: None,
    })
}

#[cfg(test)]
mod tests {
    use ::jobs::Kinds;
    use config::Configuration;

    use super::*;

    fn event_of(not_built: &[&'static str]) -> Option<EventRecord> {
        let kinds = JobKinds::configured(&Configuration::default(), &Kinds::default());
        let kinds = JobKinds { not_built: not_built.to_vec(), ..kinds };
        event_of_not_built(&kinds, "kueue-system")
    }

    #[test]
    fn an_event_names_integrations_that_are_not_built() {
        let event = event_of(&["a", "b"]).expect("an Event");
        assert!(event.note.contains("enables a, b,"), "{}", event.note);
        assert_eq!(event_of(&[]), None);
    }
}
