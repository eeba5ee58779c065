//! The image with the real Ray: Python of Debian packages and the wheels of `ray[default]`, for tests.
//!
//! Packages have fixed versions, wheels have fixed digests (`e2e/images/ray/`). The archive is kept in the machine's cache under a key
//! of all of its inputs. It holds no program of Sluice and is not published.
//!
//! | module | concept |
//! |---|---|
//! | [`content`] | the files of the image |
//! | [`python`] | the Python of the image, run on this machine |
//! | [`scripts`] | commands of the wheels |

pub mod content;
pub mod python;
pub mod scripts;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cache::{once, recipe_digest, short_digest};

use crate::archive::is_complete;
use crate::folder_image::{FOLDER_IMAGE_SOURCE, FolderImage};

/// The name of the image, with Ray's version as its tag.
pub const RAY_IMAGE: &str = "lab.sluice.dev/ray:2.60.0";

/// Debian packages, a line `NAME=VERSION` each.
const PACKAGES: &str = include_str!("../../ray/packages.txt");

/// Wheels as pip reads them.
const REQUIREMENTS: &str = include_str!("../../ray/requirements.txt");

/// What makes an image of the packages and wheels, as part of the key.
const SOURCES: [&str; 5] = [
    include_str!("mod.rs"),
    include_str!("content.rs"),
    include_str!("python.rs"),
    include_str!("scripts.rs"),
    FOLDER_IMAGE_SOURCE,
];

/// The file in a directory of the cache.
const ARCHIVE: &str = "ray.tar";

/// Why this machine cannot make the image, in one line.
#[must_use]
pub fn lacking() -> Option<String> {
    let machine = std::env::consts::ARCH;
    (machine != "x86_64")
        .then(|| format!("the image of Ray is for x86_64, and this machine is {machine}"))
}

/// Finds the archive of the image in the cache, or makes it. `report` gets a line of progress now and then.
///
/// # Errors
/// If this machine has another architecture, or packages or wheels cannot be had.
pub fn find(report: &dyn Fn(&str)) -> Result<PathBuf> {
    find_in(&cache::root()?, report)
}

/// Finds the archive of the image in a given cache, or makes it.
///
/// # Errors
/// As [`find`].
pub fn find_in(cache: &Path, report: &dyn Fn(&str)) -> Result<PathBuf> {
    if let Some(why) = lacking() {
        bail!(why);
    }
    let directory = cache.join(format!("ray-{}", key()));
    let is_made = |directory: &Path| is_complete(&directory.join(ARCHIVE)).unwrap_or_default();
    once::filled(&directory, &is_made, report, |into| make(into, report))
        .context("making the image of Ray")?;
    Ok(directory.join(ARCHIVE))
}

/// Another input is another directory.
fn key() -> String {
    short_digest(&[&recipe_digest(&SOURCES), RAY_IMAGE, PACKAGES, REQUIREMENTS].join("\n"))
}

/// Makes the archive in an empty directory and leaves nothing else there.
fn make(into: &Path, report: &dyn Fn(&str)) -> Result<()> {
    let root = into.join("root");
    content::fill(&root, &content::RayInputs { packages: PACKAGES, wheels: REQUIREMENTS }, report)?;
    report("packing the image of Ray");
    let image = FolderImage {
        reference: RAY_IMAGE,
        root: &root,
        environment: &content::ENVIRONMENT,
        working_directory: "/root",
        command: &["/bin/bash"],
    };
    image.write(&into.join(ARCHIVE))?;
    std::fs::remove_dir_all(&root).with_context(|| format!("removing {}", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_named_for_the_wheel_of_ray() {
        let version = RAY_IMAGE.rsplit(':').next().unwrap_or_default();
        assert!(REQUIREMENTS.lines().any(|line| line.starts_with(&format!("ray=={version} "))));
    }

    #[test]
    fn the_key_covers_every_source_of_the_module() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ray");
        for file in std::fs::read_dir(folder).expect("the folder") {
            let path = file.expect("a file").path();
            let source = std::fs::read_to_string(&path).expect("it is read");
            assert!(SOURCES.contains(&source.as_str()), "{}", path.display());
        }
    }

    #[test]
    fn every_input_is_pinned() {
        for line in PACKAGES.lines() {
            assert!(line.split_once('=').is_some_and(|(_, version)| !version.is_empty()), "{line}");
        }
        for line in REQUIREMENTS.lines().filter(|line| !line.starts_with('#')) {
            let digest = line.split(" --hash=sha256:").nth(1).unwrap_or_default();
            assert!(line.contains("==") && digest.len() == 64, "{line}");
        }
    }

    #[test]
    fn a_made_image_is_taken_as_it_is_and_half_an_image_is_not() {
        let cache = tempfile::tempdir().expect("a folder");
        let made = cache.path().join(format!("ray-{}", key())).join(ARCHIVE);
        std::fs::create_dir_all(made.parent().expect("a folder")).expect("it is made");
        let whole = crate::folder_image::tests::sample(cache.path());
        std::fs::write(&made, &whole).expect("it is written");
        assert_eq!(find_in(cache.path(), &|_| {}).expect("it is there"), made);
        std::fs::write(&made, &whole[..whole.len() / 2]).expect("it is written");
        assert!(!is_complete(&made).unwrap_or_default());
    }
}
