//! Links and paths in Markdown files lead to files or folders that exist.
//!
//! A link is relative to its file. A path is a code span: relative to the root if it begins with a folder of the workspace,
//! relative to its file if it begins with a folder of a crate.

use std::path::Path;

use crate::{files::TextFile, manifests::joined};

/// Folders of a crate.
const CRATE_FOLDERS: &[&str] = &["src/", "tests/", "benches/"];

/// Folders of the workspace.
const FOLDERS: &[&str] =
    &["config/", "crates/", "crds/", "docs/", "e2e/", "manager/src/", "worker-agent/src/"];

/// Links and paths to files that do not exist below `root`. Links with a scheme and anchors within a file are left out.
#[must_use]
pub fn dead(root: &Path, files: &[TextFile]) -> Vec<String> {
    let documents = files.iter().filter(|file| file.is_markdown());
    let dead = documents.flat_map(|file| {
        let folder = file.path.parent().unwrap_or(Path::new(""));
        let links = targets(&file.text).map(move |target| (joined(folder, target), target));
        let paths = paths(&file.text).map(move |path| {
            let local = begins_with(path, CRATE_FOLDERS);
            (if local { folder.join(path) } else { path.into() }, path)
        });
        let missing = links.chain(paths).filter(|(path, _)| !root.join(path).exists());
        missing.map(|(_, written)| format!("{}: {written}", file.path.display()))
    });
    dead.collect()
}

/// Paths in code spans, outside of code blocks.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let outside = text.split("```").step_by(2).flat_map(str::lines);
    let spans = outside.flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_ours = |span: &str| begins_with(span, FOLDERS) || begins_with(span, CRATE_FOLDERS);
    spans.filter(move |span| is_ours(span) && span.chars().all(is_path))
}

fn begins_with(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// The paths in `](path)` and `](path#anchor)`.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    links.filter(|target| !target.is_empty() && !target.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_missing_file_is_found() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::write(root.path().join("there.md"), "").expect("a file");
        let text = "[a](../there.md#x) [b](gone.md) [c](#here) [d](https://example.com/gone.md)";
        let found = dead(root.path(), &[TextFile::new("docs/a.md", text)]);
        assert_eq!(found, ["docs/a.md: gone.md"]);
    }

    #[test]
    fn a_path_to_a_missing_file_is_found() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("crates")).expect("a folder");
        let text =
            "`crates/` and `crates/gone.rs`, `target/x`, `crates/*/src`\n```\n`crates/no`\n```\n";
        let found = dead(root.path(), &[TextFile::new("a.md", text)]);
        assert_eq!(found, ["a.md: crates/gone.rs"]);
        let found = dead(root.path(), &[TextFile::new("crates/a/README.md", "`src/gone.rs`")]);
        assert_eq!(found, ["crates/a/README.md: src/gone.rs"]);
    }
}
