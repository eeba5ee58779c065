//! Explanations of pending Workloads: those that control of this process makes while it leads, and until it leads those that
//! the Events of the leader have.

use std::{collections::BTreeMap, sync::Arc};

use cluster::control::AdmissionExplained;
use parking_lot::RwLock;
use runtime::{Stop, watch::Key};

/// The explanations of pending Workloads, by Workload. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AdmissionExplanations(Arc<ExplanationState>);

#[derive(Debug, Default)]
struct ExplanationState {
    texts: RwLock<BTreeMap<Key, KnownExplanation>>,
    /// Cancelled when this process begins to lead.
    leads: Stop,
}

#[derive(Debug)]
struct KnownExplanation {
    text: Arc<str>,
    /// It comes from an Event of another process.
    is_observed: bool,
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
                    texts.insert(workload, KnownExplanation { text, is_observed: false });
                }
                None => {
                    texts.remove(&workload);
                }
            }
        }
    }

    /// Takes over the text of an Event, unless this process leads. Events come in the order in which they were written.
    pub fn observe(&self, workload: Key, text: Arc<str>) {
        let mut texts = self.0.texts.write();
        if !self.0.leads.is_cancelled() {
            texts.insert(workload, KnownExplanation { text, is_observed: true });
        }
    }

    /// Whether a Workload has the text of an Event. Most have none.
    #[must_use]
    pub fn is_observed(&self, workload: &Key) -> bool {
        self.0.texts.read().get(workload).is_some_and(|known| known.is_observed)
    }

    /// Removes the text of an Event about a Workload that is not pending any more, or for another reason. Control withdraws its own
    /// texts: it may observe the Workload earlier.
    pub fn remove_observed(&self, workload: &Key) {
        let mut texts = self.0.texts.write();
        if texts.get(workload).is_some_and(|known| known.is_observed) {
            texts.remove(workload);
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
    fn of_several_events_the_last_one_counts() {
        let explanations = AdmissionExplanations::default();
        let text = || explanations.get(&workload()).as_deref().map(str::to_owned);
        explanations.observe(workload(), "one".into());
        explanations.observe(workload(), "two".into());
        assert_eq!(text().as_deref(), Some("two"));
        explanations.remove_observed(&workload());
        assert_eq!(text(), None);
    }

    #[test]
    fn a_process_that_leads_keeps_known_texts_and_takes_no_events() {
        let explanations = AdmissionExplanations::default();
        explanations.observe(workload(), "of the former leader".into());
        explanations.lead();
        assert!(explanations.leads().is_cancelled());
        explanations.observe(workload(), "late".into());
        assert_eq!(explanations.get(&workload()).as_deref(), Some("of the former leader"));
        explanations.update(explained(Some("own")));
        explanations.remove_observed(&workload());
        assert_eq!(
            explanations.get(&workload()).as_deref(),
            Some("own"),
            "control withdraws its own"
        );
    }
}
