//! Words of comments and documents: a sentence is about an object or a component, not about persons.
//!
//! At most 0.2 % of the comment lines of a crate, and of the lines of all Markdown files, may hold one of the words.

use crate::{
    files::TextFile,
    packages::{self, WorkspacePackage},
    ratchet::Measure,
};

/// Words for persons, in lower case.
const PERSONS: &[&str] =
    &["who", "whoever", "whom", "nobody", "somebody", "everybody", "anybody", "told"];

/// One line in this many may hold such a word: 0.2 %.
const LINES_PER_WORD: usize = 500;

/// The subject of the measure of Markdown files.
const DOCUMENTS: &str = "documents";

/// Lines with such words, per crate and in all documents.
#[must_use]
pub fn measures(packages: &[WorkspacePackage], files: &[TextFile]) -> Vec<Measure> {
    let of_crate = |package: &WorkspacePackage| {
        let files = packages::rust_files(package, packages, files);
        let lines = files.flat_map(|file| file.text.lines().filter(|line| is_comment(line)));
        measure(&package.name, lines)
    };
    let documents = files.iter().filter(|file| file.is_markdown());
    let documents = documents.flat_map(|file| file.text.lines().filter(|line| !line.is_empty()));
    packages.iter().map(of_crate).chain([measure(DOCUMENTS, documents)]).collect()
}

fn measure<'a>(subject: &str, lines: impl Iterator<Item = &'a str>) -> Measure {
    let lines: Vec<&str> = lines.collect();
    let found: Vec<&str> = lines.iter().copied().filter(|line| has_person(line)).collect();
    Measure {
        rule: "words",
        subject: subject.to_owned(),
        measured: found.len(),
        limit: lines.len() / LINES_PER_WORD,
        detail: found.first().map(|line| line.trim().to_owned()).unwrap_or_default(),
    }
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn has_person(line: &str) -> bool {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '`');
    words.map(str::to_lowercase).any(|word| PERSONS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_about_persons_is_found() {
        for line in ["/// Nobody needs it.", "  // It is told, too.", "//! Who waits, waits"] {
            assert!(is_comment(line) && has_person(line), "{line}");
        }
        for line in ["/// Removes the whole object.", "// `told` is a name"] {
            assert!(!has_person(line), "{line}");
        }
        assert!(!is_comment("let told = 1;"));
    }

    #[test]
    fn one_line_in_five_hundred_is_the_limit() {
        let package = WorkspacePackage { name: "x".into(), folder: "x".into() };
        let text = |n: usize| format!("// nobody\n{}", "// a line\n".repeat(n - 1));
        let exceeds = |n: usize| {
            let files = [TextFile::new("x/src/lib.rs", text(n))];
            let measures = measures(std::slice::from_ref(&package), &files);
            measures.iter().any(|one| one.measured > one.limit)
        };
        assert!(exceeds(499));
        assert!(!exceeds(500));
    }

    #[test]
    fn documents_are_measured_together() {
        let measures = measures(&[], &[TextFile::new("README.md", "Somebody does it.\n")]);
        assert!(measures.iter().any(|one| one.subject == DOCUMENTS && one.measured > one.limit));
    }
}
