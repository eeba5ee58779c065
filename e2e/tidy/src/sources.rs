//! Length, width of comments, name and purity of source files.

use std::{fs, path::PathBuf};

use crate::files::{self, TextFile};

/// The most lines of a file, its test module aside.
const MOST_LINES: usize = 600;

/// The most characters of a line of a comment. Rows of tables may be wider.
const MOST_COLUMNS: usize = 140;

/// File names that name no concept.
const NAMELESS: &[&str] = &["utils.rs", "util.rs", "helpers.rs", "common.rs", "misc.rs"];

/// Crates without input and output, by folder.
const PURE: &[&str] = &[
    "crates/engine",
    "crates/dispatch",
    "crates/index",
    "crates/jobs",
    "crates/ray",
    "crates/appwrapper",
    "crates/provisioning",
    "crates/variants",
];

/// Product files that are too long. A module behind a line `mod tests;` does not end the count.
#[must_use]
pub fn too_long(files: &[TextFile]) -> Vec<String> {
    let product = files.iter().filter(|file| file.is_product());
    let lengths = product.map(|file| (file, file.product().lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > MOST_LINES);
    long.map(|(file, lines)| format!("{}: {lines} lines", file.path.display())).collect()
}

/// Lines of comments that are too wide. Tables and blocks of code cannot be wrapped.
#[must_use]
pub fn too_wide(files: &[TextFile]) -> Vec<String> {
    let wide = |file: &TextFile| {
        let mut in_block = false;
        let too_wide = |(_, line): &(usize, &str)| {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                return false;
            };
            let comment = comment.trim_start_matches(['/', '!']).trim_start();
            in_block ^= comment.starts_with("```");
            !in_block && !comment.starts_with('|') && line.chars().count() > MOST_COLUMNS
        };
        let lines: Vec<(usize, &str)> = file.text.lines().enumerate().filter(too_wide).collect();
        let path = file.path.display();
        lines.iter().map(|(at, _)| format!("{path}:{}", at + 1)).collect::<Vec<String>>()
    };
    files.iter().filter(|file| file.is_rust()).flat_map(wide).collect()
}

/// Files whose name names no concept.
#[must_use]
pub fn nameless(files: &[TextFile]) -> Vec<String> {
    let nameless = |file: &&TextFile| NAMELESS.iter().any(|name| file.path.ends_with(name));
    files.iter().filter(nameless).map(|file| file.path.display().to_string()).collect()
}

/// Lines of pure crates that await or read a clock.
#[must_use]
pub fn impure(files: &[TextFile]) -> Vec<String> {
    let pure: Vec<PathBuf> = PURE.iter().map(|room| PathBuf::from(room).join("src")).collect();
    let files = files.iter().filter(|file| file.is_rust());
    let files = files.filter(|file| pure.iter().any(|room| file.path.starts_with(room)));
    files::lines_that(files, |line| is_impure(line.split("//").next().unwrap_or_default()))
}

/// Compares whole words: a function may be named `awaits`.
fn is_impure(code: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let awaited = code.split(".await").skip(1).any(|rest| !rest.starts_with(is_word));
    awaited || ["async ", "Instant::now", "SystemTime::now"].iter().any(|word| code.contains(word))
}

/// Manifests without the lints of the workspace.
///
/// # Errors
/// If a manifest cannot be read.
pub fn without_lints(manifests: impl Iterator<Item = PathBuf>) -> anyhow::Result<Vec<String>> {
    let mut without = Vec::new();
    for path in manifests {
        if !has_lints(&fs::read_to_string(&path)?) {
            without.push(path.display().to_string());
        }
    }
    Ok(without)
}

fn has_lints(manifest: &str) -> bool {
    manifest.contains("[lints]\nworkspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_without_the_lints_is_found() {
        assert!(has_lints("[package]\n\n[lints]\nworkspace = true\n"));
        assert!(!has_lints("[package]\n[lints.clippy]\n"));
    }

    #[test]
    fn a_file_above_the_limit_is_too_long() {
        let code = |lines| "fn f() {}\n".repeat(lines);
        let file = |text: String| TextFile::new("a/src/a.rs", text);
        assert_eq!(too_long(&[file(code(600))]).len(), 0);
        assert_eq!(too_long(&[file(code(601))]).len(), 1);
        let declared = format!("#[cfg(test)]\nmod tests;\n{}", code(599));
        assert_eq!(too_long(&[file(declared)]).len(), 1, "a declared module ends nothing");
        let inline = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", code(600), code(9));
        assert_eq!(too_long(&[file(inline)]).len(), 0, "tests at the end do not count");
        assert_eq!(too_long(&[TextFile::new("a/tests/a.rs", code(601))]).len(), 0);
    }

    #[test]
    fn a_wide_comment_is_found() {
        let wide = "x".repeat(MOST_COLUMNS);
        let of = |text: String| too_wide(&[TextFile::new("a.rs", text)]);
        assert_eq!(of(format!("fn a() {{}}\n    // {wide}\n")), ["a.rs:2"]);
        assert_eq!(of(format!("/// {}\n", &wide[4..])).len(), 0);
        assert_eq!(of(format!("//! | {wide} |\n")).len(), 0, "a table");
        assert_eq!(of(format!("//! ```\n//! {wide}\n//! ```\n")).len(), 0, "a block of code");
        assert_eq!(of(format!("let a = \"{wide}\";\n")).len(), 0, "no comment");
    }

    #[test]
    fn a_file_without_a_concept_in_its_name_is_found() {
        let files = ["a/src/utils.rs", "a/src/queue.rs"].map(|path| TextFile::new(path, ""));
        assert_eq!(nameless(&files), ["a/src/utils.rs"]);
    }

    #[test]
    fn a_clock_in_a_pure_crate_is_found() {
        let text = "fn f() {\n    let now = Instant::now(); // now\n}\n";
        let files =
            ["crates/engine/src/a.rs", "manager/src/a.rs"].map(|path| TextFile::new(path, text));
        let found = impure(&files);
        assert_eq!(found, ["crates/engine/src/a.rs:2: let now = Instant::now(); // now"]);
    }

    #[test]
    fn only_whole_words_are_impure() {
        for code in ["x.await?;", "    .await", "let now = Instant::now();", "async fn f() {}"] {
            assert!(is_impure(code), "{code}");
        }
        for code in ["passes.awaits(id)", "self.awaited", "x.await_capacity(id)", ""] {
            assert!(!is_impure(code), "{code}");
        }
    }
}
