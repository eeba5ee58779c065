//! Topology assignments: a list of domains in v1beta1, columns in v1beta2.
//!
//! Any encoding that decodes to the same domains in the same order is legal. Ours is one slice for every 100,000 domains,
//! one value where all domains share it, and the common prefix and suffix factored out where they differ.

use serde_json::{Value, json};

use super::Object;
use crate::{v1beta1, v1beta2};

/// The bound on the columns of one slice.
const DOMAINS_PER_SLICE: usize = 100_000;

/// From domains to slices; what cannot be read is left for the decoder to refuse.
pub(super) fn compress(assignment: &Object) -> Object {
    match serde_json::from_value(Value::Object(assignment.clone())) {
        Ok(assignment) => object(json!(slices(&assignment))),
        Err(_) => assignment.clone(),
    }
}

/// From slices to domains; what cannot be read is left for the decoder to refuse.
pub(super) fn expand(assignment: &Object) -> Object {
    match serde_json::from_value(Value::Object(assignment.clone())) {
        Ok(assignment) => object(json!(domains(&assignment))),
        Err(_) => assignment.clone(),
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn slices(assignment: &v1beta1::TopologyAssignment) -> v1beta2::TopologyAssignment {
    let levels = assignment.levels.len();
    v1beta2::TopologyAssignment {
        levels: assignment.levels.clone(),
        slices: assignment
            .domains
            .chunks(DOMAINS_PER_SLICE)
            .map(|run| slice(run, levels))
            .collect(),
    }
}

fn slice(
    domains: &[v1beta1::TopologyDomainAssignment],
    levels: usize,
) -> v1beta2::TopologyAssignmentSlice {
    let column = |level: usize| {
        let values =
            domains.iter().map(|domain| domain.values.get(level).map_or("", String::as_str));
        level_values(&values.collect::<Vec<_>>())
    };
    v1beta2::TopologyAssignmentSlice {
        domain_count: i32::try_from(domains.len()).unwrap_or(i32::MAX),
        pod_counts: pod_counts(domains),
        values_per_level: (0..levels).map(column).collect(),
    }
}

fn pod_counts(
    domains: &[v1beta1::TopologyDomainAssignment],
) -> v1beta2::TopologyAssignmentSlicePodCounts {
    let counts: Vec<i32> = domains.iter().map(|domain| domain.count).collect();
    match counts.split_first() {
        Some((first, rest)) if rest.iter().all(|count| count == first) => {
            v1beta2::TopologyAssignmentSlicePodCounts {
                universal: Some(*first),
                individual: vec![],
            }
        }
        _ => v1beta2::TopologyAssignmentSlicePodCounts { universal: None, individual: counts },
    }
}

fn level_values(values: &[&str]) -> v1beta2::TopologyAssignmentSliceLevelValues {
    match values.split_first() {
        Some((first, rest)) if rest.iter().all(|value| value == first) => {
            v1beta2::TopologyAssignmentSliceLevelValues {
                universal: Some((*first).to_owned()),
                individual: None,
            }
        }
        _ => v1beta2::TopologyAssignmentSliceLevelValues {
            universal: None,
            individual: Some(individual(values)),
        },
    }
}

fn individual(values: &[&str]) -> v1beta2::TopologyAssignmentSliceLevelIndividualValues {
    let prefix = common_prefix(values);
    let tails: Vec<&str> = values.iter().filter_map(|value| value.strip_prefix(prefix)).collect();
    let suffix = common_suffix(&tails);
    let roots =
        tails.iter().filter_map(|tail| tail.strip_suffix(suffix)).map(str::to_owned).collect();
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    v1beta2::TopologyAssignmentSliceLevelIndividualValues {
        prefix: given(prefix),
        roots,
        suffix: given(suffix),
    }
}

fn common_prefix<'a>(values: &[&'a str]) -> &'a str {
    let Some((first, rest)) = values.split_first() else {
        return "";
    };
    let shared = |value: &&str| {
        first
            .char_indices()
            .zip(value.chars())
            .find(|((_, a), b)| a != b)
            .map_or_else(|| first.len().min(value.len()), |((at, _), _)| at)
    };
    let length = rest.iter().map(shared).min().unwrap_or(0);
    first.get(..length).unwrap_or("")
}

fn common_suffix<'a>(values: &[&'a str]) -> &'a str {
    let Some((first, rest)) = values.split_first() else {
        return "";
    };
    let shared = |value: &&str| {
        first
            .chars()
            .rev()
            .zip(value.chars().rev())
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum()
    };
    let length: usize = rest.iter().map(shared).min().unwrap_or(0);
    first.get(first.len() - length..).unwrap_or("")
}

fn domains(assignment: &v1beta2::TopologyAssignment) -> v1beta1::TopologyAssignment {
    v1beta1::TopologyAssignment {
        levels: assignment.levels.clone(),
        domains: assignment.slices.iter().flat_map(slice_domains).collect(),
    }
}

fn slice_domains(
    slice: &v1beta2::TopologyAssignmentSlice,
) -> impl Iterator<Item = v1beta1::TopologyDomainAssignment> {
    let count = usize::try_from(slice.domain_count).unwrap_or_default();
    (0..count).map(|at| v1beta1::TopologyDomainAssignment {
        count: slice.pod_counts.of_domain(at),
        values: slice.values_per_level.iter().map(|level| level.of_domain(at)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn individual_of(values: &[&str]) -> (String, Vec<String>, String) {
        let found = individual(values);
        (found.prefix.unwrap_or_default(), found.roots, found.suffix.unwrap_or_default())
    }

    #[test]
    fn prefix_and_suffix_never_overlap() {
        assert_eq!(
            individual_of(&["aa", "aaa"]),
            ("aa".into(), vec!["".into(), "a".into()], "".into())
        );
        assert_eq!(
            individual_of(&["n-1.z", "n-21.z"]),
            ("n-".into(), vec!["".into(), "2".into()], "1.z".into()),
        );
    }

    #[test]
    fn values_are_cut_between_characters() {
        assert_eq!(
            individual_of(&["é1", "è1"]),
            ("".into(), vec!["é".into(), "è".into()], "1".into())
        );
    }
}
