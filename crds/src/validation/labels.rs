//! The syntax of labels, with the messages of Kubernetes' API machinery.

use std::collections::BTreeMap;

use super::{Errors, FieldError};

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const CHARACTERS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SERVICE_NAME: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LONGEST_NAME: usize = 63;
const LONGEST_PREFIX: usize = 253;
/// Bytes of all annotations of an object.
const MOST_ANNOTATIONS: usize = 256 << 10;

/// What is wrong with a label key: an optional prefix, and a name.
pub fn key_problems(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let mut problems = Vec::new();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            problems.extend(
                prefix_problems(prefix).into_iter().map(|problem| format!("prefix part {problem}")),
            );
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LONGEST_NAME {
        problems.push(format!("name part {}", too_long(LONGEST_NAME)));
    }
    // An empty name has both problems, as in apimachinery.
    if !is_name(name) {
        problems.push(format!(
            "name part {CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME}')"
        ));
    }
    problems
}

/// What is wrong with a label value.
pub fn value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LONGEST_NAME {
        problems.push(too_long(LONGEST_NAME));
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({NAME})?')"
        ));
    }
    problems
}

fn prefix_problems(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        let mut problems = vec!["must be non-empty".to_owned()];
        problems.extend(subdomain_problems(prefix));
        return problems;
    }
    subdomain_problems(prefix)
}

/// What is wrong with a DNS subdomain.
pub fn subdomain_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > LONGEST_PREFIX {
        // Kubernetes words this one differently from the lengths of labels.
        problems.push(format!("must be no more than {LONGEST_PREFIX} characters"));
    }
    if !is_subdomain(text) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

/// What is wrong with the name of a Service, a DNS-1035 label.
pub fn service_name_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LONGEST_NAME {
        problems.push(too_long(LONGEST_NAME));
    }
    if !is_part(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        problems.push(SERVICE_NAME.to_owned());
    }
    problems
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} bytes")
}

fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(name.chars().next()) && edge(name.chars().last()) && name.chars().all(inner)
}

/// Whether a text is a DNS subdomain, its length aside.
fn is_subdomain(text: &str) -> bool {
    // As in apimachinery, the length of a single part is not bounded here.
    text.split('.').all(is_part)
}

/// Whether a text is a DNS label.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= LONGEST_NAME && is_part(text)
}

/// Whether a text is a part of a DNS name, its length aside.
fn is_part(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c == '-' || c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// Errors of a key, for a field that holds it.
pub fn check_key(field: &str, key: &str) -> Errors {
    key_problems(key).into_iter().map(|problem| FieldError::invalid(field, key, problem)).collect()
}

/// Errors of a value, for a field that holds it.
pub fn check_value(field: &str, value: &str) -> Errors {
    value_problems(value)
        .into_iter()
        .map(|problem| FieldError::invalid(field, value, problem))
        .collect()
}

/// Errors of labels: keys and values.
pub fn check_labels<T: AsRef<str>>(
    field: &str,
    labels: impl IntoIterator<Item = (T, T)>,
) -> Errors {
    let check = |(key, value): (T, T)| {
        [check_key(field, key.as_ref()), check_value(field, value.as_ref())].concat()
    };
    labels.into_iter().flat_map(check).collect()
}

/// Errors of annotations: keys, compared in lower case as in the API machinery, and the total size.
pub fn check_annotations(field: &str, annotations: &BTreeMap<String, String>) -> Errors {
    let problems = |key: &String| {
        let problems = key_problems(&key.to_lowercase());
        problems
            .into_iter()
            .map(|problem| FieldError::invalid(field, key, problem))
            .collect::<Errors>()
    };
    let mut errors: Errors = annotations.keys().flat_map(problems).collect();
    let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if size > MOST_ANNOTATIONS {
        errors.push(FieldError::too_long(field, MOST_ANNOTATIONS));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        for good in ["a", "a.b_c-D", "example.com/a", "9"] {
            assert_eq!(key_problems(good), Vec::<String>::new(), "{good}");
        }
        let starts = |key: &str| -> Vec<String> {
            let problems = key_problems(key);
            problems
                .iter()
                .map(|problem| {
                    problem.split(" (").next().unwrap_or_default().chars().take(40).collect()
                })
                .collect()
        };
        assert_eq!(
            starts(""),
            ["name part must be non-empty", "name part must consist of alphanumeric c"]
        );
        assert_eq!(starts("bad key"), ["name part must consist of alphanumeric c"]);
        assert_eq!(starts(&"r".repeat(64)), ["name part must be no more than 63 bytes"]);
        assert_eq!(starts("a/b/c"), ["a valid label key must consist of alphan"]);
        assert_eq!(
            starts("/a"),
            ["prefix part must be non-empty", "prefix part a lowercase RFC 1123 subdoma"]
        );
        assert_eq!(starts("A/a"), ["prefix part a lowercase RFC 1123 subdoma"]);
        assert_eq!(
            key_problems(&format!("{}/a", "p".repeat(254))),
            ["prefix part must be no more than 253 characters"]
        );
        assert_eq!(key_problems(&format!("{}/a", "p".repeat(253))), [""; 0]);
    }

    #[test]
    fn values() {
        assert_eq!(value_problems(""), Vec::<String>::new());
        assert_eq!(value_problems("a.b"), Vec::<String>::new());
        assert_eq!(value_problems("bad value").len(), 1);
        assert_eq!(value_problems(&"v".repeat(64)), ["must be no more than 63 bytes"]);
    }
}
