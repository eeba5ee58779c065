//! `sluice-images`: makes the images of the programs and their bills of materials.
#![expect(clippy::print_stdout, reason = "a command line tool's output")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Metadata, MetadataCommand};
use clap::Parser;
use images::{
    assembly::{self, ImageOrigin},
    compilation::{Compilation, CompilationInput, ImageProfile, compile},
    definition::{self, IMAGES, ImageDefinition, ImagePlatform},
    layer::LayerFile,
    ray, revision, whole_file,
};

/// The name of the image with Ray on the command line.
const RAY: &str = "ray";

/// Makes images of the programs, one archive each, for containerd, Docker and kind.
#[derive(Parser)]
#[command(name = "sluice-images", version)]
struct ImagesCli {
    /// The images; both programs if none is named. `ray` is the real Ray, for tests, in the machine's cache.
    images: Vec<String>,
    /// The folder of the archives of programs; by default `images` in the target directory.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The revision of the sources; by default the commit that is checked out.
    #[arg(long)]
    revision: Option<String>,
    /// The address of the repository; by default that of the package.
    #[arg(long)]
    source: Option<String>,
    /// Builds larger and slower programs in some minutes, for tests: `images/quick` in the target directory, of any size.
    #[arg(long)]
    quick: bool,
    /// Writes the files of each image to a folder, for a Dockerfile, and no archive.
    #[arg(long)]
    files: bool,
}

/// What all images of a call share.
struct ImageRun {
    cli: ImagesCli,
    metadata: Metadata,
    platform: ImagePlatform,
    revision: String,
    rust: String,
    out: PathBuf,
}

impl ImagesCli {
    fn profile(&self) -> ImageProfile {
        if self.quick { ImageProfile::Quick } else { ImageProfile::Published }
    }

    /// The folder in the target directory. Images for tests do not take the place of others.
    fn default_folder(&self) -> &'static str {
        if self.quick { "images/quick" } else { "images" }
    }
}

fn main() -> ExitCode {
    match run(ImagesCli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sluice-images: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut cli: ImagesCli) -> Result<()> {
    if cli.images.iter().any(|name| name == RAY) {
        ensure!(!cli.files, "the image of Ray has no Dockerfile, so --files does not go with it");
        let archive = ray::find(&|line| eprintln!("{line}"))?;
        println!("{}\n  {}", ray::RAY_IMAGE, archive.display());
        cli.images.retain(|name| name != RAY);
        if cli.images.is_empty() {
            return Ok(());
        }
    }
    let run = ImageRun::start(cli)?;
    let named = run.cli.images.iter().map(|name| definition::named(name));
    let mut images = named.collect::<Result<Vec<_>>>()?;
    if images.is_empty() {
        images.extend(IMAGES);
    }
    if run.cli.quick {
        images = images.into_iter().map(ImageDefinition::of_any_size).collect();
    }
    let target = run.metadata.target_directory.join("images/build");
    let input = CompilationInput {
        workspace: run.metadata.workspace_root.as_std_path(),
        target_directory: target.as_std_path(),
        platform: run.platform,
        revision: &run.revision,
        profile: run.cli.profile(),
    };
    let compilation = compile(&images, &input)?;
    images.iter().try_for_each(|image| {
        run.make(image, &compilation).with_context(|| format!("image {}", image.program))
    })
}

impl ImageRun {
    fn start(cli: ImagesCli) -> Result<Self> {
        let platform = ImagePlatform::of_this_machine()?;
        let mut cargo = MetadataCommand::new();
        let filter = ["--locked", "--filter-platform", platform.triple];
        cargo.other_options(filter.map(str::to_owned).to_vec());
        let metadata = cargo.exec().context("cargo metadata")?;
        let revision = cli.revision.clone().filter(|revision| !revision.is_empty());
        let revision = match revision {
            Some(revision) => revision,
            None => revision::of(metadata.workspace_root.as_std_path())?,
        };
        let beside = || metadata.target_directory.join(cli.default_folder()).into();
        let out = cli.out.clone().unwrap_or_else(beside);
        Ok(Self { cli, platform, revision, rust: rust_version()?, out, metadata })
    }

    fn make(&self, image: &ImageDefinition, compilation: &Compilation) -> Result<()> {
        let path = compilation.program(image.program)?;
        let program = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        if self.cli.files {
            return self.write_files(image, &assembly::files(image, &program)?);
        }
        let origin = ImageOrigin {
            metadata: &self.metadata,
            compiled: &compilation.linked,
            platform: self.platform,
            revision: &self.revision,
            source: self.cli.source.as_deref(),
            rust: &self.rust,
        };
        let made = assembly::assemble(image, &program, &origin)?;
        let archive = self.write(image.program, "tar", &made.archive.content)?;
        self.write(image.program, "cdx.json", &made.bill)?;
        println!("{} sha256:{}", made.reference, made.archive.digest);
        let (size, packed) = (megabytes(program.len()), megabytes(made.archive.content.len()));
        println!("  program {size} MB, archive {packed} MB: {}", archive.display());
        Ok(())
    }

    fn write(&self, name: &str, extension: &str, content: &[u8]) -> Result<PathBuf> {
        let path = self.out.join(format!("{name}.{extension}"));
        write(&path, content)?;
        Ok(path)
    }

    fn write_files(&self, image: &ImageDefinition, files: &[LayerFile]) -> Result<()> {
        let root = self.out.join(image.program);
        for file in files {
            let path = root.join(&file.path);
            write(&path, &file.content)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))?;
        }
        println!("{}", root.display());
        Ok(())
    }
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    whole_file::replace(path, content).with_context(|| format!("writing {}", path.display()))
}

fn rust_version() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output().context("rustc --version")?;
    let text = String::from_utf8(output.stdout).context("rustc --version")?;
    let version = text.split(' ').nth(1).context("rustc --version names no version")?;
    Ok(version.to_owned())
}

fn megabytes(bytes: usize) -> String {
    format!("{}.{}", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}
