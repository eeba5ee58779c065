//! One meaning per type name: a name of a struct, enum, trait, union or type alias is declared in one file of the workspace.
//!
//! Test code is left out. The versions of one API (`crds/src/v1beta1`, `crds/src/v1beta2`, …) are one meaning.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::{files::TextFile, ratchet::Measure};

/// Keywords that declare a type.
const KEYWORDS: &[&str] = &["struct", "enum", "trait", "union", "type"];

/// In how many places a name may be declared.
const LIMIT: usize = 1;

/// The number of meanings of every type name that is declared in more than one place.
#[must_use]
pub fn measures(files: &[TextFile]) -> Vec<Measure> {
    let mut meanings: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_product()) {
        for name in file.product().lines().filter_map(declared) {
            meanings.entry(name).or_default().insert(meaning(&file.path));
        }
    }
    let several = meanings.into_iter().filter(|(_, places)| places.len() > LIMIT);
    let measure = |(name, places): (&str, BTreeSet<String>)| Measure {
        rule: "type",
        subject: name.to_owned(),
        measured: places.len(),
        limit: LIMIT,
        detail: places.into_iter().collect::<Vec<_>>().join(", "),
    };
    several.map(measure).collect()
}

/// The name of the type that a line declares. A `type` inside of a block is an associated one and declares nothing.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut word = words.next()?;
    if word == "pub" {
        // Past `pub` and `pub(in path)`.
        word = words.find(|word| KEYWORDS.contains(word) || ["fn", "use", "mod"].contains(word))?;
    }
    let inner = line.starts_with(char::is_whitespace);
    let name = words.next().filter(|_| KEYWORDS.contains(&word) && !(word == "type" && inner))?;
    name.starts_with(|c: char| c.is_ascii_uppercase()).then_some(name)
}

/// What stands for the place of a declaration: its file, or the API for a file of an API version.
fn meaning(path: &Path) -> String {
    let text = path.display().to_string();
    if text.starts_with("crds/src/v1") { "crds/src/v*".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_two_meanings_is_found() {
        let files = [
            TextFile::new("a/src/x.rs", "pub(crate) struct Step;\nstruct Only;\n"),
            TextFile::new("b/src/y.rs", "pub enum Step<T> {\n    A(T),\n}\n"),
        ];
        let measures = measures(&files);
        assert_eq!(measures.len(), 1);
        assert!(measures.iter().all(|one| one.subject == "Step" && one.measured == 2));
    }

    #[test]
    fn api_versions_and_tests_have_no_second_meaning() {
        let files = [
            TextFile::new("crds/src/v1beta1/cohort.rs", "pub struct Cohort;"),
            TextFile::new("crds/src/v1beta2/cohort.rs", "pub struct Cohort;"),
            TextFile::new("a/tests/x.rs", "struct Cohort;"),
        ];
        assert_eq!(measures(&files), []);
    }

    #[test]
    fn declarations_are_told_from_other_lines() {
        assert_eq!(declared("pub(in crate::a) struct Step {"), Some("Step"));
        assert_eq!(declared("type Path = Vec<String>;"), Some("Path"));
        for line in ["    type Output = u8;", "pub use a::Step;", "fn f(a: Step) {}", "// struct A"]
        {
            assert_eq!(declared(line), None, "{line}");
        }
    }
}
