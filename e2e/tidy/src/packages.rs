//! Which package a file belongs to.

use std::path::{Path, PathBuf};

use cargo_metadata::Metadata;

use crate::files::TextFile;

/// A package of the workspace.
#[derive(Debug, Clone)]
pub struct WorkspacePackage {
    /// Its name.
    pub name: String,
    /// Its folder, relative to the root of the workspace.
    pub folder: PathBuf,
}

/// The packages of the workspace.
#[must_use]
pub fn packages(metadata: &Metadata) -> Vec<WorkspacePackage> {
    let root = metadata.workspace_root.as_std_path();
    let all = metadata.workspace_packages().into_iter().filter_map(|package| {
        let folder = package.manifest_path.parent()?.as_std_path();
        let folder = folder.strip_prefix(root).ok()?.to_owned();
        Some(WorkspacePackage { name: package.name.to_string(), folder })
    });
    all.collect()
}

/// The Rust files of one package. Files of a package inside of its folder are not among them.
pub fn rust_files<'a>(
    package: &'a WorkspacePackage,
    all: &'a [WorkspacePackage],
    files: &'a [TextFile],
) -> impl Iterator<Item = &'a TextFile> {
    files
        .iter()
        .filter(|file| file.is_rust())
        .filter(|file| owner(all, &file.path).is_some_and(|owner| owner.folder == package.folder))
}

/// The package with the deepest folder that holds the path.
fn owner<'a>(all: &'a [WorkspacePackage], path: &Path) -> Option<&'a WorkspacePackage> {
    let holding = all.iter().filter(|one| path.starts_with(&one.folder));
    holding.max_by_key(|one| one.folder.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_innermost_package() {
        let package = |name: &str| WorkspacePackage { name: name.into(), folder: name.into() };
        let all = [package("e2e"), package("e2e/lab")];
        let files = ["e2e/src/a.rs", "e2e/lab/src/b.rs"].map(|path| TextFile::new(path, ""));
        let of = |package| rust_files(package, &all, &files).map(|file| file.path.clone());
        assert_eq!(of(&all[0]).collect::<Vec<_>>(), [PathBuf::from("e2e/src/a.rs")]);
        assert_eq!(of(&all[1]).collect::<Vec<_>>(), [PathBuf::from("e2e/lab/src/b.rs")]);
    }
}
