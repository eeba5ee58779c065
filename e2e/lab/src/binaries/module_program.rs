//! Programs with a Go module of their own, so that their dependencies do not choose the versions of the lab's control planes.

use std::path::{Path, PathBuf};

use cache::{once, short_digest};

use super::{BinariesError, build};

/// A program with a module in a folder of its name.
#[derive(Debug, Clone, Copy)]
pub struct ModuleProgram {
    /// Of the program and of its folder.
    pub name: &'static str,
    /// Build tags.
    pub tags: &'static str,
}

/// Helm, which renders and installs the chart.
const HELM: ModuleProgram = ModuleProgram { name: "helm", tags: "" };

/// kustomize, with the command `edit`, which kubectl lacks.
const KUSTOMIZE: ModuleProgram = ModuleProgram { name: "kustomize", tags: "" };

/// Finds Helm; builds it when needed.
///
/// # Errors
/// As [`find`].
pub fn helm(report: &dyn Fn(&str)) -> Result<PathBuf, BinariesError> {
    find(Path::new(env!("CARGO_MANIFEST_DIR")), HELM, report)
}

/// Finds kustomize; builds it when needed.
///
/// # Errors
/// As [`find`].
pub fn kustomize(report: &dyn Fn(&str)) -> Result<PathBuf, BinariesError> {
    find(Path::new(env!("CARGO_MANIFEST_DIR")), KUSTOMIZE, report)
}

/// Finds a program; builds it when needed. Its module is the folder of its name in `modules`. `report` gets a line of progress.
///
/// # Errors
/// If there is no Go toolchain, or the build fails.
pub fn find(
    modules: &Path,
    program: ModuleProgram,
    report: &dyn Fn(&str),
) -> Result<PathBuf, BinariesError> {
    let ModuleProgram { name, tags } = program;
    let module = modules.join(name);
    let directory = cache::root()?.join(format!("{name}-{}", key_of(&module, tags)?));
    once::filled(&directory, &once::has_programs(&[name]), report, |into| {
        report(&format!("building {name} from its Go module; a minute or two, once"));
        let (flags, output) = (build::LINKER_FLAGS.join(" "), into.join(name));
        let output = output.display().to_string();
        let how = ["-trimpath", "-tags", tags, "-ldflags", &flags];
        let arguments = [&["build"][..], &how, &["-o", &output, "."]].concat();
        build::go(&module, &arguments).map(drop)
    })?;
    Ok(directory.join(name))
}

/// A digest of what a program is built of.
fn key_of(module: &Path, tags: &str) -> Result<String, BinariesError> {
    let mut inputs = format!("{tags} {}", build::LINKER_FLAGS.join(" "));
    for file in ["go.mod", "go.sum", "main.go"] {
        let path = module.join(file);
        inputs += &std::fs::read_to_string(&path).map_err(cache::io("read", &path))?;
    }
    Ok(short_digest(&inputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_module_and_its_tags_change_its_key() {
        let module = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| std::fs::write(module.path().join(file), text);
        let files = ["go.mod", "go.sum", "main.go"];
        files.iter().try_for_each(|file| write(file, "first")).unwrap();
        let first = key_of(module.path(), "").unwrap();
        assert_ne!(key_of(module.path(), "netgo").unwrap(), first);
        for file in files {
            write(file, "second").unwrap();
            assert_ne!(key_of(module.path(), "").unwrap(), first, "{file}");
            write(file, "first").unwrap();
        }
        assert_eq!(key_of(module.path(), "").unwrap(), first);
    }
}
