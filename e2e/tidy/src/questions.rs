//! A question changes nothing: no function with a name that begins with `is_` or `has_` takes `&mut self`.
//!
//! A reader takes such a call for free of effects, leaves it out, repeats it or swaps it with another one. Test code is left out.

use crate::files::{self, TextFile};

/// Questions that may take `&mut self`.
const EXCEPTIONS: [(&str, &str); 4] = [
    // A cache of what clusters can take is filled.
    ("crates/dispatch/src/rebalance.rs", "is_wanted"),
    // The poll of a set of tasks takes `&mut`.
    ("crates/remote/src/connection.rs", "is_broken"),
    // To be renamed.
    ("crates/dispatch/src/unsettled_creates.rs", "is_gone"),
    ("crates/cluster/src/control/multikueue/worker.rs", "is_reached_again"),
];

/// Questions of the crates that may change what they ask.
#[must_use]
pub fn acting(files: &[TextFile]) -> Vec<String> {
    let product = files.iter().filter(|file| file.is_product() && file.path.starts_with("crates"));
    let acting = product.flat_map(|file| {
        let path = file.path.display().to_string();
        let names = acting_questions(file.product()).into_iter();
        let names = names.filter(|name| !EXCEPTIONS.contains(&(path.as_str(), name)));
        names.map(|name| format!("{path}: fn {name}")).collect::<Vec<_>>()
    });
    acting.collect()
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
            acting(&file(path)),
            [format!("{path}: fn is_one"), format!("{path}: fn has_two")]
        );
        assert!(acting(&file("crates/a/tests/a.rs")).is_empty());
        assert!(acting(&file("e2e/a/src/a.rs")).is_empty());
    }
}
