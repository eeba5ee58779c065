//! The annotation of admission gates: names with a domain prefix, separated by commas.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::annotations::ADMISSION_GATED_BY;

use super::{Errors, FieldError, labels};

/// Annotations of an object.
pub type Annotations = BTreeMap<String, String>;

const LONGEST_GATE: usize = 63;

/// What a path may contain besides letters and digits.
const PATH_MARKS: &str = "/-._~%!$&'()*+,;=:";

fn field() -> String {
    format!("metadata.annotations[{ADMISSION_GATED_BY}]")
}

/// Errors of the gates as they are.
pub fn check(annotations: &Annotations) -> Errors {
    let Some(value) = annotations.get(ADMISSION_GATED_BY).filter(|value| !value.is_empty()) else {
        return vec![];
    };
    let mut seen = BTreeSet::new();
    let mut errors = Errors::new();
    for gate in value.split(',').map(str::trim) {
        if gate.is_empty() {
            errors.push(FieldError::invalid(field(), value, "cannot contain empty gate names"));
            continue;
        }
        // The form of a gate is reported once.
        if !seen.insert(gate) {
            let detail = format!("duplicate gate name: {gate}");
            errors.push(FieldError::invalid(field(), value, detail));
            continue;
        }
        errors.extend(check_gate(gate));
    }
    errors
}

fn check_gate(gate: &str) -> Errors {
    let mut errors = check_path(gate);
    if gate.len() > LONGEST_GATE {
        errors.push(FieldError::too_long(field(), LONGEST_GATE));
    }
    errors
}

/// A gate is a DNS subdomain, a slash, and the path of a URL.
fn check_path(gate: &str) -> Errors {
    let Some((domain, path)) =
        gate.split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![FieldError::invalid(field(), gate, detail)];
    };
    let mut errors: Errors = labels::subdomain_problems(domain)
        .into_iter()
        .map(|problem| FieldError::invalid(field(), domain, problem))
        .collect();
    if !path.chars().all(|c| c.is_ascii_alphanumeric() || PATH_MARKS.contains(c)) {
        let detail =
            "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.push(FieldError::invalid(field(), path, detail));
    }
    errors
}

/// Gates are set on creation and can only be removed.
pub fn check_update(new: &Annotations, old: &Annotations) -> Errors {
    let gates = |annotations: &Annotations| -> Option<BTreeSet<String>> {
        let value = annotations.get(ADMISSION_GATED_BY).filter(|value| !value.is_empty())?;
        Some(value.split(',').map(|gate| gate.trim().to_owned()).collect())
    };
    match (gates(new), gates(old)) {
        (Some(_), None) => {
            vec![FieldError::forbidden(field(), "cannot add admission gate after creation")]
        }
        (Some(new), Some(old)) if !new.is_subset(&old) => {
            vec![FieldError::forbidden(field(), "can only remove gates, not add new ones")]
        }
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(value: &str) -> Annotations {
        Annotations::from([(ADMISSION_GATED_BY.to_owned(), value.to_owned())])
    }

    fn refusals(value: &str) -> Vec<String> {
        let errors = check(&annotations(value));
        errors
            .iter()
            .map(|error| {
                error.to_string().split_once("]: ").unwrap_or_default().1.chars().take(60).collect()
            })
            .collect()
    }

    #[test]
    fn gates_have_a_domain_and_a_path() {
        for good in ["", "example.com/g", "a.b/c, d/e/f"] {
            assert_eq!(refusals(good), Vec::<String>::new(), "{good}");
        }
        assert_eq!(
            refusals("g"),
            ["Invalid value: \"g\": must be a domain-prefixed path (such as "]
        );
        assert_eq!(refusals("a/b,"), ["Invalid value: \"a/b,\": cannot contain empty gate names"]);
        assert_eq!(refusals("a/b, a/b"), ["Invalid value: \"a/b, a/b\": duplicate gate name: a/b"]);
        assert_eq!(
            refusals("g,g"),
            [
                "Invalid value: \"g\": must be a domain-prefixed path (such as ",
                "Invalid value: \"g,g\": duplicate gate name: g"
            ],
            "its form is wrong once"
        );
        assert_eq!(
            refusals("A/b"),
            ["Invalid value: \"A\": a lowercase RFC 1123 subdomain must cons"]
        );
        assert_eq!(
            refusals("a/b c"),
            ["Invalid value: \"b c\": Invalid path (regex used for validatio"]
        );
        assert_eq!(
            refusals(&format!("a/{}", "b".repeat(62))),
            ["Too long: may not be more than 63 bytes"]
        );
    }

    #[test]
    fn gates_can_only_be_removed() {
        let refused =
            |new: &str, old: &str| !check_update(&annotations(new), &annotations(old)).is_empty();
        assert!(refused("a/b", ""));
        assert!(refused("a/b,a/c", "a/b"));
        assert!(!refused("a/b", "a/c,a/b"));
        assert!(!refused("", "a/b"));
    }
}
