//! Citations of the project's own documents: the file and the section exist.
//!
//! A citation is a path `docs/….md` with sections behind it: `§4.4`, several with commas, ranges with a dash, or an anchor
//! `#name`. It may go on in the next line of a comment. `§4.4` alone is a section of the document that the file cited last;
//! inside of the reference it is one of the document itself, and `name.md §4.4` one of the document beside it. A section is a
//! heading that begins with its number.

mod scan;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use self::scan::{Citation, CitedPart, scan};
use crate::files::TextFile;

/// The folder of documents that are cited by section.
const REFERENCE: &str = "docs/reference";

/// Where this module is.
const OWN_FOLDER: &str = "e2e/tidy/src";

/// Citations of files or sections that do not exist, and of files outside of the repository.
#[must_use]
pub fn broken(files: &[TextFile]) -> Vec<String> {
    let documents: BTreeMap<&Path, DocumentSections> = files
        .iter()
        .filter(|file| file.is_markdown())
        .map(|file| (file.path.as_path(), DocumentSections::of(&file.text)))
        .collect();
    // The examples in this module are none.
    let citing = files.iter().filter(|file| !file.path.starts_with(OWN_FOLDER));
    citing.flat_map(|file| problems(file, &documents)).collect()
}

fn problems(file: &TextFile, documents: &BTreeMap<&Path, DocumentSections>) -> Vec<String> {
    let mut last = file.path.starts_with(REFERENCE).then(|| file.path.clone());
    let mut problems = Vec::new();
    for citation in scan(&file.text) {
        let document = document(file, &citation, last.as_ref());
        if let (CitedDocument::Of(path), true) = (&document, !file.path.starts_with(REFERENCE)) {
            last = Some(path.clone());
        }
        let problem = problem(&citation, &document, documents);
        problems.extend(problem.map(|why| format!("{}: {citation}: {why}", file.path.display())));
    }
    problems
}

fn problem(
    citation: &Citation,
    document: &CitedDocument,
    documents: &BTreeMap<&Path, DocumentSections>,
) -> Option<String> {
    let path = match document {
        CitedDocument::Of(path) => path,
        CitedDocument::Outside => return Some("not in the repository".to_owned()),
        CitedDocument::Unknown => return Some("of which document?".to_owned()),
        CitedDocument::Any => return None,
    };
    let Some(sections) = documents.get(path.as_path()) else {
        return Some("no such file".to_owned());
    };
    let missing = citation.targets.iter().find(|target| !sections.has(target));
    missing.map(|target| format!("no {target}"))
}

/// The document that a citation means.
enum CitedDocument {
    /// This one.
    Of(PathBuf),
    /// A note that is not part of the repository.
    Outside,
    /// A section, but of no document.
    Unknown,
    /// One that need not exist.
    Any,
}

fn document(file: &TextFile, citation: &Citation, last: Option<&PathBuf>) -> CitedDocument {
    let beside = file.path.starts_with(REFERENCE);
    match citation.path.as_deref() {
        _ if citation.is_outside() => CitedDocument::Outside,
        Some(path) if path.starts_with("docs/") => CitedDocument::Of(path.into()),
        Some(path) if beside && !path.contains('/') => {
            CitedDocument::Of(Path::new(REFERENCE).join(path))
        }
        Some(_) => CitedDocument::Any,
        None => last.map_or(CitedDocument::Unknown, |path| CitedDocument::Of(path.clone())),
    }
}

/// What a document has to be cited.
struct DocumentSections(BTreeSet<CitedPart>);

impl DocumentSections {
    fn of(text: &str) -> Self {
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let headings = headings.map(|line| line.trim_start_matches('#').trim());
        Self(headings.flat_map(|title| [number(title), Some(anchor(title))]).flatten().collect())
    }

    fn has(&self, target: &CitedPart) -> bool {
        self.0.contains(target)
    }
}

/// The number that a heading begins with, without a full stop at its end.
fn number(title: &str) -> Option<CitedPart> {
    let number = title.split_whitespace().next()?.trim_end_matches('.');
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_number.then(|| CitedPart::Section(number.to_owned()))
}

/// The anchor that Markdown gives a heading.
fn anchor(title: &str) -> CitedPart {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    CitedPart::Anchor(kept.collect::<String>().to_lowercase().replace(' ', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path below `docs`, put together so that this file cites nothing.
    fn reference(rest: &str) -> String {
        format!("{REFERENCE}/{rest}")
    }

    fn found(path: &str, text: &str) -> Vec<String> {
        let document = "# Kueue\n\n## 4. Scheduler\n\n### 4.4 Flavor assignment\n";
        broken(&[TextFile::new(reference("kueue.md"), document), TextFile::new(path, text)])
    }

    #[test]
    fn citations_of_what_exists_are_fine() {
        let none: [String; 0] = [];
        for rest in
            ["kueue.md", "kueue.md §4.4.", "kueue.md §4, §4.4", "kueue.md#44-flavor-assignment"]
        {
            assert_eq!(found("a.rs", &format!("//! ({})", reference(rest))), none, "{rest}");
        }
    }

    #[test]
    fn a_missing_file_section_or_anchor_is_found() {
        for rest in
            ["gone.md §4", "kueue.md §4.5", "kueue.md §4, §5", "kueue.md §4–6", "kueue.md#x"]
        {
            assert_eq!(found("a.rs", &format!("//! {}.", reference(rest))).len(), 1, "{rest}");
        }
    }

    #[test]
    fn a_citation_may_go_on_in_the_next_line() {
        let text = format!("//! {}\n//! §4.9, more", reference("kueue.md"));
        assert_eq!(found("a.rs", &text).len(), 1);
    }

    #[test]
    fn a_document_cites_itself_and_its_neighbours() {
        let path = reference("other.md");
        let none: [String; 0] = [];
        assert_eq!(found(&path, "## 1 One\nas in §1 and kueue.md §4.4\n"), none);
        assert_eq!(found(&path, "## 1 One\nas in §2\n").len(), 1);
        assert_eq!(found(&path, "as in kueue.md §7\n").len(), 1);
    }

    #[test]
    fn a_section_without_a_document_is_found() {
        assert_eq!(found("a.rs", "// as in §4.4\n").len(), 1);
    }

    #[test]
    fn documents_outside_of_the_repository_are_not_cited() {
        let text = ["//! spec", "kueue-core.md §1"].join("/");
        assert_eq!(found("a.rs", &text).len(), 1);
    }
}
