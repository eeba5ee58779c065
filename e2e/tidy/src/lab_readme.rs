//! The README of the lab lists every folder of tests, and its examples are parts of tests, so that they compile.

use std::path::Path;

use crate::files::TextFile;

const README: &str = "e2e/README.md";
const TESTS: &str = "e2e/tests";

/// Folders of tests without a line in the list, and examples that no test has.
#[must_use]
pub fn wrong(files: &[TextFile]) -> Vec<String> {
    let Some(readme) = files.iter().find(|file| file.path == Path::new(README)) else {
        return vec![format!("{README} does not exist")];
    };
    let tests = || files.iter().filter(|file| file.path.starts_with(TESTS));
    let mut folders: Vec<&str> = tests().filter_map(|file| folder(&file.path)).collect();
    folders.sort_unstable();
    folders.dedup();
    let unlisted = folders.into_iter().filter(|folder| !is_listed(&readme.text, folder));
    let unlisted = unlisted.map(|folder| format!("{README} does not list {TESTS}/{folder}"));
    let is_test = |example: &str| tests().any(|file| file.text.contains(example));
    let unknown = examples(&readme.text).into_iter().filter(|example| !is_test(example));
    let unknown = unknown.map(|example| {
        format!(
            "{README}: no test has the example {:?}",
            example.lines().nth(1).unwrap_or_default()
        )
    });
    unlisted.chain(unknown).collect()
}

/// The folder of a file of tests, if it is not in the common one.
fn folder(path: &Path) -> Option<&str> {
    let mut parts = path.strip_prefix(TESTS).ok()?.iter();
    let folder = parts.next()?.to_str()?;
    parts.next().map(|_| folder)
}

fn is_listed(readme: &str, folder: &str) -> bool {
    readme.lines().any(|line| line.starts_with("  ") && line.contains(&format!(" {folder}/ ")))
}

/// The content of the blocks of Rust.
fn examples(readme: &str) -> Vec<&str> {
    let blocks = readme.split("\n```rust\n").skip(1);
    blocks.filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_a_line_and_an_example_is_in_a_test() {
        let readme = "```\n  api/    one\n```\n\n```rust\n#[test]\nfn a() {}\n```\n";
        let files = |test: &str, folder: &str| {
            [
                TextFile::new(README, readme),
                TextFile::new(format!("e2e/tests/{folder}/main.rs"), test),
            ]
        };
        assert_eq!(wrong(&files("\n#[test]\nfn a() {}\n", "api")), Vec::<String>::new());
        assert_eq!(
            wrong(&files("", "lab")),
            [
                "e2e/README.md does not list e2e/tests/lab",
                "e2e/README.md: no test has the example \"fn a() {}\"",
            ]
        );
    }
}
