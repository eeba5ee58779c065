//! The images of manager and agent for the nodes of a test.
//!
//! `make images` takes ten minutes, so the tests pack the programs that were built with them: the same name, user and entry point,
//! with the libraries that a debug build needs. `SLUICE_IMAGES` names a folder with the archives of `make images` instead.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::program;
use images::layer::USER;
use lab::real_nodes::container_image::{ImageFile, LabImage};

/// The archive of a program, in `folder` unless it is there already.
pub(crate) fn archive(folder: &Path, name: &str) -> Result<PathBuf> {
    if let Some(made) = std::env::var_os("SLUICE_IMAGES").filter(|folder| !folder.is_empty()) {
        return Ok(Path::new(&made).join(format!("{name}.tar")));
    }
    let path = folder.join(format!("{name}.tar"));
    let archive = debug_image(name)?.archive()?;
    std::fs::write(&path, archive).with_context(|| format!("writing {}", path.display()))?;
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
