//! Home-made words in comments and names: Kueue and Kubernetes have words for what these mean, or English has plainer ones.

use crate::files::{self, TextFile};

/// The words, in lower case.
const HOME_MADE: &[&str] = &["anew", "books", "parked", "patience", "picture"];

/// Keywords that declare a name.
const KEYWORDS: &[&str] = &["const", "enum", "fn", "mod", "static", "struct", "trait", "type"];

/// Words that may stand between keywords and before a name; `C` is that of `extern "C"`.
const MODIFIERS: &[&str] = &["C", "async", "extern", "mut", "pub", "unsafe"];

/// Lines of Rust files with such a word in a comment or in a name that they declare.
#[must_use]
pub fn found(files: &[TextFile]) -> Vec<String> {
    files::lines_that(files.iter().filter(|file| file.is_rust()), has_home_made)
}

fn has_home_made(line: &str) -> bool {
    match line.trim_start().strip_prefix("//") {
        Some(comment) => comment.split(|c: char| !c.is_alphanumeric()).any(is_home_made),
        None => declared(line).is_some_and(|name| words(name).iter().any(|one| is_home_made(one))),
    }
}

fn is_home_made(word: &str) -> bool {
    HOME_MADE.contains(&word.to_lowercase().as_str())
}

/// The name that a line declares.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(restricted) => restricted.split_once(')')?.1.trim_start(),
        None => line,
    };
    if !line.starts_with(char::is_alphabetic) {
        return None;
    }
    let tokens = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut has_keyword = false;
    // Several keywords may follow one another: `const fn`.
    let name = tokens.filter(|token| !token.is_empty()).find(|token| {
        let is_keyword = KEYWORDS.contains(token);
        has_keyword |= is_keyword;
        !is_keyword && !MODIFIERS.contains(token)
    });
    name.filter(|_| has_keyword)
}

/// The words of a name in snake or camel case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() && was_lower {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter != '_') {
            word.push(letter);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_made_words_in_comments_and_names_are_found() {
        for line in [
            "/// It is made anew.",
            "    // The books.",
            "pub(crate) struct Parked {",
            "async fn save_picture() {",
            "const PATIENCE: u8 = 1;",
            "pub struct QuotaBooks {",
            "pub const fn anew() {",
            "pub(in crate::queue) fn park_books() {",
            "unsafe extern \"C\" fn parked() {",
            "static mut PICTURE: u8 = 1;",
        ] {
            assert!(has_home_made(line), "{line}");
        }
    }

    #[test]
    fn other_words_and_uses_are_not() {
        for line in [
            "/// It is recreated.",
            "let text = \"anew\";",
            "fn sparked() {}",
            "books.push(1);",
            "\"fn anew() {}\",",
            "/// It is a booksellers' const.",
            "books.mut_of(1);",
        ] {
            assert!(!has_home_made(line), "{line}");
        }
    }

    #[test]
    fn a_finding_names_file_and_line() {
        let text = "fn a() {}\n// parked\n";
        let files = ["a.rs", "a.md"].map(|path| TextFile::new(path, text));
        assert_eq!(found(&files), ["a.rs:2: // parked"]);
    }
}
