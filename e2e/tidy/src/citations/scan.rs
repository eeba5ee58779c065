//! Finds citations in a text.

use std::fmt;

/// The sign before the number of a section.
const SIGN: char = '§';

/// What is cited of a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CitedPart {
    /// The number of a section.
    Section(String),
    /// The anchor of a heading.
    Anchor(String),
}

/// A document and what is cited of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Citation {
    /// The path as it is written; `None` if the text names sections only.
    pub(super) path: Option<String>,
    /// All of it if empty.
    pub(super) targets: Vec<CitedPart>,
}

impl Citation {
    /// Whether the path leads to the notes that the reference was made from.
    pub(super) fn is_outside(&self) -> bool {
        let path = self.path.as_deref().unwrap_or_default();
        path.starts_with("spec/") || path.contains("/spec/")
    }
}

impl fmt::Display for CitedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Section(number) => write!(f, "{SIGN}{number}"),
            Self::Anchor(name) => write!(f, "#{name}"),
        }
    }
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path.as_deref().unwrap_or("this document"))?;
        self.targets.iter().try_for_each(|target| write!(f, " {target}"))
    }
}

/// All citations of a text, in order.
pub(super) fn scan(text: &str) -> impl Iterator<Item = Citation> {
    let words: Vec<String> = text.lines().flat_map(line_words).map(str::to_owned).collect();
    let mut citations: Vec<Citation> = Vec::new();
    let mut follows = false;
    for word in &words {
        if let Some(citation) = path(word) {
            citations.push(citation);
            follows = true;
        } else if word.starts_with(SIGN) {
            let sections = sections(word);
            match citations.last_mut().filter(|_| follows) {
                Some(citation) => citation.targets.extend(sections),
                None => citations.push(Citation { path: None, targets: sections }),
            }
        }
        let goes_on = follows && (path(word).is_some() || word.starts_with(SIGN));
        follows = goes_on && !word.ends_with(['.', ')', ';', ':']);
    }
    citations.into_iter()
}

/// The words of a line without the signs of a comment or a table.
fn line_words(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim_start();
    let comment = ["//!", "///", "//", "#"].into_iter().find_map(|sign| line.strip_prefix(sign));
    let words = comment.unwrap_or(line).split_whitespace().filter(|word| *word != "|");
    // Of a link, the path behind its text.
    let paths = words.map(|word| word.rsplit("](").next().unwrap_or(word));
    paths.map(|word| word.trim_start_matches(['(', '`', '"', '[']))
}

/// The citation of a whole document, or of an anchor in it, if the word is a path to one.
fn path(word: &str) -> Option<Citation> {
    let end = word.find(".md")? + ".md".len();
    let (path, rest) = word.split_at(end);
    let is_path = |c: char| c.is_ascii_alphanumeric() || ['/', '.', '-', '_'].contains(&c);
    let anchor = rest.strip_prefix('#').map(|rest| {
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '-').next();
        CitedPart::Anchor(name.unwrap_or_default().to_owned())
    });
    let ends = !rest.starts_with(|c: char| c.is_alphanumeric());
    let plain = ends && path.chars().all(is_path);
    plain.then(|| Citation { path: Some(path.to_owned()), targets: anchor.into_iter().collect() })
}

/// The sections of a word such as `§4.4`, `§4-6` or `§1.2–1.6,`: both ends of a range.
fn sections(word: &str) -> Vec<CitedPart> {
    let numbers = word.split(|c: char| !c.is_ascii_digit() && c != '.');
    let numbers =
        numbers.map(|number| number.trim_matches('.')).filter(|number| !number.is_empty());
    numbers.map(|number| CitedPart::Section(number.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        scan(text).map(|one| one.to_string()).collect()
    }

    #[test]
    fn sections_belong_to_the_path_before_them() {
        assert_eq!(found("// (a.md §1.2–1.6, §3; §4)"), ["a.md §1.2 §1.6 §3", "this document §4"]);
        assert_eq!(found("see a.md, b.md §2."), ["a.md", "b.md §2"]);
        assert_eq!(found("`a/b.md#some-name`"), ["a/b.md #some-name"]);
        assert_eq!(found("[b.md](a/b.md#some-name)"), ["a/b.md #some-name"]);
    }

    #[test]
    fn other_words_cite_nothing() {
        assert_eq!(found("a.mdx is none, and <b>.md neither"), ["a.md"; 0]);
    }
}
