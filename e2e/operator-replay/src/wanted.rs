//! Differences on purpose. A rule holds in any case: it is recognised by what the recorded step shows.

mod component_steps;
#[cfg(test)]
mod documents;
mod ray_steps;
mod rules;
#[cfg(test)]
mod rules_tests;
mod wrapper_steps;

use serde_json::Value;

use self::rules::{GENERAL_RULES, GeneralRule};
use crate::verdict::Moment;

/// Rule, what the operators of this project do, and why.
const DIFFERENCES: &str = include_str!("../differences.tsv");

/// Differences that the comparison takes for equal, since they are in most cases of a kind: the name in the file, and a part of
/// the cases that show them.
const EQUAL: &[(&str, &str)] = &[("equal:health-of-a-proxy", HEALTH)];

/// The path of the health of a proxy of Serve.
pub(crate) const HEALTH: &str = "/-/healthz";

/// Rules and reasons of differences that the comparison of a case takes for equal.
pub(crate) fn taken_for_equal(case: &Value) -> impl Iterator<Item = &'static str> {
    let text = case.to_string();
    let shown = EQUAL.iter().filter(move |(_, part)| text.contains(part));
    shown.filter_map(|(name, _)| by_name(name))
}

/// Rule and reason that explain a difference of a step.
pub(crate) fn reason(moment: &Moment<'_>, difference: &str) -> Option<&'static str> {
    let explains = |rule: &&GeneralRule| (rule.explains)(difference) && (rule.concerns)(moment);
    GENERAL_RULES.iter().find(explains).and_then(|rule| by_name(rule.name))
}

/// Rule and reason of a row.
fn by_name(key: &str) -> Option<&'static str> {
    lines().find(|(name, _)| *name == key).map(|it| it.1)
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    DIFFERENCES.lines().filter_map(|line| line.split_once('\t'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn rows(prefix: &str) -> usize {
        lines().filter(|(name, _)| name.starts_with(prefix)).count()
    }

    #[test]
    fn each_general_rule_stands_in_the_file() {
        let general = GENERAL_RULES.iter().map(|rule| rule.name);
        for name in general.chain(EQUAL.iter().map(|(name, _)| *name)) {
            assert!(by_name(name).is_some(), "{name}");
        }
        assert_eq!((rows("any:"), rows("equal:")), (GENERAL_RULES.len(), EQUAL.len()));
    }

    #[test]
    fn each_row_has_a_case_a_rule_and_a_reason() {
        let mut seen = BTreeSet::new();
        for line in DIFFERENCES.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            assert!(fields.len() == 3 && fields.iter().all(|it| !it.is_empty()), "{line}");
            assert!(seen.insert(fields[0]), "{line}");
        }
    }

    #[test]
    fn a_difference_that_is_taken_for_equal_is_counted() {
        let asks = json!({"steps": [{"requests": ["GET http://h:8000/-/healthz"]}]});
        assert_eq!(taken_for_equal(&asks).count(), 1);
        assert_eq!(taken_for_equal(&json!({"steps": []})).count(), 0);
    }
}
