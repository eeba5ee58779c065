//! Topology assignments, stored by column so that tens of thousands of nodes fit into one object.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    names::labels::HOSTNAME,
    rules,
    schema::{PositiveInt, Text},
};

/// The domains of the pods of a pod set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["levels", "slices"]))]
pub struct TopologyAssignment {
    /// Levels from the broadest to the narrowest, as node label keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Text<0, 317>>", extend("minItems" = 1, "maxItems" = 16, "x-list" = "atomic"))]
    pub levels: Vec<String>,
    /// The domains, in slices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 1000, "x-list" = "atomic"))]
    pub slices: Vec<TopologyAssignmentSlice>,
}

/// A run of domains, stored by column.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["domainCount", "podCounts", "valuesPerLevel"], "x-kubernetes-validations" = rules::TOPOLOGY_SLICE))]
pub struct TopologyAssignmentSlice {
    /// Number of domains.
    #[serde(default)]
    #[schemars(extend("minimum" = 1))]
    pub domain_count: i32,
    /// Pods of each domain.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-validations" = rules::UNIVERSAL_OR_INDIVIDUAL))]
    pub pod_counts: TopologyAssignmentSlicePodCounts,
    /// Values of the domains, level by level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 16, "x-list" = "atomic"))]
    pub values_per_level: Vec<TopologyAssignmentSliceLevelValues>,
}

/// The number of pods per domain of a slice: one number for all domains, or one per domain.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyAssignmentSlicePodCounts {
    /// One for each domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<PositiveInt>", extend("minItems" = 1, "maxItems" = 100000, "x-list" = "atomic"))]
    pub individual: Vec<i32>,
    /// One for all domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1))]
    pub universal: Option<i32>,
}

/// The values of one level over all domains of a slice: one for all, or one for each.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::UNIVERSAL_OR_INDIVIDUAL))]
pub struct TopologyAssignmentSliceLevelValues {
    /// One for each domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub individual: Option<TopologyAssignmentSliceLevelIndividualValues>,
    /// One for all domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 63>")]
    pub universal: Option<String>,
}

/// One value for each domain, common prefix and suffix factored out.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["roots"]))]
pub struct TopologyAssignmentSliceLevelIndividualValues {
    /// Common beginning of all values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 63>")]
    pub prefix: Option<String>,
    /// The part between prefix and suffix, by domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Text<0, 63>>", extend("minItems" = 1, "maxItems" = 100000, "x-list" = "atomic"))]
    pub roots: Vec<String>,
    /// Common end of all values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<0, 63>")]
    pub suffix: Option<String>,
}

/// The most domains of an assignment: the limit of its lists. A slice with one value for all domains has no list, and
/// `domainCount` no bound in the schema.
const MOST_DOMAINS: usize = 100_000;

impl TopologyAssignment {
    /// Values and number of pods of every domain, in order; at most as many as a list may have.
    pub fn domains(&self) -> impl Iterator<Item = (Vec<String>, i32)> {
        let of_slice = |slice: &'_ TopologyAssignmentSlice| {
            0..usize::try_from(slice.domain_count).unwrap_or_default()
        };
        let places = self.slices.iter().flat_map(move |slice| {
            of_slice(slice).map(move |at| {
                let values = slice.values_per_level.iter().map(|level| level.of_domain(at));
                (values.collect(), slice.pod_counts.of_domain(at))
            })
        });
        places.take(MOST_DOMAINS)
    }

    /// Hostnames with the number of pods on each; none if the lowest level is another one.
    pub fn hosts(&self) -> impl Iterator<Item = (String, i32)> {
        let on_nodes = self.levels.last().is_some_and(|level| level == HOSTNAME);
        let domains = self.domains().filter(move |_| on_nodes);
        domains.filter_map(|(mut values, pods)| Some((values.pop()?, pods)))
    }
}

impl TopologyAssignmentSlicePodCounts {
    /// The pods of the domain at this index.
    #[must_use]
    pub fn of_domain(&self, at: usize) -> i32 {
        self.universal.or_else(|| self.individual.get(at).copied()).unwrap_or_default()
    }
}

impl TopologyAssignmentSliceLevelValues {
    /// The value of the domain at this index.
    #[must_use]
    pub fn of_domain(&self, at: usize) -> String {
        if let Some(value) = &self.universal {
            return value.clone();
        }
        let Some(values) = &self.individual else {
            return String::new();
        };
        let root = values.roots.get(at).map_or("", String::as_str);
        let prefix = values.prefix.as_deref().unwrap_or_default();
        let suffix = values.suffix.as_deref().unwrap_or_default();
        [prefix, root, suffix].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_domains_have_a_limit() {
        let slice = TopologyAssignmentSlice {
            domain_count: i32::MAX,
            pod_counts: TopologyAssignmentSlicePodCounts { universal: Some(1), individual: vec![] },
            values_per_level: vec![TopologyAssignmentSliceLevelValues {
                universal: Some("rack".to_owned()),
                individual: None,
            }],
        };
        let assignment = TopologyAssignment {
            levels: vec!["rack".to_owned()],
            slices: vec![slice.clone(), slice],
        };
        assert_eq!(assignment.domains().count(), MOST_DOMAINS);
        assert_eq!(assignment.domains().next(), Some((vec!["rack".to_owned()], 1)));
    }
}
