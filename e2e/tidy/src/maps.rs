//! The map at the head of a crate or module names every module below it.
//!
//! A map is a table of at least three rows in the `//!` comment of a `lib.rs`, `main.rs` or `mod.rs`. A module that the file declares as
//! `mod name;` is named there as `name`, alone or as a part of a path. Test modules are left out.

use std::collections::BTreeSet;

use crate::files::TextFile;

/// The fewest rows of a map, without its two head rows.
const FEWEST_ROWS: usize = 3;

/// Files that have a map.
const HEADS: &[&str] = &["lib.rs", "main.rs", "mod.rs"];

/// Modules that the map of their file leaves out.
#[must_use]
pub fn unnamed(files: &[TextFile]) -> Vec<String> {
    let heads = files
        .iter()
        .filter(|file| !file.is_test() && HEADS.iter().any(|head| file.path.ends_with(head)));
    let unnamed = heads.flat_map(|file| {
        let map = head_comment(&file.text);
        let names = if has_map(&map) { modules(&file.text) } else { Vec::new() };
        let words: BTreeSet<&str> = words(&map).collect();
        let missing = names.into_iter().filter(|name| !words.contains(name));
        missing.map(|name| format!("{}: {name}", file.path.display())).collect::<Vec<_>>()
    });
    unnamed.collect()
}

fn head_comment(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("//!")).collect()
}

fn has_map(comment: &[&str]) -> bool {
    let rows = comment.iter().filter(|line| line.trim_start().starts_with('|'));
    rows.count() >= FEWEST_ROWS + 2
}

fn words<'a>(comment: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    comment.iter().flat_map(move |line| line.split(move |c| !is_part(c)))
}

/// The names in lines `mod name;`, with any visibility, that no `#[cfg(test)]` stands before.
fn modules(text: &str) -> Vec<&str> {
    let mut before = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if before != "#[cfg(test)]" {
            found.extend(declared_module(line));
        }
        before = line;
    }
    found
}

fn declared_module(line: &str) -> Option<&str> {
    let (visibility, name) = line.strip_suffix(';')?.split_once("mod ")?;
    (visibility.is_empty() || visibility.starts_with("pub")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        unnamed(&[TextFile::new("crates/a/src/lib.rs", text)])
    }

    #[test]
    fn a_module_that_the_map_leaves_out_is_found() {
        let map = "//! | module | concept |\n//! |---|---|\n//! | [`a`] | x |\n//! | `b`, `c::d` | y |\n//! | `e` | z |\n";
        assert_eq!(
            found(&format!("{map}pub mod a;\nmod b;\npub(crate) mod c;\nmod e;\n")),
            [""; 0]
        );
        assert_eq!(found(&format!("{map}mod ab;\n")), ["crates/a/src/lib.rs: ab"]);
        assert_eq!(found(&format!("{map}#[cfg(test)]\nmod tests;\n")), [""; 0]);
    }

    #[test]
    fn a_file_without_a_map_is_left_out() {
        assert_eq!(found("//! A crate.\nmod a;\n"), [""; 0]);
    }
}
