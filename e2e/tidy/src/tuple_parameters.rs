//! Parameters with names: no function takes a tuple that its signature takes apart, as `(key, pod): (&Key, &Pod)`.
//!
//! Such a parameter is several parameters, and a call passes them without names. A struct names them; fewer than five need none.
//! Closures and test code do not count.

use std::collections::BTreeMap;

use crate::{
    files::{self, TextFile},
    ratchet::Measure,
};

/// The number of tuples that functions of every crate take apart.
#[must_use]
pub fn measures(files: &[TextFile]) -> Vec<Measure> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_product()) {
        let path = file.path.display().to_string();
        let folder = path.split("/src/").next().unwrap_or_default().to_owned();
        let functions = tuple_parameters(file.product());
        let places = functions.into_iter().map(|(name, line)| format!("{path}:{line} {name}"));
        found.entry(folder).or_default().extend(places);
    }
    let measure = |(subject, places): (String, Vec<String>)| Measure {
        rule: "tuple",
        subject,
        measured: places.len(),
        limit: 0,
        detail: places.join(", "),
    };
    found.into_iter().filter(|(_, places)| !places.is_empty()).map(measure).collect()
}

/// Name of the function and number of the line, for every tuple parameter.
fn tuple_parameters(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    // The function of which the parameters are not closed yet.
    let mut open = None;
    for (at, line) in text.lines().enumerate() {
        let head = declared_function(line);
        if let Some((name, _)) = head {
            open = Some(name);
        }
        let Some(name) = open else { continue };
        let parameters = head.map_or(line, |(_, parameters)| parameters);
        let count = patterns(parameters);
        found.extend(std::iter::repeat_n((name, at + 1), count));
        if ends_signature(crate::function_lengths::code(line)) {
            open = None;
        }
    }
    found
}

/// The name of the function that a line declares, and what follows the name.
fn declared_function(line: &str) -> Option<(&str, &str)> {
    let (before, after) = line.split_once("fn ")?;
    let is_code = !before.contains("//") && !before.contains(['"', '(', '=', '<', ':'])
        || before.trim_start().starts_with("pub(");
    let name = files::identifier(after)?;
    let rest = after.get(name.len()..)?;
    (is_code && rest.starts_with(['(', '<'])).then_some((name, rest))
}

/// How many tuples a part of a signature takes apart: `(a, b): (`, or of references to tuples.
fn patterns(parameters: &str) -> usize {
    let types = ["): (", "): &("];
    let all: usize = types.iter().map(|one| parameters.matches(one).count()).sum();
    // The empty tuple has no parts.
    all - parameters.matches("((): &()").count()
}

/// Whether the parameters end in this line: its code ends with a body, a semicolon, or a list of bounds that begins.
fn ends_signature(code: &str) -> bool {
    code.ends_with(['{', '}', ';']) || code.ends_with("where")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(&str, usize)> {
        tuple_parameters(text)
    }

    #[test]
    fn a_tuple_that_is_taken_apart_is_found() {
        assert_eq!(names("fn a((x, y): (&X, Y)) {\n}\n"), [("a", 1)]);
        assert_eq!(
            names("    pub(super) fn a<T>(&self, (x, y): &(X, Y), z: Z) -> T {\n"),
            [("a", 1)]
        );
        let long =
            "async fn a(\n    (x, y): (X, Y),\n    (u, v): (U, V),\n) -> Z {\n    body();\n}\n";
        assert_eq!(names(long), [("a", 2), ("a", 3)]);
    }

    #[test]
    fn closures_bindings_and_whole_tuples_are_not_found() {
        let text = "fn a(pair: (X, Y)) -> (X, Y) {\n    let (x, y): (X, Y) = pair;\n\
                    \x20   one.map(|(x, y): (X, Y)| x)\n}\n/// Takes `fn b((x, y): (X, Y))`.\n\
                    fn c(f: impl Fn((X, Y)) -> Z) {}\nfn kind((): &()) -> &str {\n";
        assert_eq!(names(text), []);
    }

    #[test]
    fn crates_are_counted_apart_and_tests_are_not() {
        let file = |path: &str| TextFile::new(path, "fn a((x, y): (X, Y)) {}\n");
        let files = ["crates/a/src/x.rs", "crates/a/src/y.rs", "crates/b/src/x.rs"];
        let found = measures(
            &[&files[..], &["crates/b/tests/x.rs"]]
                .concat()
                .iter()
                .map(|one| file(one))
                .collect::<Vec<_>>(),
        );
        let counts: Vec<(&str, usize)> =
            found.iter().map(|one| (one.subject.as_str(), one.measured)).collect();
        assert_eq!(counts, [("crates/a", 2), ("crates/b", 1)]);
    }
}
