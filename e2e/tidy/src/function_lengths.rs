//! Length of functions: from the line of `fn` to its closing brace at most sixty lines.
//!
//! Test code is left out. The end is the first closing brace with the indentation of the `fn`, as rustfmt writes it.

use crate::{
    files::{self, TextFile},
    ratchet::Measure,
};

/// The most lines of a function.
const LIMIT: usize = 60;

/// The lines of every function that is too long.
#[must_use]
pub fn measures(files: &[TextFile]) -> Vec<Measure> {
    let product = files.iter().filter(|file| file.is_product());
    let functions = product.flat_map(|file| {
        functions(file.product()).into_iter().map(move |function| (file, function))
    });
    let long = functions.filter(|(_, function)| function.lines > LIMIT);
    long.map(|(file, FunctionLength { name, line, lines })| Measure {
        rule: "function",
        subject: format!("{} {name}", file.path.display()),
        measured: lines,
        limit: LIMIT,
        detail: format!("lines from line {line}"),
    })
    .collect()
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
struct FunctionLength<'a> {
    name: &'a str,
    /// The number of its first line.
    line: usize,
    lines: usize,
}

fn functions(text: &str) -> Vec<FunctionLength<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate();
    starts
        .filter_map(|(at, line)| {
            let name = declared_function(line)?;
            let length = length(lines.get(at..)?)?;
            Some(FunctionLength { name, line: at + 1, lines: length })
        })
        .collect()
}

/// The name of the function that a line declares.
fn declared_function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let modifiers = ["const", "async", "unsafe", "default", "extern", "\"C\""];
    let is_modifier = |word: &str| word.starts_with("pub") || modifiers.contains(&word);
    // Past `pub(in path)`.
    let before = before.replace("pub(in ", "pub(");
    if !before.split_whitespace().all(is_modifier) {
        return None;
    }
    files::identifier(after)
}

/// The number of lines of the function that begins with these lines; `None` without a body.
fn length(lines: &[&str]) -> Option<usize> {
    let head = lines.iter().position(|line| code(line).ends_with(['{', '}', ';']))?;
    let last = code(lines.get(head)?);
    if last.ends_with(';') {
        return None;
    }
    if last.ends_with('}') {
        return Some(head + 1);
    }
    let first = lines.first()?;
    let indentation = first.len() - first.trim_start().len();
    let closes = |line: &&str| line.trim() == "}" && line.len() == indentation + 1;
    let body = lines.iter().skip(head + 1).position(closes)?;
    Some(head + 1 + body + 1)
}

/// A line without the comment behind its code.
pub(crate) fn code(line: &str) -> &str {
    line.split(" // ").next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_length(lines: usize) -> TextFile {
        let body = "    let one = 1;\n".repeat(lines.saturating_sub(2));
        TextFile::new("a/src/a.rs", format!("pub(crate) fn f() {{\n{body}}}\n"))
    }

    #[test]
    fn a_function_above_the_limit_is_found() {
        assert_eq!(measures(&[of_length(60)]), []);
        let long = measures(&[of_length(61)]);
        assert_eq!(long.len(), 1);
        assert!(long.iter().all(|one| one.subject == "a/src/a.rs f" && one.measured == 61));
    }

    #[test]
    fn tests_do_not_count() {
        let mut file = of_length(61);
        file.path = "a/tests/a.rs".into();
        assert_eq!(measures(&[file]), []);
    }

    #[test]
    fn functions_are_measured_from_the_signature_to_the_closing_brace() {
        let text = "impl A {\n    async fn one(\n        &self,\n    ) -> u8 {\n        if x {\n        }\n    }\n\
                    \n    fn declared(&self);\n    const fn short() {}\n}\nlet f: fn (u8);\n// fn comment() {\n";
        let found: Vec<(&str, usize, usize)> =
            functions(text).iter().map(|one| (one.name, one.line, one.lines)).collect();
        assert_eq!(found, [("one", 2, 6), ("short", 10, 1)]);
    }

    #[test]
    fn a_note_behind_the_head_hides_no_function() {
        let text = "fn one() { // a note\n    two();\n}\nfn declared(&self); // fn\nfn two() {}\n";
        let found: Vec<(&str, usize)> =
            functions(text).iter().map(|one| (one.name, one.lines)).collect();
        assert_eq!(found, [("one", 3), ("two", 1)]);
    }
}
