//! An overlay that names the images of a registry, as config/README.md has it, over what a user applies.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::{installation::root, local_webhooks};
use lab::binaries::Binaries;

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
    let objects = local_webhooks::objects(&kustomize(kubectl, folder.path())?)?;
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
