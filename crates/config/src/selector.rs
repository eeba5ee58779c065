//! Label selectors of the configuration file.

use std::collections::BTreeMap;

use crds::meta::{LabelSelector, LabelSelectorRequirement};
use serde::Deserialize;

/// A label selector as in the Kubernetes API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConfiguredSelector {
    /// Labels with exact values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements; all must match.
    pub match_expressions: Vec<Requirement>,
}

/// One requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The label key.
    pub key: String,
    /// The operator.
    pub operator: Operator,
    /// The values.
    #[serde(default)]
    pub values: Vec<String>,
}

/// The operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
}

impl ConfiguredSelector {
    /// Whether `labels` match all requirements. An empty selector matches everything.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.holds(labels))
    }

    /// The selector as the API has it.
    pub(super) fn to_api(&self) -> LabelSelector {
        let requirement = |one: &Requirement| LabelSelectorRequirement {
            key: one.key.clone(),
            operator: one.operator.name().to_owned(),
            values: one.values.clone(),
        };
        LabelSelector {
            match_expressions: self.match_expressions.iter().map(requirement).collect(),
            match_labels: self.match_labels.clone(),
        }
    }
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In => listed,
            // As in Kubernetes, a label that is absent has none of the values.
            Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl Operator {
    /// The name in the file and in the API.
    fn name(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        }
    }
}
