//! The glossary is short: a table of few terms.

use crate::files::TextFile;

/// The file of the glossary.
const GLOSSARY: &str = "docs/glossary.md";

/// The most terms.
const MOST_TERMS: usize = 60;

/// What is wrong with the glossary: missing, or too long. A row may explain several terms, with commas between them.
#[must_use]
pub fn wrong(files: &[TextFile]) -> Option<String> {
    let Some(glossary) = files.iter().find(|file| file.path.ends_with(GLOSSARY)) else {
        return Some(format!("{GLOSSARY} is missing"));
    };
    let n_terms = terms(&glossary.text).count();
    (n_terms == 0 || n_terms > MOST_TERMS).then(|| format!("{GLOSSARY} has {n_terms} terms"))
}

fn terms(text: &str) -> impl Iterator<Item = &str> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    rows.filter(|first| *first != "term").flat_map(|first| first.split(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_term_of_a_row_counts() {
        let head = "| term | meaning |\n|---|---|\n";
        let of = |rows: &str| wrong(&[TextFile::new(GLOSSARY, format!("{head}{rows}"))]);
        assert_eq!(of(&"| a, b | c |\n".repeat(30)), None);
        assert_eq!(of(&"| a, b | c |\n".repeat(31)), Some("docs/glossary.md has 62 terms".into()));
        assert_eq!(of(""), Some("docs/glossary.md has 0 terms".into()));
        assert_eq!(wrong(&[]), Some("docs/glossary.md is missing".into()));
    }
}
