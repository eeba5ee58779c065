//! Explanations of pending Workloads, as control of this process has made them. Only a process that leads has any.

use std::{collections::BTreeMap, sync::Arc};

use cluster::control::AdmissionExplained;
use parking_lot::RwLock;
use runtime::watch::Key;

/// The explanations of pending Workloads, by Workload. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AdmissionExplanations(Arc<RwLock<BTreeMap<Key, Arc<str>>>>);

impl AdmissionExplanations {
    /// Takes over what a decision has published.
    pub fn update(&self, explained: Vec<AdmissionExplained>) {
        // Most decisions publish nothing.
        if explained.is_empty() {
            return;
        }
        let mut texts = self.0.write();
        for AdmissionExplained { workload, text } in explained {
            match text {
                Some(text) => texts.insert(workload, text),
                None => texts.remove(&workload),
            };
        }
    }

    /// The explanation of a Workload.
    #[must_use]
    pub fn get(&self, workload: &Key) -> Option<Arc<str>> {
        self.0.read().get(workload).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_stays_until_it_is_withdrawn() {
        let workload = Key { namespace: Some("ns".into()), name: "a".into() };
        let explained = |text: Option<&str>| {
            vec![AdmissionExplained { workload: workload.clone(), text: text.map(Into::into) }]
        };
        let explanations = AdmissionExplanations::default();
        explanations.update(explained(Some("one")));
        explanations.update(vec![]);
        assert_eq!(explanations.get(&workload).as_deref(), Some("one"));
        explanations.update(explained(None));
        assert_eq!(explanations.get(&workload), None);
    }
}
