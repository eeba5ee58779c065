//! Explanations of pending Workloads: those that control of this process makes while it leads, and until it leads those that
//! the Events of the leader have.

use std::{collections::BTreeMap, sync::Arc};

use cluster::control::AdmissionExplained;
use jiff::Timestamp;
use parking_lot::RwLock;
use runtime::{Stop, watch::Key};

/// The explanations of pending Workloads, by Workload. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AdmissionExplanations(Arc<ExplanationState>);

#[derive(Debug, Default)]
struct ExplanationState {
    texts: RwLock<BTreeMap<Key, ExplanationText>>,
    /// Cancelled when this process begins to lead.
    leads: Stop,
}

#[derive(Debug)]
struct ExplanationText {
    text: Arc<str>,
    /// The time of its Event; `None` for a text of this process.
    published_at: Option<Timestamp>,
}

impl AdmissionExplanations {
    /// This process leads from now on: its control explains every pending Workload again. Until then the texts of the former
    /// leader stay.
    pub(crate) fn lead(&self) {
        // Under the lock, so that an Event is taken before that or not at all.
        let _texts = self.0.texts.write();
        self.0.leads.cancel();
    }

    /// Cancelled when this process begins to lead.
    #[must_use]
    pub fn leads(&self) -> &Stop {
        &self.0.leads
    }

    /// Takes over what a decision has published.
    pub fn update(&self, explained: Vec<AdmissionExplained>) {
        // Most decisions publish nothing.
        if explained.is_empty() {
            return;
        }
        let mut texts = self.0.texts.write();
        for AdmissionExplained { workload, text } in explained {
            match text {
                Some(text) => {
                    texts.insert(workload, ExplanationText { text, published_at: None });
                }
                None => {
                    texts.remove(&workload);
                }
            }
        }
    }

    /// Takes over the text of an Event, unless this process leads or a later one is known.
    pub fn observe(&self, workload: Key, text: Arc<str>, published_at: Timestamp) {
        let mut texts = self.0.texts.write();
        let is_later = texts
            .get(&workload)
            .is_none_or(|known| known.published_at.is_some_and(|at| at <= published_at));
        if is_later && !self.0.leads.is_cancelled() {
            texts.insert(workload, ExplanationText { text, published_at: Some(published_at) });
        }
    }

    /// Removes the explanation of a Workload that is not pending any more, or for another reason.
    pub fn remove(&self, workload: &Key) {
        // Most Workloads have none.
        if self.0.texts.read().contains_key(workload) {
            self.0.texts.write().remove(workload);
        }
    }

    /// The explanation of a Workload.
    #[must_use]
    pub fn get(&self, workload: &Key) -> Option<Arc<str>> {
        self.0.texts.read().get(workload).map(|known| Arc::clone(&known.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Key {
        Key { namespace: Some("ns".into()), name: "a".into() }
    }

    fn explained(text: Option<&str>) -> Vec<AdmissionExplained> {
        vec![AdmissionExplained { workload: workload(), text: text.map(Into::into) }]
    }

    #[test]
    fn an_explanation_stays_until_it_is_withdrawn() {
        let explanations = AdmissionExplanations::default();
        explanations.update(explained(Some("one")));
        explanations.update(vec![]);
        assert_eq!(explanations.get(&workload()).as_deref(), Some("one"));
        explanations.update(explained(None));
        assert_eq!(explanations.get(&workload()), None);
    }

    #[test]
    fn of_several_events_the_latest_counts() {
        let explanations = AdmissionExplanations::default();
        let at = |second| Timestamp::from_second(second).expect("a time");
        let text = || explanations.get(&workload()).as_deref().map(str::to_owned);
        explanations.observe(workload(), "two".into(), at(2));
        explanations.observe(workload(), "one".into(), at(1));
        assert_eq!(text().as_deref(), Some("two"));
        explanations.observe(workload(), "three".into(), at(3));
        assert_eq!(text().as_deref(), Some("three"));
        explanations.remove(&workload());
        assert_eq!(text(), None);
    }

    #[test]
    fn a_process_that_leads_keeps_known_texts_and_takes_no_events() {
        let explanations = AdmissionExplanations::default();
        let at = Timestamp::UNIX_EPOCH;
        explanations.observe(workload(), "of the former leader".into(), at);
        explanations.lead();
        assert!(explanations.leads().is_cancelled());
        explanations.observe(workload(), "late".into(), at);
        assert_eq!(explanations.get(&workload()).as_deref(), Some("of the former leader"));
        explanations.update(explained(Some("own")));
        assert_eq!(explanations.get(&workload()).as_deref(), Some("own"));
    }
}
