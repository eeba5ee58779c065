//! Explanations of pending Workloads, from the Events of the replica that leads (docs/reference/kueue.md §6.1).
//!
//! Only a replica that does not lead watches them: API servers have no watch cache for Events, so each such watch costs them the
//! decoding of every Event of the cluster.

use std::sync::Arc;

use crds::{decode::Decode, names::reasons::ADMISSION_EXPLAINED};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use runtime::{
    Stop,
    watch::{ApiResource, Change, Config, Key, KindDecoder, Stores, Watch, WatchEnd},
};
use tokio::sync::mpsc;

/// Events that wait to be handled.
const WAITING: usize = 16;

/// An Event about a pending Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExplainedEvent {
    pub(super) workload: Key,
    pub(super) uid: String,
    pub(super) text: Arc<str>,
    /// The last occurrence.
    pub(super) at: Timestamp,
}

impl ExplainedEvent {
    fn decode(text: &str) -> Result<Self, serde_json::Error> {
        let event = Event::decode_text(text)?;
        let about = event.involved_object;
        let last = event.series.and_then(|series| series.last_observed_time).or(event.event_time);
        Ok(Self {
            workload: Key {
                namespace: about.namespace.map(Into::into),
                name: about.name.unwrap_or_default().into(),
            },
            uid: about.uid.unwrap_or_default(),
            text: event.message.unwrap_or_default().into(),
            at: last.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        })
    }
}

/// The Events of a list in the order of their times. Those of a watch come in the order of the writes, whatever the clocks of their
/// leaders.
pub(super) fn in_order(mut events: Vec<Arc<ExplainedEvent>>) -> Vec<Arc<ExplainedEvent>> {
    events.sort_by_key(|event| event.at);
    events
}

/// The watch of the Events, until `stop`, and what it reports.
pub(super) fn watch(
    stores: &Stores,
    stop: Stop,
) -> (impl Future<Output = WatchEnd> + Send + use<>, mpsc::Receiver<Change<ExplainedEvent>>) {
    let fields = format!("reason={ADMISSION_EXPLAINED},involvedObject.kind=Workload");
    let source = stores.source().with_config(Config::default().fields(&fields));
    let kind =
        KindDecoder { resource: &ApiResource::erase::<Event>(&()), decode: ExplainedEvent::decode };
    // Optional: without the right to read Events, explanations are empty until this replica leads.
    let watch = Watch::from_text("explanations", kind, &source, stores.metrics()).optional();
    let (sender, events) = mpsc::channel(WAITING);
    (watch.run(sender, stop), events)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_event_of_a_list_comes_last() {
        let event = |second| {
            Arc::new(ExplainedEvent {
                workload: Key { namespace: Some("ns".into()), name: "one".into() },
                uid: "u".to_owned(),
                text: "text".into(),
                at: Timestamp::from_second(second).expect("a time"),
            })
        };
        assert_eq!(in_order(vec![event(2), event(1)]), [event(1), event(2)]);
    }

    #[test]
    fn the_time_of_an_event_is_that_of_its_last_occurrence() {
        let mut event = json!({
            "metadata": {"namespace": "ns", "name": "one.1"},
            "involvedObject": {"kind": "Workload", "namespace": "ns", "name": "one", "uid": "u"},
            "message": "Admissible with +1 cpu in flavor default.",
            "eventTime": "2026-01-01T00:00:01.000000Z",
        });
        let decoded = |event: &serde_json::Value| ExplainedEvent::decode(&event.to_string());
        let once = decoded(&event).expect("an Event");
        assert_eq!(once.workload, Key { namespace: Some("ns".into()), name: "one".into() });
        assert_eq!(
            (once.uid.as_str(), &*once.text),
            ("u", "Admissible with +1 cpu in flavor default.")
        );
        assert_eq!(once.at, "2026-01-01T00:00:01Z".parse().expect("a time"));
        event["series"] = json!({"count": 2, "lastObservedTime": "2026-01-01T00:05:00.000000Z"});
        assert_eq!(
            decoded(&event).expect("an Event").at,
            "2026-01-01T00:05:00Z".parse().expect("a time")
        );
    }
}
