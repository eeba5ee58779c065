//! What the machine must have for real nodes. Each missing point is one sentence.

use std::path::Path;
use std::process::{Command, Stdio};

use super::cgroups::{self, CgroupHierarchy};
use super::inotify::InotifyDemand;

/// The exit code of a program that does nothing because the machine lacks something. Any other failure is one.
pub const LACKING_EXIT_CODE: u8 = 77;

/// A unix socket has no longer path.
const SOCKET_PATH: usize = 107;

/// Directories that a node replaces by its own; nothing of a lab may lie below them.
pub const REPLACED: [&str; 3] = ["/run", "/var/lib", "/var/log"];

/// Controllers without which a kubelet does not start.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// The release of Debian that has the packages.
const RELEASE: &str = "bookworm";

/// What the machine lacks for labs of this size; empty if it can run them.
pub fn lacking(demand: InotifyDemand) -> Vec<String> {
    lacking_as(rustix::process::geteuid().is_root(), || {
        let mut lacking = ProbedMachine::probe().lacking();
        lacking.extend(demand.lacking());
        if lacking.is_empty() {
            lacking.extend(namespaces());
            lacking.extend(control_groups());
        }
        lacking
    })
}

/// Without root all further points would fail as well.
fn lacking_as(is_root: bool, further: impl FnOnce() -> Vec<String>) -> Vec<String> {
    if is_root { further() } else { vec!["real nodes need root".to_owned()] }
}

/// What was found on a machine.
struct ProbedMachine {
    os_release: String,
    /// Programs that do not run, with their Debian packages.
    absent: Vec<(&'static str, &'static str)>,
    hierarchies: Vec<CgroupHierarchy>,
    has_overlay: bool,
}

impl ProbedMachine {
    fn probe() -> Self {
        Self {
            os_release: os_release(),
            absent: absent_programs(),
            hierarchies: CgroupHierarchy::mounted().unwrap_or_default(),
            has_overlay: has_overlay(),
        }
    }

