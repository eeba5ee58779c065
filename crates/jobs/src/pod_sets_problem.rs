//! Pod sets that no Workload can have. A webhook refuses most jobs with such pod sets; one that came past it says what is wrong.

use std::collections::BTreeMap;

use crds::{
    v1beta2::{MAX_POD_SETS, PodSet},
    validation::labels::is_dns_label,
};

/// Why the API would refuse every Workload with these pod sets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PodSetsProblem {
    /// There is none. A Workload without pod sets would never be admitted.
    #[error("the job has no pod sets; at least one is needed")]
    NoPodSets,
    /// There are too many.
    #[error("the job has {n_sets} pod sets; at most {MAX_POD_SETS} are possible")]
    TooMany {
        /// Their number.
        n_sets: usize,
    },
    /// A name is not one that a pod set may have.
    #[error(
        "'{name}' cannot be the name of a pod set: at most 63 lower-case letters, digits and '-' are possible, with no '-' at the ends"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// Several have one name.
    #[error("{n_sets} pod sets of the job have the name '{name}'; each needs another one")]
    SameName {
        /// The name.
        name: String,
        /// Their number.
        n_sets: usize,
    },
}

/// The first problem of pod sets.
#[must_use]
pub fn problem(sets: &[PodSet]) -> Option<PodSetsProblem> {
    if sets.is_empty() {
        return Some(PodSetsProblem::NoPodSets);
    }
    if sets.len() > MAX_POD_SETS {
        return Some(PodSetsProblem::TooMany { n_sets: sets.len() });
    }
    if let Some(set) = sets.iter().find(|set| !is_dns_label(&set.name)) {
        return Some(PodSetsProblem::Name { name: set.name.clone() });
    }
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for set in sets {
        *by_name.entry(&set.name).or_default() += 1;
    }
    let (name, n_sets) = by_name.into_iter().find(|(_, n_sets)| *n_sets > 1)?;
    Some(PodSetsProblem::SameName { name: name.to_owned(), n_sets })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[String]) -> Option<String> {
        let set = |name: &String| PodSet { name: name.clone(), ..PodSet::default() };
        let sets: Vec<PodSet> = names.iter().map(set).collect();
        problem(&sets).map(|problem| problem.to_string())
    }

    #[test]
    fn pod_sets_are_counted_and_have_names_of_their_own() {
        let numbered = |count: usize| (0..count).map(|n| format!("w-{n}")).collect::<Vec<_>>();
        let none = "the job has no pod sets; at least one is needed";
        assert_eq!(found(&[]).as_deref(), Some(none));
        assert_eq!(found(&numbered(18)), None);
        let too_many = "the job has 19 pod sets; at most 18 are possible";
        assert_eq!(found(&numbered(19)).as_deref(), Some(too_many));
        for name in ["", "Node", "a.b", "a_b", "-a", "a-", &"a".repeat(64)] {
            let found = found(&["node".to_owned(), name.to_owned()]).unwrap_or_default();
            let expected = format!("'{name}' cannot be the name of a pod set: ");
            assert!(found.starts_with(&expected), "{name}: {found}");
        }
        let heads = vec!["head".to_owned(); 18];
        let same = "18 pod sets of the job have the name 'head'; each needs another one";
        assert_eq!(found(&heads).as_deref(), Some(same));
    }
}
