//! The file system of a node, as the Dockerfile of kind's module makes it, out of unpacked packages: what their scripts would do
//! is done here.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use cache::{command, debian};
use lab::binaries::KUBERNETES_VERSION;

use super::{NodeParts, containerd, merged_usr};

const UNITS: &str = "usr/lib/systemd/system";

const WANTED: &str = "etc/systemd/system/multi-user.target.wants";

/// Folders of units that make no sense in a container, and documentation.
const UNUSED: [&str; 9] = [
    "etc/systemd/system/multi-user.target.wants",
    "usr/lib/systemd/system/multi-user.target.wants",
    "usr/lib/systemd/system/local-fs.target.wants",
    "usr/lib/systemd/system/basic.target.wants",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
];

/// Links, by their targets. The first ones are alternatives that packages choose when they are installed.
const LINKS: [(&str, &str); 11] = [
    ("usr/sbin/iptables", "xtables-nft-multi"),
    ("usr/sbin/iptables-save", "xtables-nft-multi"),
    ("usr/sbin/iptables-restore", "xtables-nft-multi"),
    ("usr/sbin/ip6tables", "xtables-nft-multi"),
    ("usr/sbin/ip6tables-save", "xtables-nft-multi"),
    ("usr/sbin/ip6tables-restore", "xtables-nft-multi"),
    ("usr/bin/awk", "mawk"),
    ("usr/bin/which", "which.debianutils"),
    ("usr/sbin/init", "/usr/lib/systemd/systemd"),
    ("etc/systemd/system/systemd-binfmt.service", "/dev/null"),
    ("usr/local/bin/containerd", "/usr/bin/containerd"),
];

/// Files that packages make when they are installed. kind's entrypoint chooses an alternative that is chosen already.
const FILES: [(&str, u32, &str); 4] = [
    (
        "etc/passwd",
        0o644,
        "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    ),
    ("etc/group", 0o644, "root:x:0:\ntty:x:5:\nkmem:x:15:\nnogroup:x:65534:\n"),
    ("etc/nsswitch.conf", 0o644, "passwd: files\ngroup: files\nhosts: files dns\n"),
    ("usr/bin/update-alternatives", 0o755, "#!/bin/sh\nexit 0\n"),
];

/// Changes of kind's files: where, what, and into what.
const CHANGES: [(&str, &str, &str); 3] = [
    // On version 1, kind takes this line for the end of the start, before systemd runs.
    ("usr/local/bin/entrypoint", "'detected cgroup v1'", "'found cgroup v1'"),
    (
        "etc/containerd/config.toml",
        "registry.k8s.io/pause:3.10\"",
        "registry.k8s.io/pause:3.10.2\"",
    ),
    // Root may lack the capability to lower the score of a process.
    (
        "etc/containerd/config.toml",
        "restrict_oom_score_adj = false",
        "restrict_oom_score_adj = true",
    ),
];

/// Fills the new folder `root`, but for the images.
pub(super) fn fill(
    root: &Path,
    parts: &NodeParts,
    (packages, network): (&str, &str),
) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("creating {}", root.display()))?;
    debian::unpack(&packages.lines().collect::<Vec<_>>(), root)?;
    merged_usr::merge(root)?;
    UNUSED.iter().try_for_each(|folder| remove(&root.join(folder)))?;
    remove_units(root, "sysinit.target.wants", |unit| unit == "systemd-tmpfiles-setup.service")?;
    remove_units(root, "sockets.target.wants", |unit| {
        unit.contains("udev") || unit.contains("initctl")
    })?;
    kind_files(root, &parts.kind_files)?;
    for (path, mode, content) in FILES {
        write(&root.join(path), mode, content.as_bytes())?;
    }
    for (path, target) in LINKS {
        link(&root.join(path), target)?;
    }
    programs(root, parts)?;
    write(&root.join("kind/version"), 0o644, KUBERNETES_VERSION.as_bytes())?;
    write(&root.join("kind/manifests/default-cni.yaml"), 0o644, network.as_bytes())?;
    let spec = containerd::runtime_spec(root)?;
    write(&root.join("etc/containerd/cri-base.json"), 0o644, spec.as_bytes())
}

/// The files of kind's module, and the units that it enables.
fn kind_files(root: &Path, files: &Path) -> Result<()> {
    let copy = |from: &str, to: &str| {
        // Modules of Go are read-only.
        let mut copy = Command::new("cp");
        copy.args(["--recursive", "--no-preserve=mode"]);
        command::run(copy.arg(files.join(from)).arg(root.join(to)))
    };
    [("usr/.", "usr"), ("etc/.", "etc"), ("kind", "")]
        .into_iter()
        .try_for_each(|(a, b)| copy(a, b))?;
    for folder in ["usr/local/bin", "kind/bin"] {
        for entry in fs::read_dir(root.join(folder)).with_context(|| format!("listing {folder}"))? {
            fs::set_permissions(entry?.path(), fs::Permissions::from_mode(0o755))?;
        }
    }
    for (path, old, new) in CHANGES {
        let path = root.join(path);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        write(&path, fs::metadata(&path)?.permissions().mode(), text.replace(old, new).as_bytes())?;
    }
    for unit in ["containerd", "kubelet", "undo-mount-hacks"] {
        let unit = format!("{unit}.service");
        link(&root.join(WANTED).join(&unit), &format!("/etc/systemd/system/{unit}"))?;
    }
    fs::create_dir_all(root.join("etc/kubernetes/manifests")).context("creating manifests")
}

fn programs(root: &Path, parts: &NodeParts) -> Result<()> {
    let own = [parts.kubeadm.clone(), parts.node.kubelet(), parts.kubernetes.kubectl()];
    for program in own {
        let to = root.join("usr/bin").join(program.file_name().unwrap_or_default());
        fs::copy(&program, &to).with_context(|| format!("copying {}", program.display()))?;
    }
    let plugins = root.join("opt/cni/bin");
    fs::create_dir_all(&plugins).context("creating opt/cni/bin")?;
    for plugin in ["host-local", "loopback", "portmap", "ptp"] {
        let from = root.join("usr/lib/cni").join(plugin);
        fs::copy(&from, plugins.join(plugin)).with_context(|| from.display().to_string())?;
    }
    Ok(())
}

fn remove_units(root: &Path, folder: &str, unused: impl Fn(&str) -> bool) -> Result<()> {
    let folder = root.join(UNITS).join(folder);
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| unused(&name.to_string_lossy())) {
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Makes a link in place of a file of the same name, and the folders above it.
fn link(path: &Path, target: &str) -> Result<()> {
    let made = fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| {
        drop(fs::remove_file(path));
        symlink(target, path)
    });
    made.with_context(|| format!("linking {}", path.display()))
}

/// Writes a file and the folders above it.
fn write(path: &Path, mode: u32, content: &[u8]) -> Result<()> {
    let written = fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(path, content))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    written.with_context(|| format!("writing {}", path.display()))
}
