//! The text files of the workspace.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// Ends of the names of files that hold citations or code.
const EXTENSIONS: &[&str] = &["rs", "md", "yaml", "yml", "tsv", "toml"];

/// A text file.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Relative to the root of the workspace.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

impl TextFile {
    /// A file that need not exist on disk.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Whether the name ends with `.rs`.
    #[must_use]
    pub fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    /// Whether the name ends with `.md`.
    #[must_use]
    pub fn is_markdown(&self) -> bool {
        self.has_extension("md")
    }

    fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|end| end == extension)
    }

    /// Whether the file is a test: its path has a part `tests`, `benches` or `tests.rs`.
    #[must_use]
    pub fn is_test(&self) -> bool {
        let test = |part: &std::ffi::OsStr| part == "tests" || part == "benches";
        self.path.ends_with("tests.rs") || self.path.iter().any(test)
    }

    /// Whether the file is Rust and no test.
    #[must_use]
    pub fn is_product(&self) -> bool {
        self.is_rust() && !self.is_test()
    }

    /// The text without a block `#[cfg(test)] mod tests { … }` at its end. A line `mod tests;` does not end the text.
    #[must_use]
    pub fn product(&self) -> &str {
        product(&self.text)
    }
}

/// A text without its test module; see [`TextFile::product`].
pub(crate) fn product(text: &str) -> &str {
    let block = text.find("#[cfg(test)]\nmod tests {");
    block.map_or(text, |at| text.get(..at).unwrap_or(text))
}

/// The lines for which this holds, each behind its place.
pub(crate) fn lines_that<'a>(
    files: impl Iterator<Item = &'a TextFile>,
    holds: impl Fn(&str) -> bool,
) -> Vec<String> {
    let lines = files.flat_map(|file| file.text.lines().enumerate().map(move |line| (file, line)));
    lines
        .filter(|(_, (_, line))| holds(line))
        .map(|(file, (at, line))| format!("{}:{}: {}", file.path.display(), at + 1, line.trim()))
        .collect()
}

/// The identifier with which a text begins.
pub(crate) fn identifier(text: &str) -> Option<&str> {
    let name = text.split(|one: char| !one.is_alphanumeric() && one != '_').next();
    name.filter(|name| !name.is_empty())
}

/// All text files below the root, sorted by path. Folders `target` and those that begin with a dot are left out.
///
/// # Errors
/// If a folder or file cannot be read, or is not UTF-8.
pub fn read(root: &Path) -> anyhow::Result<Vec<TextFile>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|end| EXTENSIONS.iter().any(|one| end == *one)) {
                files.push(read_one(root, &path)?);
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn read_one(root: &Path, path: &Path) -> anyhow::Result<TextFile> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(TextFile::new(path.strip_prefix(root)?, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_module_with_a_body_is_no_product_code() {
        let file = |text: &str| TextFile::new("a.rs", text);
        let declared = "#[cfg(test)]\nmod tests;\nfn a() {}\n";
        assert_eq!(file(declared).product(), declared);
        let inline = "fn a() {}\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(file(inline).product(), "fn a() {}\n");
    }

    #[test]
    fn tests_are_known_by_their_path() {
        for path in ["a/tests.rs", "a/tests/b.rs", "a/benches/b.rs"] {
            assert!(TextFile::new(path, "").is_test(), "{path}");
        }
        assert!(!TextFile::new("a/src/contests.rs", "").is_test());
    }
}
