//! Labels of series that are labels and annotations of objects: `metrics.customLabels`, gate CustomMetricLabels.
//!
//! A family about ClusterQueues has the configured labels of that kind, one about LocalQueues or Cohorts those of theirs. A value is
//! looked up when the series is served, so that a changed one leaves no old series and no counter begins again. Values of
//! objects that are not observed, and of keys that they do not have, are empty. Source: docs/reference/kueue.md §6.2.

use std::collections::BTreeMap;

use cluster::control::measurement::LabelsAndAnnotations;
use config::{
    Configuration, CustomLabel, SourceKind,
    gates::{Gate, Gates},
};

use super::{families::Family, series::LabelValues};

/// The object that a series is about: its kind, and its name; of a LocalQueue `namespace/name`.
type SeriesObject = (SourceKind, String);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CustomLabels {
    labels: Vec<CustomLabel>,
    values: BTreeMap<SeriesObject, LabelValues>,
}

/// The labels that the configuration file adds to series.
pub(super) fn configured(file: &Configuration, gates: &Gates) -> Vec<CustomLabel> {
    let labels = file.metrics.custom_labels.clone();
    if gates.enabled(Gate::CustomMetricLabels) {
        return labels;
    }
    if !labels.is_empty() {
        tracing::warn!("metrics.customLabels have no effect without the gate CustomMetricLabels");
    }
    Vec::new()
}

impl CustomLabels {
    pub(super) fn new(labels: Vec<CustomLabel>) -> Self {
        Self { labels, values: BTreeMap::new() }
    }

    /// Takes the labels and annotations of an object.
    pub(super) fn observe(&mut self, kind: SourceKind, name: String, of: &LabelsAndAnnotations) {
        let values: LabelValues = self.of_kind(kind).map(|label| value(label, of)).collect();
        if !values.is_empty() {
            self.values.insert((kind, name), values);
        }
    }

    /// Forgets an object.
    pub(super) fn forget(&mut self, kind: SourceKind, name: String) {
        self.values.remove(&(kind, name));
    }

    /// Names of the labels that a family has more than its own.
    pub(super) fn names(&self, family: &Family) -> Vec<String> {
        let labels = object_labels(family).into_iter().flat_map(|(_, kind)| self.of_kind(kind));
        labels.map(|label| format!("custom_{}", label.name)).collect()
    }

    /// Values of these labels of one series; `None` if its object was not observed.
    pub(super) fn values(&self, family: &Family, series: &LabelValues) -> Option<&LabelValues> {
        if self.values.is_empty() {
            return None;
        }
        let (object, kind) = object_labels(family)?;
        let keys = family.labels.iter().zip(series).filter(|(label, _)| object.contains(label));
        let keys: Vec<&str> = keys.map(|(_, value)| value.as_str()).collect();
        self.values.get(&(kind, keys.join("/")))
    }

    fn of_kind(&self, kind: SourceKind) -> impl Iterator<Item = &CustomLabel> {
        self.labels.iter().filter(move |label| label.source_kind == kind)
    }
}

fn value(label: &CustomLabel, of: &LabelsAndAnnotations) -> String {
    let value = match &label.source_annotation_key {
        Some(key) => of.annotations.get(key),
        None => of.labels.get(label.source_label_key.as_ref().unwrap_or(&label.name)),
    };
    value.cloned().unwrap_or_default()
}

/// Labels that name an object, and its kind. The first kind whose labels a family has all is what the family is about: families of
/// LocalQueues may name the ClusterQueue as well, and those of ClusterQueues the Cohort.
const OBJECT_LABELS: [(&[&str], SourceKind); 4] = [
    (&["namespace", "name"], SourceKind::LocalQueue),
    (&["cluster_queue"], SourceKind::ClusterQueue),
    (&["preempting_cluster_queue"], SourceKind::ClusterQueue),
    (&["cohort"], SourceKind::Cohort),
];

fn object_labels(family: &Family) -> Option<(&'static [&'static str], SourceKind)> {
    OBJECT_LABELS.into_iter().find(|(all, _)| all.iter().all(|one| family.labels.contains(one)))
}
