//! Topology assignments: a list of domains in v1beta1, columns in v1beta2.
//!
//! Any encoding that decodes to the same domains in the same order is valid. A slice has one value where all its domains share
//! it, and a common prefix and suffix where they differ. Node names often start with the name of a node pool, so the domains
//! are also encoded as runs with a longer prefix each, and the shorter encoding is used. Tens of thousands of nodes fit into
//! one object.

use serde_json::{Value, json};

use super::Object;
use crate::{json::items, schema_check::Mismatch, v1beta1, v1beta2};

/// The bound on the columns of one slice.
const DOMAINS_PER_SLICE: usize = 100_000;

/// The bound on slices.
const MOST_SLICES: usize = 1000;

type TopologyDomain = v1beta1::TopologyDomainAssignment;

/// Encodes domains as slices. Invalid input stays, and the decoder refuses it.
pub(super) fn compress(assignment: &Object) -> Object {
    match serde_json::from_value(Value::Object(assignment.clone())) {
        Ok(assignment) => object(json!(slices(&assignment))),
        Err(_) => assignment.clone(),
    }
}

/// Decodes slices to domains. Invalid input stays, and the decoder refuses it.
pub(super) fn expand(assignment: &Object) -> Object {
    match serde_json::from_value(Value::Object(assignment.clone())) {
        Ok(assignment) => object(json!(domains(&assignment))),
        Err(_) => assignment.clone(),
    }
}

/// Checks that each domain of a v1beta1 assignment has a value for each level: a slice has a value of each domain in each of
/// its columns. Values beyond the levels are dropped.
pub(super) fn check_values(field: &str, assignment: &Value) -> Result<(), Mismatch> {
    let levels = items(&assignment["levels"]).len();
    let mut domains = items(&assignment["domains"]).iter().enumerate();
    match domains.find(|(_, domain)| items(&domain["values"]).len() < levels) {
        Some((at, _)) => Err(Mismatch {
            field: format!("{field}.domains[{at}].values"),
            expected: format!("a list with a value for each of {levels} levels"),
            found: "a shorter list",
        }),
        None => Ok(()),
    }
}

impl From<&v1beta1::TopologyAssignment> for v1beta2::TopologyAssignment {
    fn from(assignment: &v1beta1::TopologyAssignment) -> Self {
        slices(assignment)
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
    let encode = |runs: &[&[TopologyDomain]]| v1beta2::TopologyAssignment {
        levels: assignment.levels.clone(),
        slices: runs
            .iter()
            .flat_map(|run| run.chunks(DOMAINS_PER_SLICE))
            .map(|run| slice(run, levels))
            .collect(),
    };
    let whole = encode(&[&assignment.domains]);
    match runs_of_pools(&assignment.domains) {
        // Each run repeats its prefix and its other levels, so runs may be longer than one slice.
        Some(runs) => shorter(encode(&runs), whole),
        None => whole,
    }
}

fn shorter(
    a: v1beta2::TopologyAssignment,
    b: v1beta2::TopologyAssignment,
) -> v1beta2::TopologyAssignment {
    if json!(a).to_string().len() < json!(b).to_string().len() { a } else { b }
}

/// Runs of domains whose lowest values share a prefix that ends in `-`: the longest prefixes that give few enough runs.
fn runs_of_pools(domains: &[TopologyDomain]) -> Option<Vec<&[TopologyDomain]>> {
    let dashes = domains.iter().map(|domain| lowest(domain).matches('-').count()).max()?;
    // The longest prefixes first, because they leave the shortest rest of each name.
    (1..=dashes).rev().find_map(|dashes| {
        let same_pool = |a: &TopologyDomain, b: &TopologyDomain| {
            pool(lowest(a), dashes) == pool(lowest(b), dashes)
        };
        let runs: Vec<&[TopologyDomain]> = domains.chunk_by(same_pool).collect();
        // One run is the whole list, and the API allows no more slices than this.
        (2..=MOST_SLICES).contains(&runs.len()).then_some(runs)
    })
}

fn lowest(domain: &TopologyDomain) -> &str {
    domain.values.last().map_or("", String::as_str)
}

/// The text up to and with the dash of this number; all dashes of it if there are fewer.
fn pool(value: &str, dashes: usize) -> &str {
    let end = value.match_indices('-').take(dashes).last().map_or(0, |(at, _)| at + 1);
    value.get(..end).unwrap_or("")
}

fn slice(domains: &[TopologyDomain], levels: usize) -> v1beta2::TopologyAssignmentSlice {
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

fn pod_counts(domains: &[TopologyDomain]) -> v1beta2::TopologyAssignmentSlicePodCounts {
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
    let suffix = common_suffix(values);
    let heads: Vec<&str> = values.iter().filter_map(|value| value.strip_suffix(suffix)).collect();
    // Of what the suffix leaves, so that the two never overlap. Upstream shortens the prefix, too.
    let prefix = common_prefix(&heads);
    let roots =
        heads.iter().filter_map(|head| head.strip_prefix(prefix)).map(str::to_owned).collect();
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
    let domain = |(values, count)| v1beta1::TopologyDomainAssignment { count, values };
    v1beta1::TopologyAssignment {
        levels: assignment.levels.clone(),
        domains: assignment.domains().map(domain).collect(),
    }
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
            ("".into(), vec!["".into(), "a".into()], "aa".into())
        );
        assert_eq!(
            individual_of(&["abacacada", "abacada"]),
            ("ab".into(), vec!["ac".into(), "".into()], "acada".into())
        );
        assert_eq!(
            individual_of(&["ababa", "aba"]),
            ("".into(), vec!["ab".into(), "".into()], "aba".into())
        );
        // A prefix ends at a character boundary.
        assert_eq!(
            individual_of(&["éé", "ééé"]),
            ("".into(), vec!["".into(), "é".into()], "éé".into())
        );
        assert_eq!(
            individual_of(&["n-1.z", "n-21.z"]),
            ("n-".into(), vec!["".into(), "2".into()], "1.z".into()),
        );
    }

    fn assignment(names: &[String]) -> v1beta1::TopologyAssignment {
        let domain = |name: &String| TopologyDomain { count: 1, values: vec![name.clone()] };
        v1beta1::TopologyAssignment {
            levels: vec!["kubernetes.io/hostname".into()],
            domains: names.iter().map(domain).collect(),
        }
    }

    #[test]
    fn many_nodes_of_a_few_pools_are_encoded_by_pool() {
        let names: Vec<String> = ["gpu-a100-pool-1", "cpu-standard-pool-2"]
            .iter()
            .flat_map(|pool| (0..5000).map(move |node| format!("{pool}-{node:04}")))
            .collect();
        let encoded = slices(&assignment(&names));
        assert_eq!(encoded.slices.len(), 2);
        let size = json!(encoded).to_string().len();
        assert!(size < 8 * names.len(), "{size} bytes for {} nodes", names.len());
        assert_eq!(domains(&encoded), assignment(&names));
    }

    #[test]
    fn few_nodes_are_one_slice() {
        let names = ["pool-a-1", "pool-a-2", "pool-b-7"].map(str::to_owned);
        assert_eq!(slices(&assignment(&names)).slices.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn decoding_reverts_encoding(names in proptest::collection::vec("[a-c-]{0,6}", 0..40)) {
            let original = assignment(&names);
            proptest::prop_assert_eq!(domains(&slices(&original)), original);
        }
    }

    #[test]
    fn values_are_split_at_character_boundaries() {
        assert_eq!(
            individual_of(&["é1", "è1"]),
            ("".into(), vec!["é".into(), "è".into()], "1".into())
        );
    }
}
