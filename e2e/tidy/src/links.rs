//! Links of Markdown files: a relative link leads to a file or folder that exists.

use std::path::Path;

use crate::{files::TextFile, manifests::joined};

/// Links to files that do not exist, below `root`. Links with a scheme and anchors within a file are left out.
#[must_use]
pub fn dead(root: &Path, files: &[TextFile]) -> Vec<String> {
    let documents = files.iter().filter(|file| file.is_markdown());
    let linked = documents.flat_map(|file| targets(&file.text).map(move |target| (file, target)));
    let dead = linked.filter(|(file, target)| {
        let folder = file.path.parent().unwrap_or(Path::new(""));
        !root.join(joined(folder, target)).exists()
    });
    dead.map(|(file, target)| format!("{}: {target}", file.path.display())).collect()
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
}