    fn lacking(&self) -> Vec<String> {
        let mut lacking: Vec<String> = other_release(&self.os_release).into_iter().collect();
        lacking.extend(self.absent.iter().map(|(program, package)| {
            format!("real nodes need {program} (Debian package {package})")
        }));
        lacking.extend(lacking_controllers(&self.hierarchies));
        if !self.has_overlay {
            lacking.push("the kernel has no overlay file system".to_owned());
        }
        lacking
    }
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

/// What is wrong with the release of this machine.
pub fn foreign_release() -> Option<String> {
    other_release(&os_release())
}

fn os_release() -> String {
    std::fs::read_to_string("/etc/os-release").unwrap_or_default()
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

fn absent_programs() -> Vec<(&'static str, &'static str)> {
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
    absent.collect()
}

/// A hierarchy of version 2 offers several controllers, and in a container often not all of the kernel's.
fn lacking_controllers(hierarchies: &[CgroupHierarchy]) -> Option<String> {
    if hierarchies.is_empty() {
        return Some("no control groups are mounted at /sys/fs/cgroup".to_owned());
    }
    let is_absent = |controller: &&str| !hierarchies.iter().any(|one| one.has(controller));
    let absent: Vec<&str> = CONTROLLERS.into_iter().filter(is_absent).collect();
    let text = || format!("no control group hierarchy has the controllers {}", absent.join(", "));
    (!absent.is_empty()).then(text)
}

fn has_overlay() -> bool {
    let known = || std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let overlay = |text: String| text.lines().any(|line| line.ends_with("\toverlay"));
    overlay(known()) || (runs(Command::new("modprobe").arg("overlay")) && overlay(known()))
}

/// Creates what a node needs and leaves it again.
fn namespaces() -> Option<String> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--mount-proc"]);
    command.args(["ip", "link", "add", "one", "type", "veth", "peer", "name", "other"]);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map(|output| (output.status.success(), output.stderr));
    refused_namespaces(output)
}

/// What is wrong if the trial did not succeed. `tried` has its success and its errors.
fn refused_namespaces(tried: std::io::Result<(bool, Vec<u8>)>) -> Option<String> {
    match tried {
        Ok((true, _)) => None,
        Ok((false, errors)) => Some(format!(
            "namespaces with network interfaces cannot be made: {}",
            String::from_utf8_lossy(&errors).trim()
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
    fn the_controllers_of_both_versions_count_together() {
        const VERSION_1: &str =
            "cgroup /c/cpuset cgroup rw,cpuset 0 0\ncgroup /c/cpu cgroup rw,cpu,cpuacct 0 0\n";
        const REST: &str =
            "cgroup /c/memory cgroup rw,memory 0 0\ncgroup /c/pids cgroup rw,pids 0 0\n";
        const VERSION_2: &str = "cgroup2 /c/unified cgroup2 rw 0 0\n";
        let lacks = "no control group hierarchy has the controllers";
        for (mounts, offered, wanted) in [
            (format!("{VERSION_1}{REST}"), "", None),
            (format!("{VERSION_1}{REST}{VERSION_2}"), "", None),
            (VERSION_2.to_owned(), "cpuset cpu io memory hugetlb pids rdma misc\n", None),
            (format!("{VERSION_1}{VERSION_2}"), "memory pids", None),
            (VERSION_2.to_owned(), "cpu pids", Some(format!("{lacks} cpuset, memory"))),
            (VERSION_2.to_owned(), "", Some(format!("{lacks} cpu, cpuset, memory, pids"))),
            (VERSION_1.to_owned(), "", Some(format!("{lacks} memory, pids"))),
            (
                "tmpfs /c tmpfs rw 0 0\n".to_owned(),
                "memory",
                Some("no control groups are mounted at /sys/fs/cgroup".to_owned()),
            ),
        ] {
            let found = cgroups::hierarchies(&mounts, |_| offered.to_owned());
            assert_eq!(lacking_controllers(&found), wanted, "{mounts}{offered}");
        }
    }

    #[test]
    fn another_release_is_named() {
        let twelve = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_CODENAME=bookworm\n";
        assert_eq!(other_release(twelve), None);
        let other = "PRETTY_NAME=\"Ubuntu 24.04 LTS\"\nVERSION_CODENAME=noble\n";
        assert!(other_release(other).unwrap().ends_with("and this is Ubuntu 24.04 LTS"));
        assert!(other_release("").unwrap().ends_with("and this is an unknown system"));
    }

    #[test]
    fn without_root_nothing_else_is_looked_at() {
        let said = lacking_as(false, || panic!("probed"));
        assert_eq!(said, ["real nodes need root"]);
        assert_eq!(lacking_as(true, || vec!["more".to_owned()]), ["more"]);
    }

    #[test]
    fn every_absent_program_and_file_system_is_a_sentence() {
        let version_2 = "cgroup2 /c/unified cgroup2 rw 0 0\n";
        let all = |_: &Path| "cpu cpuset memory pids".to_owned();
        let mut machine = ProbedMachine {
            os_release: "VERSION_CODENAME=bookworm\n".to_owned(),
            absent: vec![],
            hierarchies: cgroups::hierarchies(version_2, all),
            has_overlay: true,
        };
        assert!(machine.lacking().is_empty());
        machine.absent = vec![("ip", "iproute2"), ("nsenter", "util-linux")];
        machine.has_overlay = false;
        let expected = [
            "real nodes need ip (Debian package iproute2)",
            "real nodes need nsenter (Debian package util-linux)",
            "the kernel has no overlay file system",
        ];
        assert_eq!(machine.lacking(), expected);
    }

    #[test]
    fn refused_namespaces_are_named_with_what_was_said() {
        assert_eq!(refused_namespaces(Ok((true, b"a warning".to_vec()))), None);
        let said = refused_namespaces(Ok((false, b"unshare failed: denied\n".to_vec())));
        let expected = "namespaces with network interfaces cannot be made: unshare failed: denied";
        assert_eq!(said.as_deref(), Some(expected));
        let said = refused_namespaces(Err(std::io::Error::other("no memory")));
        assert_eq!(said.as_deref(), Some("run unshare: no memory"));
    }
}
