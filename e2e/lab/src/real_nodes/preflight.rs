//! What the machine must have for real nodes. Each missing point is one sentence.

use std::path::Path;
use std::process::{Command, Stdio};

use super::cgroups::{self, CgroupHierarchy};

/// A unix socket has no longer path.
const SOCKET_PATH: usize = 107;

/// Directories that a node replaces by its own; nothing of a lab may lie below them.
pub const REPLACED: [&str; 3] = ["/run", "/var/lib", "/var/log"];

/// Controllers without which a kubelet does not start.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// kubelet, containerd and their children watch files; the limit is per user and covers all labs.
const INOTIFY_INSTANCES: u32 = 64;

/// The release of Debian that has the packages.
const RELEASE: &str = "bookworm";

/// What the machine lacks; empty if it can run real nodes.
pub fn lacking() -> Vec<String> {
    let mut lacking = Vec::new();
    if !rustix::process::geteuid().is_root() {
        lacking.push("real nodes need root".to_owned());
        // Without it all further points fail as well.
        return lacking;
    }
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    lacking.extend(other_release(&release));
    lacking.extend(programs());
    lacking.extend(controllers());
    lacking.extend(filesystem());
    lacking.extend(inotify());
    if lacking.is_empty() {
        lacking.extend(namespaces());
        lacking.extend(control_groups());
    }
    lacking
}

/// What is wrong with the place of a lab.
pub fn misplaced(directory: &Path, socket: &Path) -> Option<String> {
    if let Some(replaced) = REPLACED.iter().find(|one| directory.starts_with(one)) {
        return Some(format!(
            "the lab's files are in {}, and a real node has a {replaced} of its own; set SLUICE_LAB_HOME to another place",
            directory.display()
        ));
    }
    let length = socket.as_os_str().len();
    (length > SOCKET_PATH).then(|| {
        format!(
            "the path {} has {length} bytes, and that of a socket has at most {SOCKET_PATH}; set SLUICE_LAB_HOME to a shorter one",
            socket.display()
        )
    })
}

/// The packages are pinned, and apt of another release has none of their versions.
fn other_release(os_release: &str) -> Option<String> {
    let value = |key: &str| {
        let mut lines = os_release.lines();
        lines.find_map(|line| Some(line.strip_prefix(key)?.trim_matches('"').to_owned()))
    };
    let name = value("PRETTY_NAME=").unwrap_or_else(|| "an unknown system".to_owned());
    (value("VERSION_CODENAME=").as_deref() != Some(RELEASE)).then(|| {
        format!("the programs of real nodes are packages of Debian 12, and this is {name}")
    })
}

fn programs() -> Vec<String> {
    let needed = [
        ("ip", "iproute2"),
        ("unshare", "util-linux"),
        ("nsenter", "util-linux"),
        ("mount", "mount"),
        ("apt-get", "apt"),
        ("dpkg-deb", "dpkg"),
    ];
    let absent = needed.into_iter().filter(|(program, _)| {
        !runs(Command::new(program).arg("--version")) && !runs(Command::new(program).arg("-V"))
    });
    let text = |(program, package)| format!("real nodes need {program} (Debian package {package})");
    absent.map(text).collect()
}

fn controllers() -> Vec<String> {
    let hierarchies = CgroupHierarchy::mounted().unwrap_or_default();
    let absent = CONTROLLERS
        .into_iter()
        .filter(|controller| !hierarchies.iter().any(|one| one.has(controller)));
    let absent: Vec<&str> = absent.collect();
    let text = || format!("no control group hierarchy is mounted for {}", absent.join(", "));
    if absent.is_empty() { Vec::new() } else { vec![text()] }
}

fn filesystem() -> Option<String> {
    let known = || std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let overlay = |text: String| text.lines().any(|line| line.ends_with("\toverlay"));
    let there =
        overlay(known()) || (runs(Command::new("modprobe").arg("overlay")) && overlay(known()));
    (!there).then(|| "the kernel has no overlay file system".to_owned())
}

fn inotify() -> Option<String> {
    let file = "/proc/sys/fs/inotify/max_user_instances";
    let limit = std::fs::read_to_string(file).ok()?.trim().parse::<u32>().ok()?;
    (limit < INOTIFY_INSTANCES).then(|| {
        format!("fs.inotify.max_user_instances is {limit}, and real nodes need {INOTIFY_INSTANCES}")
    })
}

/// Creates what a node needs and leaves it again.
fn namespaces() -> Option<String> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--mount-proc"]);
    command.args(["ip", "link", "add", "one", "type", "veth", "peer", "name", "other"]);
    let output = command.stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "namespaces with network interfaces cannot be made: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Some(format!("run unshare: {error}")),
    }
}

/// Creates a control group in every hierarchy and removes it again.
fn control_groups() -> Option<String> {
    let probe = cgroups::of_lab(Path::new(&format!("preflight-{}", std::process::id())));
    let tried = cgroups::create(&probe).and_then(|()| cgroups::remove(&probe));
    tried.err().map(|error| error.to_string())
}

fn runs(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_below_a_replaced_directory_or_with_a_long_path_is_refused() {
        let long = format!("/{}/egress.sock", "x".repeat(100));
        let said = misplaced(Path::new("/run/user/0/labs"), Path::new("/run/s")).unwrap();
        assert!(said.contains("a real node has a /run of its own"), "{said}");
        let said = misplaced(Path::new("/x"), Path::new(&long)).unwrap();
        assert!(said.contains("has 113 bytes"), "{said}");
        assert_eq!(misplaced(Path::new("/home/a"), Path::new("/home/a/egress.sock")), None);
    }

    #[test]
    fn another_release_is_named() {
        let twelve = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_CODENAME=bookworm\n";
        assert_eq!(other_release(twelve), None);
        let other = "PRETTY_NAME=\"Ubuntu 24.04 LTS\"\nVERSION_CODENAME=noble\n";
        assert!(other_release(other).unwrap().ends_with("and this is Ubuntu 24.04 LTS"));
        assert!(other_release("").unwrap().ends_with("and this is an unknown system"));
    }
}
