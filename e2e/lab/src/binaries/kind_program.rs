//! kind, kubeadm and CoreDNS, built from their Go modules, and the files that kind's module has for nodes.

use std::path::{Path, PathBuf};

use cache::{once, short_digest};

use super::{BinariesError, build};

/// Its version, and part of its directory's name.
const VERSION: &str = "v0.33.0";

/// The files of a node's image, below kind's module.
const BASE_FILES: &str = "images/base/files";

/// A program that nodes of kind have and those of the lab do not.
#[derive(Debug, Clone, Copy)]
pub struct KindNodeProgram {
    name: &'static str,
    tags: &'static str,
}

/// kubeadm. With the tags of the lab's programs Go finds most of its packages compiled.
pub const KUBEADM: KindNodeProgram = KindNodeProgram { name: "kubeadm", tags: "" };

/// CoreDNS. It resolves names itself and needs no C library.
pub const COREDNS: KindNodeProgram = KindNodeProgram { name: "coredns", tags: "netgo,osusergo" };

/// Finds kind; builds it when needed. `report` gets a line of progress now and then.
///
/// # Errors
/// If there is no Go toolchain, or the build fails.
pub fn find(report: &dyn Fn(&str)) -> Result<PathBuf, BinariesError> {
    let directory = cache::root()?.join(format!("kind-{}", VERSION.replace('.', "-")));
    once::filled(&directory, &once::has_programs(&["kind"]), report, |into| {
        report("building kind from its Go module; half a minute, once");
        build::install(&format!("sigs.k8s.io/kind@{VERSION}"), into)
    })?;
    Ok(directory.join("kind"))
}

/// The folder with what kind's module puts on every node.
///
/// # Errors
/// If the module cannot be had.
pub fn base_files(directory: &Path) -> Result<PathBuf, BinariesError> {
    let module = format!("sigs.k8s.io/kind@{VERSION}");
    let answer = build::go(directory, &["mod", "download", "-json", &module])?;
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
    let place = answer["Dir"].as_str().map(|place| Path::new(place).join(BASE_FILES));
    place.filter(|place| place.is_dir()).ok_or_else(|| BinariesError::Go {
        arguments: format!("mod download {module}"),
        output: format!("the module has no {BASE_FILES}"),
    })
}

/// Finds a program of nodes; builds it when needed. Its module is the folder of its name in `modules`.
///
/// # Errors
/// As [`find`].
pub fn node_program(
    modules: &Path,
    program: KindNodeProgram,
    report: &dyn Fn(&str),
) -> Result<PathBuf, BinariesError> {
    let KindNodeProgram { name, tags } = program;
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
