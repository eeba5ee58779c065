//! The files of the image: unpacked packages, installed and compiled wheels, and a few files that packages make by scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use cache::debian;

use super::python::UnpackedPython;
use super::scripts;

/// What the image is made of.
#[derive(Debug, Clone, Copy)]
pub struct RayInputs<'a> {
    /// Debian packages, a line `NAME=VERSION` each.
    pub packages: &'a str,
    /// Wheels as pip reads them.
    pub wheels: &'a str,
}

/// The environment of containers. Ray gives its processes half a minute to start, which is short on a busy machine, and would
/// report its use.
pub const ENVIRONMENT: [&str; 5] = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG=C.UTF-8",
    "RAY_USAGE_STATS_ENABLED=0",
    "RAY_raylet_start_wait_time_s=180",
    "RAY_agent_register_timeout_ms=180000",
];

/// Where Debian's Python looks for what its packages do not have.
const WHEELS: &str = "usr/local/lib/python3.11/dist-packages";

/// Folders of packages that no container reads.
const UNUSED: [&str; 7] = [
    "usr/share/doc",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/python-wheels",
    "boot",
];

/// Files that Debian's packages make when they are installed. `/etc/hosts` comes before DNS, as the kubelet writes the pod's name there.
const FILES: [(&str, &str); 3] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
];

/// Fills the new folder `root`.
///
/// # Errors
/// If packages or wheels cannot be had, or a file cannot be written.
pub fn fill(root: &Path, inputs: &RayInputs<'_>, report: &dyn Fn(&str)) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("creating {}", root.display()))?;
    report("making the image of Ray, once: downloading Debian packages (26 MB)");
    debian::unpack(&inputs.packages.lines().collect::<Vec<_>>(), root)?;
    install(root, inputs.wheels, report)?;
    for folder in UNUSED {
        let path = root.join(folder);
        fs::remove_dir_all(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    FILES.iter().try_for_each(|(path, content)| write(&root.join(path), content))
}

/// Installs the wheels and compiles them with the library of Python: a container would do so at each of its starts.
fn install(root: &Path, wheels: &str, report: &dyn Fn(&str)) -> Result<()> {
    let python = UnpackedPython { root };
    let requirements = root.join("requirements.txt");
    write(&requirements, wheels)?;
    let into = root.join(WHEELS);
    report("installing the wheels of Ray (108 MB)");
    python.install(&requirements, &into)?;
    fs::remove_file(&requirements).context("removing requirements.txt")?;
    scripts::move_to(&into, root)?;
    report("compiling the wheels of Ray");
    python.compile(&["usr/lib/python3.11", WHEELS])
}

fn write(path: &Path, content: &str) -> Result<()> {
    let written = fs::write(path, content)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o644)));
    written.with_context(|| format!("writing {}", path.display()))
}
