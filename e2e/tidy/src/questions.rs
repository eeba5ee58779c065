//! A question changes nothing: no function with a name that begins with `is_` or `has_` takes `&mut self`.
//!
//! A reader takes such a call for free of effects, leaves it out, repeats it or swaps it with another one. Test code is left out.

use crate::files::{self, TextFile};

/// Questions that may take `&mut self`.
const EXCEPTIONS: &[(&str, &str)] = &[
    // A cache of what clusters can take is filled.
    ("crates/dispatch/src/rebalance.rs", "is_wanted"),
    // The poll of a set of tasks takes `&mut`.
    ("crates/remote/src/connection.rs", "is_broken"),
];

/// Questions of the crates that may change what they ask, and exceptions for functions that do not, or that do not exist.
#[must_use]
pub fn acting(files: &[TextFile]) -> Vec<String> {
    acting_except(files, EXCEPTIONS)
}

fn acting_except(files: &[TextFile], exceptions: &[(&str, &str)]) -> Vec<String> {
    let product = files.iter().filter(|file| file.is_product() && file.path.starts_with("crates"));
    let acting: Vec<(String, &str)> = product
        .flat_map(|file| {
            let path = file.path.display().to_string();
            acting_questions(file.product()).into_iter().map(move |name| (path.clone(), name))
        })
        .collect();
    let is_exception = |(path, name): &(String, &str)| exceptions.contains(&(path.as_str(), *name));
    let found = acting.iter().filter(|one| !is_exception(one));
    let found = found.map(|(path, name)| format!("{path}: fn {name}"));
    let is_acting = |(path, name): &(&str, &str)| {
        acting.iter().any(|(file, question)| file == path && question == name)
    };
    let stale = exceptions.iter().filter(|one| !is_acting(one));
    let stale =
        stale.map(|(path, name)| format!("{path}: fn {name} is excepted, but does not act"));
    found.chain(stale).collect()
}

fn acting_questions(text: &str) -> Vec<&str> {
    let declared =
        text.split("fn ").skip(1).filter_map(|rest| Some((files::identifier(rest)?, rest)));
    let questions =
        declared.filter(|(name, _)| name.starts_with("is_") || name.starts_with("has_"));
    questions.filter(|(_, rest)| takes_mut_self(rest)).map(|(name, _)| name).collect()
}

/// Whether the first parameter of a function is `&mut self`.
fn takes_mut_self(declaration: &str) -> bool {
    let parameters = declaration.split_once('(').map_or("", |(_, parameters)| parameters);
    let first = parameters.split([',', ')']).next().unwrap_or_default();
    first.trim() == "&mut self"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_takes_mut_self_is_found() {
        let text = "impl A {\n    pub fn is_one(&mut self, b: u8) -> bool {}\n    fn has_two(\n        &mut self,\n    ) \
                    {}\n    fn is_three(&self) {}\n    fn is_four(one: &mut u8) {}\n    fn take(&mut self) {}\n}\n";
        let file = |path: &str| [TextFile::new(path, text)];
        let path = "crates/a/src/a.rs";
        assert_eq!(
            acting_except(&file(path), &[]),
            [format!("{path}: fn is_one"), format!("{path}: fn has_two")]
        );
        assert!(acting_except(&file("crates/a/tests/a.rs"), &[]).is_empty());
        assert!(acting_except(&file("e2e/a/src/a.rs"), &[]).is_empty());
    }

    #[test]
    fn an_exception_for_no_such_question_is_found() {
        let path = "crates/a/src/a.rs";
        let text = "impl A {\n    fn is_one(&mut self) {}\n    fn is_two(&self) {}\n}\n";
        let exceptions = [(path, "is_one"), (path, "is_two"), ("crates/b/src/b.rs", "is_one")];
        let stale = ["crates/a/src/a.rs: fn is_two", "crates/b/src/b.rs: fn is_one"];
        assert_eq!(
            acting_except(&[TextFile::new(path, text)], &exceptions),
            stale.map(|one| format!("{one} is excepted, but does not act"))
        );
    }
}
