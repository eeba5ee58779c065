//! The committed files of the chart follow from the manifests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chart::{CHART, MARK};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn generated_files_are_up_to_date() {
    let stale = chart::stale(&root()).expect("the manifests");
    assert_eq!(stale, [""; 0].map(PathBuf::from), "stale: run `make generate`");
}

#[test]
fn a_template_without_a_manifest_is_stale_and_is_removed() {
    let copy = tempfile::tempdir().expect("a folder");
    for folder in ["config", "crds/manifests"] {
        copied(&root().join(folder), &copy.path().join(folder));
    }
    chart::write(copy.path()).expect("the chart");

    let templates = copy.path().join(CHART).join("templates");
    fs::write(templates.join("rbac/gone.yaml"), format!("{MARK}x")).expect("a file");
    fs::write(templates.join("own.yaml"), "kind: A\n").expect("a file");
    fs::write(copy.path().join("config/rbac/core.yaml"), "kind: A\n").expect("a file");
    let stale = ["templates/rbac/core.yaml", "templates/rbac/gone.yaml"].map(PathBuf::from);
    assert_eq!(chart::stale(copy.path()).expect("the manifests"), stale);

    chart::write(copy.path()).expect("the chart");
    assert_eq!(chart::stale(copy.path()).expect("the manifests"), [""; 0].map(PathBuf::from));
    assert!(templates.join("own.yaml").exists(), "only generated templates are removed");
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let (path, to) = (entry.expect("an entry").path(), to.to_owned());
        let name = path.file_name().expect("a name");
        if path.is_dir() {
            copied(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).expect("a file");
        }
    }
}
