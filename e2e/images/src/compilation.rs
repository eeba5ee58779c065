//! Compiles the programs of images, statically, and notes which packages went into them.
//!
//! Cargo is called for the packages of the programs alone: a build together with `e2e` would enable the failpoints of tests. What cargo
//! reports about the build is checked for them as well.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    io::BufReader,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail, ensure};
use cargo_metadata::{Artifact, Message, PackageId};

use crate::definition::{ImageDefinition, ImagePlatform};

/// How programs of images are built. Both are static, without names of functions and without failpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageProfile {
    /// As they are published: small and fast, after a quarter of an hour.
    Published,
    /// For tests of images: larger and slower, after some minutes.
    Quick,
}

impl ImageProfile {
    /// The profile of the workspace.
    fn name(self) -> &'static str {
        match self {
            Self::Published => "image",
            Self::Quick => "image-quick",
        }
    }
}

/// The feature with which writes can end the process.
const FAILPOINTS: &str = "failpoints";

/// What is compiled.
#[derive(Debug, Clone, Copy)]
pub struct CompilationInput<'a> {
    /// The root of the workspace, absolute.
    pub workspace: &'a Path,
    /// A target directory that no other build uses, absolute.
    pub target_directory: &'a Path,
    /// The machine that the programs are for.
    pub platform: ImagePlatform,
    /// The revision of the sources, which the programs report.
    pub revision: &'a str,
    /// How they are built.
    pub profile: ImageProfile,
}

/// What cargo has built.
#[derive(Debug, Default)]
pub struct Compilation {
    /// The programs by name.
    pub programs: BTreeMap<String, PathBuf>,
    /// Packages that were compiled for the platform. Procedural macros and build scripts are not among them.
    pub linked: BTreeSet<PackageId>,
}

/// Builds the programs of the images.
///
/// # Errors
/// If cargo fails, or a package was built with failpoints.
pub fn compile(
    images: &[ImageDefinition],
    input: &CompilationInput<'_>,
) -> anyhow::Result<Compilation> {
    let mut cargo = command(images, input).stdout(Stdio::piped()).spawn().context("cargo build")?;
    let output = cargo.stdout.take().context("cargo build: no output")?;
    let mut compilation = Compilation::default();
    let mut refused = None;
    for message in Message::parse_stream(BufReader::new(output)) {
        let message = message.context("reading the messages of cargo build")?;
        if let Message::CompilerArtifact(artifact) = message {
            refused = compilation.observe(artifact, input.platform).err().or(refused);
        }
    }
    let status = cargo.wait().context("cargo build")?;
    ensure!(status.success(), "cargo build: {status}");
    refused.map_or(Ok(compilation), Err)
}

impl Compilation {
    /// The path of a program.
    ///
    /// # Errors
    /// If it was not built.
    pub fn program(&self, name: &str) -> anyhow::Result<&Path> {
        let path = self.programs.get(name);
        path.map(PathBuf::as_path).with_context(|| format!("cargo build made no program {name}"))
    }

    fn observe(&mut self, artifact: Artifact, platform: ImagePlatform) -> anyhow::Result<()> {
        let is_for = |path: &cargo_metadata::camino::Utf8PathBuf| {
            path.components().any(|part| part.as_str() == platform.triple)
        };
        // What runs on the building machine is in a folder without the target's name.
        if !artifact.filenames.iter().any(is_for) {
            return Ok(());
        }
        if artifact.features.iter().any(|feature| feature == FAILPOINTS) {
            bail!("{} was built with {FAILPOINTS}", artifact.package_id);
        }
        if let Some(path) = artifact.executable {
            self.programs.insert(artifact.target.name, path.into());
        }
        self.linked.insert(artifact.package_id);
        Ok(())
    }
}

fn command(images: &[ImageDefinition], input: &CompilationInput<'_>) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(input.workspace);
    cargo.args(["build", "--locked", "--message-format", "json-render-diagnostics"]);
    cargo.args(["--profile", input.profile.name(), "--target", input.platform.triple]);
    cargo.arg("--target-dir").arg(input.target_directory);
    for image in images {
        cargo.args(["--package", image.package, "--bin", image.program]);
    }
    // Flags of the environment are no input of an image, nor is a compiler that lints.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(input).join(std::ffi::OsStr::new("\u{1f}")));
    cargo.env("SLUICE_GIT_COMMIT", input.revision).env("CARGO_INCREMENTAL", "0");
    cargo
}

/// Static linking, no names of functions, and no paths of this machine in the programs. Cargo forgets the profile's `strip` for a
/// package with an `opt-level` of its own.
fn flags(input: &CompilationInput<'_>) -> Vec<OsString> {
    let mut flags = vec!["-Ctarget-feature=+crt-static".into(), "-Cstrip=symbols".into()];
    flags.push(remap(input.workspace, "/sluice"));
    flags.extend(cargo_home().map(|home| remap(&home, "/cargo")));
    if !input.target_directory.starts_with(input.workspace) {
        flags.push(remap(input.target_directory, "/sluice/target/images/build"));
    }
    flags
}

fn remap(path: &Path, to: &str) -> OsString {
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(path);
    flag.push("=");
    flag.push(to);
    flag
}

/// Where cargo keeps the sources of dependencies.
fn cargo_home() -> Option<PathBuf> {
    let home = || env::home_dir().map(|home| home.join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)
}
