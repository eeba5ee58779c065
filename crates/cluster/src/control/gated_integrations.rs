//! The Event about integrations that are enabled and whose feature gate is off.

use config::JobKinds;
use crds::names::reasons::INTEGRATION_GATE_OFF;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

/// An Event about the configuration of the manager. It regards the manager's namespace.
pub(super) fn namespace_event(
    namespace: &str,
    (event_type, reason): (EventType, &str),
    note: String,
) -> EventRecord {
    EventRecord {
        regarding: Regarding {
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            key: Key { namespace: None, name: namespace.into() },
            uid: String::new(),
            version: String::new(),
        },
        event_type,
        action: reason.to_owned(),
        reason: reason.to_owned(),
        note,
        controller: None,
    }
}

/// The Event about integrations whose feature gate is off; none if there are none. It regards the namespace of the manager.
pub(super) fn event_of_gated_integrations(
    kinds: &JobKinds,
    namespace: &str,
) -> Option<EventRecord> {
    let names = kinds.gated.join(", ");
    (!names.is_empty()).then(|| {
        let note = format!(
            "integrations.frameworks enables {names}, and a feature gate disables it: such jobs run without quota"
        );
        namespace_event(namespace, (EventType::Warning, INTEGRATION_GATE_OFF), note)
    })
}

#[cfg(test)]
mod tests {
    use ::jobs::Kinds;
    use config::{Configuration, gates::Gates};

    use super::*;

    fn event_of(gated: &[&'static str]) -> Option<EventRecord> {
        let kinds =
            JobKinds::configured(&Configuration::default(), &Gates::default(), &Kinds::default());
        let kinds = JobKinds { gated: gated.to_vec(), ..kinds };
        event_of_gated_integrations(&kinds, "kueue-system")
    }

    #[test]
    fn an_event_names_integrations_whose_gate_is_off() {
        let event = event_of(&["a", "b"]).expect("an Event");
        assert!(event.note.contains("enables a, b,"), "{}", event.note);
        assert_eq!(event_of(&[]), None);
    }
}
