//! The images of a registry in place of those that the kustomizations name, as config/README.md has it: by an overlay, and by kustomize.

use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::{installation::root, local_webhooks};
use lab::binaries::{Binaries, module_program};

use crate::manifests::kustomize;

const REGISTRY: &str = "registry.example.com";

/// Bases with the program of their Deployments.
const BASES: [(&str, &str); 3] = [
    ("config/default", "sluice-manager"),
    ("config/ray-api", "sluice-manager"),
    ("config/worker", "sluice-agent"),
];

/// The images of containers in the output of an overlay over a base. `replaced` is its part with the images.
fn images(kubectl: &Path, base: &str, replaced: &str) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    // kustomize takes no absolute path.
    let place = folder.path().canonicalize()?;
    let folders = place.components().filter(|one| matches!(one, Component::Normal(_)));
    let up = folders.map(|_| "..");
    let base = up.collect::<PathBuf>().join(root().join(base).strip_prefix("/")?);
    let text = format!("resources:\n- {}\n{replaced}", base.display());
    std::fs::write(folder.path().join("kustomization.yaml"), text)?;
    images_in(kubectl, folder.path())
}

/// The images of containers in the output of a kustomization.
fn images_in(kubectl: &Path, folder: &Path) -> Result<Vec<String>> {
    let objects = local_webhooks::objects(&kustomize(kubectl, folder)?)?;
    let containers = objects
        .iter()
        .filter_map(|object| object.pointer("/spec/template/spec/containers")?.as_array());
    let images = containers.flatten().filter_map(|container| container["image"].as_str());
    Ok(images.map(str::to_owned).collect())
}

/// The block of config/README.md that begins with `images:`.
fn images_of_readme() -> Result<String> {
    let readme = std::fs::read_to_string(root().join("config/README.md"))?;
    let block = readme.split("\n```").find(|block| block.contains("\nimages:\n"));
    let block = block.context("config/README.md has no block of images")?;
    let begin = block.find("images:\n").context("images")?;
    Ok(block[begin..].to_owned())
}

#[test]
fn an_overlay_replaces_the_image_of_every_container() -> Result<()> {
    let kubectl = Binaries::find(&|line| eprintln!("{line}"))?.kubectl();
    let readme = images_of_readme()?;
    for (base, program) in BASES {
        let images = images(&kubectl, base, &readme.replace("sluice-manager", program))?;
        let wanted = format!("{REGISTRY}/{program}:v0.1.0");
        ensure!(
            !images.is_empty() && images.iter().all(|one| *one == wanted),
            "{base}: {images:?}"
        );
    }
    Ok(())
}

#[test]
fn kustomize_edits_the_images_of_the_folders_themselves() -> Result<()> {
    let report = |line: &str| eprintln!("{line}");
    let (kubectl, edit) = (Binaries::find(&report)?.kubectl(), module_program::kustomize(&report)?);
    let copy = tempfile::tempdir()?;
    let mut copy_folders = Command::new("cp");
    copy_folders.args(["-r", "--parents", "config", "crds/manifests"]).arg(copy.path());
    let copied = copy_folders.current_dir(root()).status()?;
    ensure!(copied.success(), "config is not copied");
    let readme = std::fs::read_to_string(root().join("config/README.md"))?;
    for (folder, program) in [
        ("manager", "sluice-manager"),
        ("ray-api", "sluice-manager"),
        ("worker/agent", "sluice-agent"),
    ] {
        ensure!(readme.contains(&format!("`{folder}/kustomization.yaml`")), "{folder}");
        let command = format!("edit set image {program}={REGISTRY}/{program}:v0.1.0");
        ensure!(readme.contains(&format!("\nkustomize {command}\n")), "{command}");
        let folder = copy.path().join("config").join(folder);
        let edited = Command::new(&edit).current_dir(folder).args(command.split(' ')).output()?;
        ensure!(edited.status.success(), "{command}: {edited:?}");
    }
    for (base, program) in BASES {
        let images = images_in(&kubectl, &copy.path().join(base))?;
        let wanted = format!("{REGISTRY}/{program}:v0.1.0");
        ensure!(
            !images.is_empty() && images.iter().all(|one| *one == wanted),
            "{base}: {images:?}"
        );
    }
    Ok(())
}
