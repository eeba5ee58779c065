//! The values of one process, by family and labels. Series that are not set any more can be removed, also by a part of their
//! labels.

use std::{collections::BTreeMap, ops::Bound};

use prometheus_client::{
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

use super::{
    custom_labels::CustomLabels,
    families::{ALL, Family, FamilyType, MULTI_KUEUE, WORKERS},
};

/// Values of the labels of a family, in its order; then those of labels of Workloads, if the family has any.
pub(super) type LabelValues = Vec<String>;

/// The values of one process, by family and labels.
#[derive(Debug)]
pub(super) struct Series {
    role: &'static str,
    families: BTreeMap<(&'static str, bool), BTreeMap<LabelValues, Value>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(f64),
    Histogram { sum: f64, counts: Vec<u64> },
}

impl Series {
    pub(super) fn new(role: &'static str) -> Self {
        Self { role, families: BTreeMap::new() }
    }

    /// Sets a gauge.
    pub(super) fn set(&mut self, family: &'static Family, labels: LabelValues, value: f64) {
        self.family(family).insert(labels, Value::Number(value));
    }

    /// Adds one to a counter.
    pub(super) fn count(&mut self, family: &'static Family, labels: LabelValues) {
        let value = self.family(family).entry(labels).or_insert(Value::Number(0.0));
        if let Value::Number(number) = value {
            *number += 1.0;
        }
    }

    /// Adds an observation to a histogram.
    pub(super) fn observe(&mut self, family: &'static Family, labels: LabelValues, seconds: f64) {
        let FamilyType::Histogram(buckets) = family.family_type else {
            return;
        };
        let bounds = buckets.bounds();
        let none = || Value::Histogram { sum: 0.0, counts: vec![0; bounds.len() + 1] };
        if let Value::Histogram { sum, counts } =
            self.family(family).entry(labels).or_insert_with(none)
        {
            let bucket = bounds.iter().position(|bound| seconds <= *bound);
            let bucket = bucket.unwrap_or(bounds.len());
            counts[bucket] += 1;
            *sum += seconds;
        }
    }

    /// Removes the series of every family whose labels of these names have these values.
    pub(super) fn remove(&mut self, wanted: &[(&str, &str)]) {
        for family in ALL.iter().chain(MULTI_KUEUE).chain(WORKERS) {
            self.remove_from(family, wanted);
        }
    }

    /// Removes the series of one family in which labels of these names have these values.
    pub(super) fn remove_from(&mut self, family: &'static Family, wanted: &[(&str, &str)]) {
        let position = |name: &str| family.labels.iter().position(|label| *label == name);
        let places: Option<Vec<(usize, &str)>> =
            wanted.iter().map(|(name, value)| Some((position(name)?, *value))).collect();
        // A family without one of the labels is about something else.
        let Some(mut places) = places else {
            return;
        };
        places.sort_unstable();
        let concerned = |labels: &LabelValues| {
            places.iter().all(|(at, value)| labels.get(*at).is_some_and(|one| one == value))
        };
        let range = range_of(&places);
        self.family(family).extract_if(range, |labels, _| concerned(labels)).for_each(drop);
    }

    /// Writes those of the families that have series.
    pub(super) fn encode(
        &self,
        families: &[&Family],
        custom: &CustomLabels,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        for family in families {
            let Some(series) = self.families.get(&id(family)).filter(|all| !all.is_empty()) else {
                continue;
            };
            let metric_type = match family.family_type {
                FamilyType::Counter => MetricType::Counter,
                FamilyType::Gauge => MetricType::Gauge,
                FamilyType::Histogram(_) => MetricType::Histogram,
            };
            let mut encoder =
                encoder.encode_descriptor(family.name, family.help, None, metric_type)?;
            let (added, of_workloads) = (custom.names(family), custom.workload_names(family));
            for (values, value) in series {
                let own = family.labels.iter().copied().zip(values.iter().map(String::as_str));
                let added_values = custom.values(family, values);
                let added = added.iter().enumerate().map(|(at, name)| {
                    let value = added_values.and_then(|values| values.get(at));
                    (name.as_str(), value.map(String::as_str).unwrap_or_default())
                });
                let of_workload = values.iter().skip(family.labels.len()).map(String::as_str);
                let of_workload = of_workloads.iter().map(String::as_str).zip(of_workload);
                let role = ("replica_role", self.role);
                let labels = own.chain(added).chain(of_workload).chain([role]);
                let labels: Vec<(&str, &str)> = labels.collect();
                let mut one = encoder.encode_family(&labels)?;
                match (family.family_type, value) {
                    (FamilyType::Counter, Value::Number(number)) => {
                        one.encode_counter::<NoLabelSet, _, f64>(number, None)?;
                    }
                    (FamilyType::Histogram(buckets), Value::Histogram { sum, counts }) => {
                        let bounds = buckets.bounds().into_iter().chain([f64::INFINITY]);
                        let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
                        let count = counts.iter().sum();
                        one.encode_histogram::<NoLabelSet>(*sum, count, &buckets, None)?;
                    }
                    (_, Value::Number(number)) => one.encode_gauge(number)?,
                    (_, Value::Histogram { .. }) => {}
                }
            }
        }
        Ok(())
    }

    fn family(&mut self, family: &'static Family) -> &mut BTreeMap<LabelValues, Value> {
        self.families.entry(id(family)).or_default()
    }
}

/// Where series with these values stand, by the position of the label. First labels narrow the range, so that the series of one
/// queue are found without a walk over those of all others.
fn range_of(places: &[(usize, &str)]) -> (Bound<LabelValues>, Bound<LabelValues>) {
    let first = places.iter().enumerate().take_while(|(n, (at, _))| n == at);
    let prefix: LabelValues = first.map(|(_, (_, value))| (*value).to_owned()).collect();
    let mut end = prefix.clone();
    let Some(last) = end.last_mut() else {
        return (Bound::Unbounded, Bound::Unbounded);
    };
    // The least text above the last value.
    last.push('\0');
    (Bound::Included(prefix), Bound::Excluded(end))
}

/// A counter and a gauge may have one name, because the encoder adds the suffix of counters.
fn id(family: &Family) -> (&'static str, bool) {
    (family.name, family.family_type == FamilyType::Counter)
}

#[cfg(test)]
mod tests {
    use super::super::families::{LQ_UNADMITTED, STATUS};
    use super::*;

    fn left(family: &'static Family, all: &[&[&str]], wanted: &[(&str, &str)]) -> Vec<String> {
        let mut series = Series::new("standalone");
        for labels in all {
            let labels = labels.iter().map(|&one| one.to_owned()).collect();
            series.set(family, labels, 1.0);
        }
        series.remove_from(family, wanted);
        series.family(family).keys().map(|labels| labels.join(" ")).collect()
    }

    #[test]
    fn only_series_with_all_values_are_removed() {
        let all: &[&[&str]] = &[&["a", "active"], &["a", "pending"], &["a0", "active"], &["b", ""]];
        assert_eq!(left(&STATUS, all, &[("cluster_queue", "a")]), ["a0 active", "b "]);
        let wanted = [("status", "active"), ("cluster_queue", "a")];
        assert_eq!(left(&STATUS, all, &wanted), ["a pending", "a0 active", "b "]);
        assert_eq!(left(&STATUS, all, &[("status", "active")]), ["a pending", "b "]);
        assert_eq!(left(&STATUS, all, &[("cohort", "a")]).len(), 4, "no label of the family");
        assert!(left(&STATUS, all, &[]).is_empty());
        let all: &[&[&str]] = &[&["ns", "lq", "a", "", ""], &["ns", "lq", "b", "", ""]];
        assert_eq!(left(&LQ_UNADMITTED, all, &[("cluster_queue", "a")]), ["ns lq b  "]);
    }
}
