//! The Makefile runs every suite: it finds them by folder, and one elsewhere would never run.

use std::{
    ffi::OsStr,
    path::{Component, Path},
};

use cargo_metadata::Metadata;

/// The folders of suites, as parts of a path: `*` stands for one folder.
const FOLDERS: [&str; 4] = ["e2e/tests", "e2e/*/tests", "crates/*/tests", "crds/tests"];

/// Suites in folders that the Makefile does not read.
#[must_use]
pub fn elsewhere(metadata: &Metadata) -> Vec<String> {
    let root = metadata.workspace_root.as_std_path();
    let packages = metadata.workspace_packages();
    let suites = packages.iter().flat_map(|one| &one.targets).filter(|target| target.is_test());
    let paths = suites.map(|suite| suite.src_path.as_std_path());
    let paths = paths.map(|path| path.strip_prefix(root).unwrap_or(path));
    let others = paths.filter(|path| !is_found(path));
    others.map(|path| format!("{} is in no folder of the Makefile", path.display())).collect()
}

fn is_found(suite: &Path) -> bool {
    let is_main = suite.file_name().is_some_and(|name| name == "main.rs");
    let folder = suite.ancestors().nth(if is_main { 2 } else { 1 });
    folder.is_some_and(|folder| FOLDERS.iter().any(|pattern| matches(folder, pattern)))
}

fn matches(folder: &Path, pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split('/').collect();
    let names: Vec<&OsStr> = folder.components().map(Component::as_os_str).collect();
    parts.len() == names.len()
        && parts.iter().zip(names).all(|(part, name)| *part == "*" || *part == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_a_file_or_a_folder_with_a_main_file() {
        for (suite, found) in [
            ("crates/jobs/tests/manifests.rs", true),
            ("crates/jobs/tests/samples/main.rs", true),
            ("e2e/tests/dispatch/main.rs", true),
            ("e2e/images/tests/reproducible.rs", true),
            ("manager/tests/starts.rs", false),
            ("crates/jobs/more/tests/manifests.rs", false),
            ("crates/jobs/checks/manifests.rs", false),
        ] {
            assert_eq!(is_found(Path::new(suite)), found, "{suite}");
        }
    }
}
