//! systemd and kind expect `/bin`, `/sbin`, `/lib` and `/lib64` as links into `/usr`. Debian's packages still have files in both.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use cache::command;

const FOLDERS: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// Moves the folders of `root` into its `usr`, and puts links in their places.
pub(super) fn merge(root: &Path) -> Result<()> {
    for name in FOLDERS {
        let (folder, merged) = (root.join(name), root.join("usr").join(name));
        fs::create_dir_all(&merged).with_context(|| format!("creating {}", merged.display()))?;
        if folder.is_dir() {
            // It may have folders that `usr` has as well.
            command::run(Command::new("cp").arg("--archive").arg(folder.join(".")).arg(&merged))?;
            fs::remove_dir_all(&folder).with_context(|| format!("moving {}", folder.display()))?;
        }
        symlink(format!("usr/{name}"), &folder)
            .with_context(|| format!("linking {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_both_folders_are_found_by_both_names() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [("lib/x/one", "1"), ("usr/lib/x/two", "2"), ("bin/sh", "3")] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        merge(root.path()).unwrap();
        let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
        for folder in ["lib", "usr/lib"] {
            assert_eq!(read(&format!("{folder}/x/one")) + &read(&format!("{folder}/x/two")), "12");
        }
        assert_eq!(read("usr/bin/sh"), "3");
        assert_eq!(fs::read_link(root.path().join("sbin")).unwrap(), Path::new("usr/sbin"));
    }
}
