//! Commands of the wheels: pip puts them beside the packages and names this machine's path of Python in them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The search path of containers has this folder.
const COMMANDS: &str = "usr/local/bin";

/// Moves the commands beside installed wheels to `/usr/local/bin` below `root`, and names Python by its path there.
///
/// # Errors
/// If a file cannot be read or written.
pub fn move_to(wheels: &Path, root: &Path) -> Result<()> {
    let (from, to) = (wheels.join("bin"), root.join(COMMANDS));
    fs::create_dir_all(&to).with_context(|| format!("creating {}", to.display()))?;
    for entry in fs::read_dir(&from).with_context(|| format!("listing {}", from.display()))? {
        let path = entry?.path();
        let moved = to.join(path.file_name().unwrap_or_default());
        fs::rename(&path, &moved).with_context(|| format!("moving {}", path.display()))?;
        let content = fs::read(&moved)?;
        if let Some(content) = at_home(&content, root) {
            fs::write(&moved, content).with_context(|| format!("writing {}", moved.display()))?;
        }
    }
    fs::remove_dir(&from).with_context(|| format!("removing {}", from.display()))?;
    forget(wheels)
}

/// A script without the path of the root in its first line; none for a program.
fn at_home(content: &[u8], root: &Path) -> Option<Vec<u8>> {
    let prefix = format!("#!{}/", root.display());
    let rest = content.strip_prefix(prefix.as_bytes())?;
    Some([b"#!/", rest].concat())
}

/// The lists of installed files name the commands with digests that depend on the path of the root.
fn forget(wheels: &Path) -> Result<()> {
    for entry in fs::read_dir(wheels).with_context(|| format!("listing {}", wheels.display()))? {
        let path = entry?.path().join("RECORD");
        if let Ok(record) = fs::read_to_string(&path) {
            let is_kept = |line: &&str| !line.split(',').next().is_some_and(is_command);
            let kept: String = record.lines().filter(is_kept).map(|it| format!("{it}\n")).collect();
            fs::write(&path, kept).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(())
}

fn is_command(path: &str) -> bool {
    path.trim_start_matches("../").starts_with("bin/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_python_of_the_image_and_no_list_names_them() {
        let root = tempfile::tempdir().expect("a folder");
        let wheels = root.path().join("wheels");
        fs::create_dir_all(wheels.join("bin")).expect("it is made");
        fs::create_dir_all(wheels.join("ray.dist-info")).expect("it is made");
        let script = format!("#!{}/usr/bin/python3.11\nmain()\n", root.path().display());
        fs::write(wheels.join("bin/ray"), script).expect("it is written");
        fs::write(wheels.join("bin/py-spy"), b"\x7fELF\xff").expect("it is written");
        let record = wheels.join("ray.dist-info/RECORD");
        fs::write(&record, "../../bin/ray,sha256=x,1\nray/binary.py,,\n").expect("it is written");

        move_to(&wheels, root.path()).expect("they are moved");

        let read =
            |name: &str| fs::read(root.path().join(COMMANDS).join(name)).expect("it is there");
        assert_eq!(read("ray"), b"#!/usr/bin/python3.11\nmain()\n");
        assert_eq!(read("py-spy"), b"\x7fELF\xff");
        assert!(!wheels.join("bin").exists());
        assert_eq!(fs::read_to_string(record).expect("it is there"), "ray/binary.py,,\n");
    }
}
