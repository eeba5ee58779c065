//! Settings that the kubelet of a node changes for the whole machine. They get their former values back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use lab::real_nodes::init::KERNEL_SETTINGS;

/// Where the kernel has them.
pub(super) const PLACE: &str = "/proc/sys";

/// Values by paths below `/proc/sys`.
pub(super) type KernelSettings = BTreeMap<String, String>;

/// The values of the settings that this kernel has.
pub(super) fn read(place: &Path) -> KernelSettings {
    let names = KERNEL_SETTINGS.iter().map(|(name, _)| *name);
    names.filter_map(|name| Some((name.to_owned(), value(place, name)?))).collect()
}

/// Writes the values that have changed.
pub(super) fn restore(place: &Path, settings: &KernelSettings) -> Result<()> {
    let changed =
        settings.iter().filter(|(name, former)| value(place, name).as_ref() != Some(former));
    for (name, former) in changed {
        fs::write(place.join(name), former).with_context(|| format!("restoring {name}"))?;
    }
    Ok(())
}

fn value(place: &Path, name: &str) -> Option<String> {
    fs::read_to_string(place.join(name)).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_values_are_restored_and_absent_settings_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("vm")).unwrap();
        fs::write(at("vm/overcommit_memory"), "0\n").unwrap();
        fs::write(at("vm/panic_on_oom"), "0\n").unwrap();
        let former = read(place.path());
        assert_eq!(former.len(), 2, "{former:?}");
        fs::write(at("vm/overcommit_memory"), "1\n").unwrap();
        restore(place.path(), &former).unwrap();
        assert_eq!(read(place.path()), former);
        assert_eq!(fs::read_to_string(at("vm/panic_on_oom")).unwrap(), "0\n", "it was written");
    }
}
