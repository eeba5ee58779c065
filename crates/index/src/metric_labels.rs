//! Labels of metrics that come from Workloads (docs/reference/kueue.md §6.2).
//!
//! A rule names a label or an annotation, and the values that series may have. Every other value, and a missing one, is one and the
//! same value, so that users cannot make series without a bound. The values of one Workload are a set of labels; a Workload stores
//! the number of its set.

use std::collections::BTreeMap;

use crds::{names::UNTRACKED_METRIC_VALUE, v1beta2::Workload};

/// Where the value of a label comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataKey {
    /// A label of the object.
    Label(String),
    /// An annotation of the object.
    Annotation(String),
}

/// One label of metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadLabelRule {
    /// Where its value comes from.
    pub source: MetadataKey,
    /// The values that are shown.
    pub tracked: Vec<String>,
}

/// The labels of metrics that come from Workloads, in the order of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadLabelRules(pub Vec<WorkloadLabelRule>);

impl WorkloadLabelRules {
    /// The values of a Workload, one per rule.
    #[must_use]
    pub fn values(&self, workload: &Workload) -> Vec<String> {
        self.0.iter().map(|rule| rule.value(workload)).collect()
    }
}

impl WorkloadLabelRule {
    fn value(&self, workload: &Workload) -> String {
        let metadata = &workload.metadata;
        let (all, key) = match &self.source {
            MetadataKey::Label(key) => (&metadata.labels, key),
            MetadataKey::Annotation(key) => (&metadata.annotations, key),
        };
        let value = all.as_ref().and_then(|all| all.get(key)).map(String::as_str);
        let value = value.unwrap_or_default();
        let tracked = self.tracked.iter().any(|one| one == value);
        (if tracked { value } else { UNTRACKED_METRIC_VALUE }).to_owned()
    }
}

/// The number of a set of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LabelSetId(usize);

/// Sets of labels and their numbers. There are as many as the tracked values allow: at most 13 per label, times each other.
#[derive(Debug, Default)]
pub(crate) struct LabelSets {
    ids: BTreeMap<Vec<String>, LabelSetId>,
    values: Vec<Vec<String>>,
}

impl LabelSets {
    /// The number of a set; `None` without values, as no labels are configured.
    pub(crate) fn intern(&mut self, values: Vec<String>) -> Option<LabelSetId> {
        if values.is_empty() {
            return None;
        }
        if let Some(id) = self.ids.get(&values) {
            return Some(*id);
        }
        let id = LabelSetId(self.values.len());
        self.ids.insert(values.clone(), id);
        self.values.push(values);
        Some(id)
    }

    /// The values of a set.
    pub(crate) fn values(&self, id: LabelSetId) -> &[String] {
        self.values.get(id.0).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_are_not_tracked_and_missing_ones_are_one_value() {
        let rule = |source, tracked: &[&str]| WorkloadLabelRule {
            source,
            tracked: tracked.iter().map(|&one| one.to_owned()).collect(),
        };
        let rules = WorkloadLabelRules(vec![
            rule(MetadataKey::Label("type".to_owned()), &["training", "inference"]),
            rule(MetadataKey::Annotation("cost".to_owned()), &["", "7"]),
        ]);
        let values = |labels, annotations| {
            let metadata = json!({"labels": labels, "annotations": annotations});
            let workload = json!({"metadata": metadata, "spec": {"podSets": []}});
            rules.values(&serde_json::from_value(workload).expect("a Workload")).join(" ")
        };
        assert_eq!(values(json!({"type": "training"}), json!({"cost": "7"})), "training 7");
        let other = format!("{UNTRACKED_METRIC_VALUE} {UNTRACKED_METRIC_VALUE}");
        assert_eq!(values(json!({"type": "uid-1"}), json!({"cost": "8"})), other);
        // A tracked empty value stands for a missing one.
        assert_eq!(values(json!({}), json!({})), format!("{UNTRACKED_METRIC_VALUE} "));
    }
}
