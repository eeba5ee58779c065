//! Kustomizations: every file that one names exists, and every manifest is named by the kustomization of its folder. Templates of a
//! chart are no manifests.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::Context;
use serde_json::Value;

/// The file name of a kustomization.
const KUSTOMIZATION: &str = "kustomization.yaml";

/// The file name by which the folder of a chart is known.
const CHART: &str = "Chart.yaml";

/// A folder with a kustomization, and the files and folders that it names.
struct Kustomization {
    folder: PathBuf,
    names: BTreeSet<PathBuf>,
}

/// The kustomizations and manifests of a folder and of all folders below it.
pub struct Manifests {
    kustomizations: Vec<Kustomization>,
    files: Vec<PathBuf>,
}

/// Reads a folder and all folders below it, except charts.
///
/// # Errors
/// If a file cannot be read, or is no YAML.
pub fn read(folder: &Path) -> anyhow::Result<Manifests> {
    let mut manifests = Manifests { kustomizations: Vec::new(), files: Vec::new() };
    manifests.enter(folder)?;
    Ok(manifests)
}

impl Manifests {
    /// The folders with a kustomization.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.kustomizations.iter().map(|one| one.folder.as_path())
    }

    /// Names in kustomizations that are neither a file nor a folder with a kustomization.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let named = self
            .kustomizations
            .iter()
            .flat_map(|one| one.names.iter().map(|name| (one.folder.display(), name)));
        let there = |path: &Path| path.is_file() || path.join(KUSTOMIZATION).is_file();
        let missing = named.filter(|(_, name)| !there(name));
        missing.map(|(folder, name)| format!("{folder} names {}", name.display())).collect()
    }

    /// Manifests that the kustomization of their own folder does not name.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let named =
            |file: &&PathBuf| self.kustomizations.iter().any(|one| one.names.contains(*file));
        self.files
            .iter()
            .filter(|file| !named(file))
            .map(|file| file.display().to_string())
            .collect()
    }

    fn enter(&mut self, folder: &Path) -> anyhow::Result<()> {
        let entries =
            fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.join(CHART).is_file() {
                continue;
            }
            if path.is_dir() {
                self.enter(&path)?;
            } else if path.ends_with(KUSTOMIZATION) {
                self.kustomizations.push(kustomization(&path, folder)?);
            } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
                self.files.push(path);
            }
        }
        self.files.sort();
        self.kustomizations.sort_by(|one, other| one.folder.cmp(&other.folder));
        Ok(())
    }
}

fn kustomization(path: &Path, folder: &Path) -> anyhow::Result<Kustomization> {
    let read =
        || -> anyhow::Result<Value> { Ok(serde_saphyr::from_str(&fs::read_to_string(path)?)?) };
    let value = read().with_context(|| format!("reading {}", path.display()))?;
    let names = names(&value).map(|name| joined(folder, name)).collect();
    Ok(Kustomization { folder: folder.to_owned(), names })
}

/// The files and folders that a kustomization names.
fn names(value: &Value) -> impl Iterator<Item = &str> {
    let list = |key: &str| value[key].as_array().into_iter().flatten();
    let plain = ["resources", "components"].into_iter().flat_map(list).filter_map(Value::as_str);
    plain.chain(list("patches").filter_map(|patch| patch["path"].as_str()))
}

/// The path of a name relative to a folder, without `..`.
pub(crate) fn joined(folder: &Path, name: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in Path::new(name).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        folder
    }

    #[test]
    fn a_missing_name_and_an_unnamed_manifest_are_found() {
        let folder = folder(&[
            ("a/kustomization.yaml", "resources:\n- one.yaml\n- gone.yaml\n- ../b\n- ../c\n"),
            ("a/one.yaml", ""),
            ("a/two.yaml", ""),
            ("b/kustomization.yaml", "resources: []\npatches:\n- path: patch.yaml\n"),
            ("b/patch.yaml", ""),
            ("c/alone.yaml", ""),
            ("d/Chart.yaml", ""),
            ("d/templates/a.yaml", "{{- if }}"),
        ]);
        let manifests = read(folder.path()).expect("manifests");
        let below = |name: &str| folder.path().join(name).display().to_string();
        let missing =
            ["c", "a/gone.yaml"].map(|name| format!("{} names {}", below("a"), below(name)));
        let mut found = manifests.missing();
        found.sort_by_key(|line| line.ends_with("gone.yaml"));
        assert_eq!(found, missing);
        assert_eq!(manifests.left_out(), [below("a/two.yaml"), below("c/alone.yaml")]);
        assert_eq!(manifests.folders().count(), 2);
    }
}
