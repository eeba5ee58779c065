//! Labels of series that are labels and annotations of objects: `metrics.customLabels`, gate CustomMetricLabels.
//!
//! A family about ClusterQueues has the configured labels of that kind, one about LocalQueues or Cohorts those of theirs. A value is
//! looked up when the series is served, so that a changed one leaves no old series and no counter begins again. Values of
//! objects that are not observed, and of keys that they do not have, are empty. With `trackedValues`, every other value of an observed
//! object, an empty one as well, is one and the same. Labels of Workloads stand after those of the object,
//! in families that count Workloads; their values are part of the series, because one queue has Workloads with many. Source:
//! docs/reference/kueue.md §6.2.

use std::collections::BTreeMap;

use cluster::control::measurement::LabelsAndAnnotations;
use config::{
    Configuration, CustomLabel, LabelSource, SourceKind,
    gates::{Gate, Gates},
};

use crds::names::UNTRACKED_METRIC_VALUE;

use super::{
    families::{
        ADMITTED_ACTIVE, Family, LQ_ADMISSION_WAIT, LQ_ADMITTED, LQ_ADMITTED_ACTIVE, LQ_PENDING,
        PENDING,
    },
    series::LabelValues,
};

/// The object that a series is about: its kind, and its name; of a LocalQueue `namespace/name`.
type SeriesObject = (SourceKind, String);

/// The labels of series that are labels and annotations of objects.
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

    /// Names of the labels of Workloads that a family has. A series has their values after those of the family.
    pub(super) fn workload_names(&self, family: &Family) -> Vec<String> {
        let labels = self.of_kind(SourceKind::Workload).filter(|_| counts_workloads(family));
        labels.map(|label| format!("custom_{}", label.name)).collect()
    }

    /// Whether series have labels of Workloads.
    pub(super) fn has_workload_labels(&self) -> bool {
        self.of_kind(SourceKind::Workload).next().is_some()
    }

    fn of_kind(&self, kind: SourceKind) -> impl Iterator<Item = &CustomLabel> {
        self.labels.iter().filter(move |label| label.source_kind == kind)
    }
}

/// Families with labels of Workloads, as upstream has them.
pub(super) fn counts_workloads(family: &Family) -> bool {
    let gauges = [&PENDING, &ADMITTED_ACTIVE, &LQ_PENDING, &LQ_ADMITTED_ACTIVE];
    gauges.contains(&family) || [&LQ_ADMITTED, &LQ_ADMISSION_WAIT].contains(&family)
}

fn value(label: &CustomLabel, of: &LabelsAndAnnotations) -> String {
    let value = match label.source() {
        LabelSource::Label(key) => of.labels.get(key),
        LabelSource::Annotation(key) => of.annotations.get(key),
    };
    let value = value.map(String::as_str).unwrap_or_default();
    let tracked = &label.tracked_values;
    let is_shown = tracked.is_empty() || tracked.iter().any(|one| one == value);
    (if is_shown { value } else { UNTRACKED_METRIC_VALUE }).to_owned()
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
