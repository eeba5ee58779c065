//! The images of manager and agent for the nodes of a test.
//!
//! `make images` takes ten minutes, so tests pack the programs that were built with them: the same name, user and entry point,
//! with the libraries that a debug build needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::program;
use images::archive;
use images::layer::USER;
use lab::real_nodes::container_image::{ImageFile, LabImage};

use crate::installation::root;

/// The archive of a program: the one of `make images` in the folder that `SLUICE_IMAGES` names, from the root of the workspace, or else
/// one of the debug program in `folder`.
///
/// # Errors
/// If the archive is not complete, or cannot be made.
pub fn archive(folder: &Path, name: &str) -> Result<PathBuf> {
    if let Some(made) = std::env::var_os("SLUICE_IMAGES").filter(|folder| !folder.is_empty()) {
        return made_archive(&root().join(made), name);
    }
    debug_archive(folder, name)
}

/// The archive of a debug program, in `folder`.
///
/// # Errors
/// If the program is not built, or the archive cannot be written.
pub fn debug_archive(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(format!("{name}.tar"));
    let archive = debug_image(name)?.archive()?;
    std::fs::write(&path, archive).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// The archive of a program that `make images` has made.
fn made_archive(folder: &Path, name: &str) -> Result<PathBuf> {
    let shown = folder.display();
    ensure!(folder.is_dir(), "SLUICE_IMAGES: there is no folder {shown}; `make images` makes one");
    let path = folder.join(format!("{name}.tar"));
    ensure!(path.is_file(), "SLUICE_IMAGES: {shown} has no {name}.tar; `make images` makes it");
    let broken = || {
        format!(
            "SLUICE_IMAGES: {} is no complete archive of an image; remove it and run `make images`",
            path.display()
        )
    };
    archive::check(&path).with_context(broken)?;
    Ok(path)
}

fn debug_image(name: &str) -> Result<LabImage> {
    let built = program(name)?;
    let mut programs = vec![file(name, &built)?];
    for library in libraries(&built)? {
        programs.push(file(library.trim_start_matches('/'), Path::new(&library))?);
    }
    Ok(LabImage {
        reference: format!("{name}:v{}", env!("CARGO_PKG_VERSION")),
        programs,
        entrypoint: vec![format!("/{name}")],
        user: format!("{USER}:{USER}"),
        ..LabImage::default()
    })
}

fn file(path: &str, source: &Path) -> Result<ImageFile> {
    let program = std::fs::read(source);
    let program = program.with_context(|| format!("reading {}", source.display()))?;
    Ok(ImageFile { path: path.to_owned(), program })
}

/// The libraries of a program with the loader, by their paths.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let output = Command::new("ldd").arg(program).output().context("running ldd")?;
    ensure!(output.status.success(), "ldd {}", program.display());
    let text = String::from_utf8_lossy(&output.stdout);
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_folder_and_a_half_archive_are_named_with_what_helps() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let said = |folder: &Path| {
            made_archive(folder, "sluice-agent").err().map(|error| format!("{error:#}"))
        };
        let absent = said(&folder.path().join("none")).context("there is none")?;
        assert!(absent.ends_with("/none; `make images` makes one"), "{absent}");
        let absent = said(folder.path()).context("it is empty")?;
        assert!(absent.ends_with("has no sluice-agent.tar; `make images` makes it"), "{absent}");

        let path = folder.path().join("sluice-agent.tar");
        let whole = LabImage {
            programs: vec![ImageFile { path: "bin/x".to_owned(), program: vec![1; 5000] }],
            ..LabImage::default()
        };
        let whole = whole.archive()?;
        for half in [&whole[..0], &whole[..3000], &whole[..whole.len() / 2]] {
            std::fs::write(&path, half)?;
            let broken = said(folder.path()).context("it is half an archive")?;
            assert!(broken.contains("sluice-agent.tar is no complete archive"), "{broken}");
        }
        std::fs::write(&path, &whole)?;
        assert_eq!(made_archive(folder.path(), "sluice-agent")?, path);
        Ok(())
    }
}
