//! The Python of the image, run on this machine: by the loader and with the libraries of the image, so that the machine needs
//! neither a Python nor root, and pip takes the wheels for the image.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cache::{CacheError, command};

/// The folder of libraries of the architecture.
const LIBRARIES: &str = "lib/x86_64-linux-gnu";

const LOADER: &str = "ld-linux-x86-64.so.2";

/// The folder of Debian's package of pip, which is one wheel.
const PIP: &str = "usr/share/python-wheels";

/// Python in a folder that packages were unpacked to.
#[derive(Debug, Clone, Copy)]
pub struct UnpackedPython<'a> {
    /// The root of the file system.
    pub root: &'a Path,
}

impl UnpackedPython<'_> {
    /// Installs the wheels of a file of requirements, each with its digest, into a folder. Settings of pip such as the index are those of
    /// the environment.
    ///
    /// # Errors
    /// If a wheel cannot be had, or is another one.
    pub fn install(&self, requirements: &Path, into: &Path) -> Result<()> {
        let mut pip = self.command();
        pip.arg(self.pip()?.join("pip")).args(["install", "--quiet", "--no-input", "--no-deps"]);
        pip.args(["--require-hashes", "--only-binary=:all:", "--no-compile"]);
        pip.args(["--disable-pip-version-check", "--root-user-action=ignore"]);
        pip.args([OsStr::new("--target"), into.as_os_str(), OsStr::new("--requirement")]);
        run("pip install", pip.arg(requirements))
    }

    /// Compiles folders of the image. What is compiled counts whatever times the files have.
    ///
    /// # Errors
    /// If Python fails.
    pub fn compile(&self, folders: &[&str]) -> Result<()> {
        let mut compile = self.command();
        compile.args(["-m", "compileall", "-q", "-j", "0"]);
        compile.args(["--invalidation-mode", "unchecked-hash", "-s"]).arg(self.root);
        // Files that belong to other versions of Python do not compile, and are reported on standard output.
        compile.args(["-p", "/"]).args(folders.iter().map(|folder| self.root.join(folder)));
        run("compileall", &mut compile)
    }

    fn command(&self) -> Command {
        let libraries = [LIBRARIES.to_owned(), format!("usr/{LIBRARIES}")];
        let libraries = libraries.map(|folder| self.root.join(folder).display().to_string());
        let mut command = Command::new(self.root.join(LIBRARIES).join(LOADER));
        command.arg("--library-path").arg(libraries.join(":"));
        // Neither settings nor packages of this machine's Python.
        command.arg(self.root.join("usr/bin/python3.11")).args(["-E", "-s", "-B"]);
        command
    }

    fn pip(&self) -> Result<PathBuf> {
        let folder = self.root.join(PIP);
        let entries = std::fs::read_dir(&folder);
        let entries = entries.with_context(|| format!("listing {}", folder.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let named = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pip-"))
        };
        let found = paths.into_iter().find(named);
        found.with_context(|| format!("there is no pip in {}", folder.display()))
    }
}

/// Runs a module of Python. Its command line has the path of every library, and would hide what failed.
fn run(module: &str, command: &mut Command) -> Result<()> {
    match command::run(command) {
        Err(CacheError::Command { output, .. }) => bail!("{module} failed: {output}"),
        other => Ok(other?),
    }
}
