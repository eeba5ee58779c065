//! What source files must look like.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// The longest a file may be, its tests aside.
const MOST_LINES: usize = 600;

/// Names that say nothing about what is inside.
const NAMELESS: &[&str] = &["utils.rs", "util.rs", "helpers.rs", "common.rs", "misc.rs"];

/// Rooms that decide and never do, by folder.
const PURE: &[&str] = &["crates/engine", "crates/dispatch", "crates/index", "crates/jobs"];

/// All Rust files of the house.
///
/// # Errors
/// If a folder cannot be read.
pub fn rust_files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?
        {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(entry.path());
                }
            } else if Path::new(&name).extension().is_some_and(|extension| extension == "rs") {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Files that have grown too long. Tests may.
///
/// # Errors
/// If a file cannot be read.
pub fn too_long(files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let product = files.iter().filter(|path| !is_test(path));
    let mut long = Vec::new();
    for path in product {
        let text = fs::read_to_string(path)?;
        let lines = text.lines().take_while(|line| !line.starts_with("mod tests")).count();
        if lines > MOST_LINES {
            long.push(format!("{}: {lines} lines", path.display()));
        }
    }
    Ok(long)
}

fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

/// Files whose name says nothing.
#[must_use]
pub fn nameless(files: &[PathBuf]) -> Vec<String> {
    let nameless = |path: &&PathBuf| NAMELESS.iter().any(|name| path.ends_with(name));
    files.iter().filter(nameless).map(|path| path.display().to_string()).collect()
}

/// Places where a room that decides waits, or looks at a clock.
///
/// # Errors
/// If a file cannot be read.
pub fn impure(root: &Path, files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let rooms: Vec<PathBuf> = PURE.iter().map(|room| root.join(room).join("src")).collect();
    let mut found = Vec::new();
    for path in files.iter().filter(|path| rooms.iter().any(|room| path.starts_with(room))) {
        let text = fs::read_to_string(path)?;
        for (at, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if is_impure(code) {
                found.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
        }
    }
    Ok(found)
}

/// Whole words only: a function may well be named `awaits`.
fn is_impure(code: &str) -> bool {
    let awaited = code.split(".await").skip(1).any(|rest| !rest.starts_with(char::is_alphanumeric));
    awaited || ["async ", "Instant::now", "SystemTime::now"].iter().any(|word| code.contains(word))
}

/// Crates that do not take over the workspace's lints.
///
/// # Errors
/// If a manifest cannot be read.
pub fn without_lints(manifests: impl Iterator<Item = PathBuf>) -> anyhow::Result<Vec<String>> {
    let mut without = Vec::new();
    for path in manifests {
        let text = fs::read_to_string(&path)?;
        if !text.contains("[lints]\nworkspace = true") {
            without.push(path.display().to_string());
        }
    }
    Ok(without)
}

#[cfg(test)]
mod tests {
    use super::is_impure;

    #[test]
    fn whole_words_are_looked_for() {
        for code in ["x.await?;", "    .await", "let now = Instant::now();", "async fn f() {}"] {
            assert!(is_impure(code), "{code}");
        }
        for code in ["passes.awaits(id)", "self.awaited", ""] {
            assert!(!is_impure(code), "{code}");
        }
    }
}
