//! The Event about integrations that are enabled and whose feature gate is off.

use config::JobKinds;
use crds::names::reasons::INTEGRATION_GATE_OFF;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

/// The namespace of the manager, as what an Event about its configuration regards.
pub(super) fn regarding_namespace(name: &str) -> Regarding {
    Regarding {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        key: Key { namespace: None, name: name.into() },
        uid: String::new(),
    }
}

/// The Event about integrations whose feature gate is off; none if there are none. It regards the namespace of the manager.
pub(super) fn event_of_gated_integrations(
    kinds: &JobKinds,
    namespace: &str,
) -> Option<EventRecord> {
    let names = kinds.gated.join(", ");
    (!names.is_empty()).then(|| EventRecord {
        regarding: regarding_namespace(namespace),
        event_type: EventType::Warning,
        action: INTEGRATION_GATE_OFF.to_owned(),
        reason: INTEGRATION_GATE_OFF.to_owned(),
        note: format!(
            "integrations.frameworks enables {names}, and a feature gate disables it: such jobs run without quota"
        ),
        controller: None,
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
