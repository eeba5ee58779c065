//! runc for privileged containers where root lacks CAP_SYS_RESOURCE.
//!
//! Docker gives such containers all capabilities that it knows, and runc fails to apply one that root lacks. This program takes it out of
//! the specification of the container, or of the process of an `exec`, and becomes runc.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Error, Result};
use serde_json::Value;

/// The hidden subcommand of `sluice-kind`.
pub(crate) const SUBCOMMAND: &str = "lean-runtime";

const CAPABILITY: &str = "CAP_SYS_RESOURCE";

/// Its number in the kernel's sets.
const BIT: u32 = 24;

/// Whether root lacks the capability.
pub(super) fn is_needed() -> bool {
    lacks_capability(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// `status` is a text like `/proc/self/status`.
fn lacks_capability(status: &str) -> bool {
    let bounding = status.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    let bounding = bounding.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    bounding.is_some_and(|set| set & (1 << BIT) == 0)
}

/// Becomes runc; returns only if that fails.
pub(crate) fn become_runc(arguments: &[OsString]) -> Result<()> {
    if let Some(file) = specification(arguments) {
        let edited = edit(&file);
        edited.with_context(|| format!("editing {}", file.display()))?;
    }
    let error = Command::new("runc").args(arguments).exec();
    Err(Error::new(error).context("running runc"))
}

/// The file that a call of runc reads a process from.
fn specification(arguments: &[OsString]) -> Option<PathBuf> {
    arguments.windows(2).find_map(|pair| {
        let [option, value] = pair else { return None };
        match option.to_str()? {
            "--bundle" | "-b" => Some(Path::new(value).join("config.json")),
            "--process" | "-p" => Some(PathBuf::from(value)),
            _ => None,
        }
    })
}

fn edit(file: &Path) -> Result<()> {
    let mut specification: Value = serde_json::from_slice(&fs::read(file)?)?;
    remove_capability(&mut specification);
    Ok(fs::write(file, serde_json::to_vec(&specification)?)?)
}

/// The file of a container has its process in a field; that of an `exec` is one.
fn remove_capability(specification: &mut Value) {
    let process = match specification.get("process") {
        Some(_) => &mut specification["process"],
        None => specification,
    };
    let sets = process.get_mut("capabilities").and_then(Value::as_object_mut);
    for set in sets.into_iter().flat_map(|sets| sets.values_mut()) {
        if let Some(names) = set.as_array_mut() {
            names.retain(|name| name != CAPABILITY);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_without_the_bit_lacks_the_capability() {
        assert!(lacks_capability("Name:\tx\nCapBnd:\t000001fffeffffff\nCapAmb:\t0\n"));
        assert!(!lacks_capability("CapBnd:\t000001ffffffffff\n"));
        assert!(!lacks_capability(""));
    }

    #[test]
    fn the_file_of_a_call_is_found_among_its_arguments() {
        let file = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            specification(&arguments).map(|file| file.display().to_string())
        };
        let create = "--root /r --log /l create --bundle /b --pid-file /b/init.pid id";
        assert_eq!(file(create).as_deref(), Some("/b/config.json"));
        assert_eq!(file("run -b /b id").as_deref(), Some("/b/config.json"));
        let exec = "--root /r exec --process /tmp/runc-process1 --detach id";
        assert_eq!(file(exec).as_deref(), Some("/tmp/runc-process1"));
        assert_eq!(file("--version"), None);
    }

    #[test]
    fn the_capability_leaves_every_set_of_both_files() {
        let sets = json!({"bounding": ["CAP_CHOWN", CAPABILITY], "ambient": [CAPABILITY]});
        let left = json!({"bounding": ["CAP_CHOWN"], "ambient": []});
        let mut container = json!({"process": {"cwd": "/", "capabilities": sets}, "root": {}});
        remove_capability(&mut container);
        assert_eq!(container, json!({"process": {"cwd": "/", "capabilities": left}, "root": {}}));
        let mut process = json!({"cwd": "/", "capabilities": sets});
        remove_capability(&mut process);
        assert_eq!(process, json!({"cwd": "/", "capabilities": left}));
        let mut plain = json!({"cwd": "/"});
        remove_capability(&mut plain);
        assert_eq!(plain, json!({"cwd": "/"}));
    }
}
