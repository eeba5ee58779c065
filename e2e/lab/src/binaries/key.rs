//! The key of the cache: a digest of all inputs of the build.
//!
//! go.mod and go.sum determine the content of all modules. The sources of `cmd/`, the version of the toolchain, the platform and
//! the build flags complete the key.

use std::path::{Path, PathBuf};

use cache::io;
use ring::digest::{Context, SHA256};

use super::{BinariesError, build};

/// The key of the programs built from `module`.
pub(super) fn key(module: &Path) -> Result<String, BinariesError> {
    let toolchain = build::go(module, &["env", "GOVERSION", "GOOS", "GOARCH"])?;
    digest(module, &format!("{toolchain}{}", build::LINKER_FLAGS.join(" ")))
}

fn digest(module: &Path, environment: &str) -> Result<String, BinariesError> {
    let mut context = Context::new(&SHA256);
    for file in inputs(module)? {
        let content = std::fs::read(&file).map_err(io("read", &file))?;
        let name = file.strip_prefix(module).unwrap_or(&file).display().to_string();
        context.update(format!("{name} {}\n", content.len()).as_bytes());
        context.update(&content);
    }
    context.update(environment.as_bytes());
    Ok(context.finish().as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect())
}

/// go.mod, go.sum and the mains, in a fixed order.
fn inputs(module: &Path) -> Result<Vec<PathBuf>, BinariesError> {
    let commands = module.join("cmd");
    let mut mains = Vec::new();
    for entry in std::fs::read_dir(&commands).map_err(io("list", &commands))? {
        mains.push(entry.map_err(io("list", &commands))?.path().join("main.go"));
    }
    mains.sort();
    Ok([module.join("go.mod"), module.join("go.sum")].into_iter().chain(mains).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module() -> tempfile::TempDir {
        let module = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(module.path().join("cmd/etcd")).unwrap();
        std::fs::write(module.path().join("go.mod"), "module m\n").unwrap();
        std::fs::write(module.path().join("go.sum"), "").unwrap();
        std::fs::write(module.path().join("cmd/etcd/main.go"), "package main\n").unwrap();
        module
    }

    #[test]
    fn every_input_changes_the_key() {
        let module = module();
        let first = digest(module.path(), "go1").unwrap();
        assert_eq!(digest(module.path(), "go1").unwrap(), first);
        assert_ne!(digest(module.path(), "go2").unwrap(), first);
        for file in ["go.mod", "go.sum", "cmd/etcd/main.go"] {
            let path = module.path().join(file);
            let before = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, format!("{before}// changed\n")).unwrap();
            assert_ne!(digest(module.path(), "go1").unwrap(), first, "{file}");
            std::fs::write(&path, before).unwrap();
        }
    }
}
