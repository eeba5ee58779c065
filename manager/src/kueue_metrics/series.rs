//! The values of one process, by family and labels. Series that are not set any more can be removed, also by a part of their
//! labels.

use std::collections::BTreeMap;

use prometheus_client::{
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

use super::families::{ALL, Family, FamilyType};

/// Values of the labels of a family, in its order.
pub(super) type LabelValues = Vec<String>;

/// See the module.
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
        for family in ALL {
            self.remove_from(family, wanted);
        }
    }

    /// The same of one family.
    pub(super) fn remove_from(&mut self, family: &'static Family, wanted: &[(&str, &str)]) {
        let position = |name: &str| family.labels.iter().position(|label| *label == name);
        let places: Option<Vec<(usize, &str)>> =
            wanted.iter().map(|(name, value)| Some((position(name)?, *value))).collect();
        // A family without one of the labels is about something else.
        if let Some(places) = places {
            let concerned = |labels: &LabelValues| {
                places.iter().all(|(at, value)| labels.get(*at).is_some_and(|one| one == value))
            };
            self.family(family).retain(|labels, _| !concerned(labels));
        }
    }

    /// Writes every family that has series.
    pub(super) fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        for family in ALL {
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
            for (values, value) in series {
                let names = family.labels.iter().copied().chain(["replica_role"]);
                let values = values.iter().map(String::as_str).chain([self.role]);
                let labels: Vec<(&str, &str)> = names.zip(values).collect();
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

/// A counter and a gauge may have one name, because the encoder adds the suffix of counters.
fn id(family: &Family) -> (&'static str, bool) {
    (family.name, family.family_type == FamilyType::Counter)
}
