//! One type, few files: inherent `impl` blocks of a type are in at most four files of its crate.
//!
//! A type with methods in many files knows everything, and each of these files may use all of its fields. Implementations of
//! traits do not count, nor does test code.

use std::collections::{BTreeMap, BTreeSet};

use crate::{files::TextFile, ratchet::Measure};

/// In how many files a type may have inherent `impl` blocks.
const LIMIT: usize = 4;

/// The number of files of every type with more than one.
#[must_use]
pub fn measures(files: &[TextFile]) -> Vec<Measure> {
    let mut places: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_product()) {
        let path = file.path.display().to_string();
        // Two crates may have types of one name in tests of each other; the crate is the folder above `src`.
        let folder = path.split("/src/").next().unwrap_or_default().to_owned();
        for name in implemented(file.product()) {
            places.entry((folder.clone(), name)).or_default().insert(path.clone());
        }
    }
    let several = places.into_iter().filter(|(_, files)| files.len() > 1);
    let measure = |((folder, name), files): ((String, String), BTreeSet<String>)| Measure {
        rule: "impl",
        subject: format!("{folder} {name}"),
        measured: files.len(),
        limit: LIMIT,
        detail: files.into_iter().collect::<Vec<_>>().join(", "),
    };
    several.map(measure).collect()
}

/// The types of the inherent `impl` blocks of a text.
fn implemented(text: &str) -> Vec<String> {
    let starts = text.match_indices("impl").filter(|(at, _)| begins_item(text, *at));
    let headers = starts.filter_map(|(at, word)| {
        let rest = text.get(at + word.len()..)?;
        rest.split('{').next()
    });
    headers.filter_map(implemented_type).collect()
}

/// Whether an `impl` is the first word of its line, apart from `unsafe`.
fn begins_item(text: &str, at: usize) -> bool {
    let line = text.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
    let next = text.get(at + "impl".len()..).and_then(|rest| rest.chars().next());
    ["", "unsafe"].contains(&line.trim()) && next.is_some_and(|one| one == '<' || one == ' ')
}

/// The type of what follows `impl`; `None` for a trait's.
fn implemented_type(header: &str) -> Option<String> {
    let subject = after_parameters(header).split(" where ").next()?.trim();
    if subject.split_whitespace().any(|word| word == "for") {
        return None;
    }
    let path = subject.split(['<', ' ', '\n']).next()?;
    let name = path.rsplit("::").next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The header without the parameters in angle brackets that it begins with.
fn after_parameters(header: &str) -> &str {
    if !header.starts_with('<') {
        return header;
    }
    let (mut depth, mut last) = (0, ' ');
    for (at, one) in header.char_indices() {
        match one {
            '<' => depth += 1,
            // The arrow of a function type closes nothing.
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return header.get(at + 1..).unwrap_or_default();
        }
        last = one;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_with_methods_in_five_files_is_found() {
        let file = |number: usize| {
            TextFile::new(format!("crates/a/src/f{number}.rs"), "impl<'a> All<'a> {\n}\n")
        };
        let found = |n: usize| -> Vec<Measure> {
            let files: Vec<TextFile> = (0..n).map(file).collect();
            measures(&files).into_iter().filter(|one| one.measured > one.limit).collect()
        };
        assert_eq!(found(4), []);
        let five = found(5);
        assert_eq!(five.len(), 1);
        assert!(five.iter().all(|one| one.subject == "crates/a All" && one.measured == 5));
    }

    #[test]
    fn types_of_two_crates_and_tests_are_counted_apart() {
        let files = ["crates/a/src/x.rs", "crates/b/src/x.rs", "crates/a/src/tests/x.rs"]
            .map(|path| TextFile::new(path, "impl One {}\n"));
        assert_eq!(measures(&files), []);
    }

    #[test]
    fn only_inherent_blocks_count() {
        let text = "impl A {}\nimpl<T: Fn() -> u8> B<T> {}\nimpl c::C\nwhere\n    X: Y,\n{}\n\
                    impl Display for D {}\nimpl<'a, T> From<T> for E<'a> {}\n\
                    fn f() -> impl Iterator {}\n// impl G {}\n    impl H {}\n";
        assert_eq!(implemented(text), ["A", "B", "C", "H"]);
    }
}
