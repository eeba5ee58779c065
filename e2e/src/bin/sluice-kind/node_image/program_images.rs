//! The images that kubeadm names, made of the lab's programs with the C libraries of the node and of CoreDNS, and that of the
//! network of pods.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::Component;
use lab::binaries::KUBERNETES_VERSION;
use lab::real_nodes::configuration::{BUSYBOX_IMAGE, SAMPLE_IMAGE};
use lab::real_nodes::container_image::{ImageFile, LabImage};

use super::NodeParts;

/// The registry in the names that kubeadm and containerd's configuration have.
const REGISTRY: &str = "registry.k8s.io";

/// The image of the DaemonSet in kind/node/network.yaml.
const NETWORK_IMAGE: &str = "lab.sluice.dev/kind-network:1";

const TOOLS: [&str; 12] =
    ["sh", "cat", "echo", "ip", "ls", "mv", "rm", "sleep", "touch", "true", "false", "test"];

/// A program of an image, and its path there.
type ImageProgram = (&'static str, PathBuf);

/// Gives the archive of each image to `import`, one after the other: together they take half a gigabyte.
pub(super) fn each(
    root: &Path,
    parts: &NodeParts,
    mut import: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    images(root, parts).into_iter().try_for_each(|(reference, programs)| {
        let archive = image(&reference, &programs, root).and_then(|image| Ok(image.archive()?));
        archive.and_then(|archive| import(&archive)).with_context(|| format!("image {reference}"))
    })
}

/// Names as in kubeadm's constants of this version.
fn images(root: &Path, parts: &NodeParts) -> Vec<(String, Vec<ImageProgram>)> {
    let named = |name: &str, tag: &str| format!("{REGISTRY}/{name}:{tag}");
    let of = |component| parts.kubernetes.of(component);
    let proxy = vec![
        ("usr/local/bin/kube-proxy", parts.node.kube_proxy()),
        ("bin/nft", root.join("usr/sbin/nft")),
        ("bin/conntrack", root.join("usr/sbin/conntrack")),
    ];
    let busybox = ("bin/busybox", parts.node.busybox());
    let (apiserver, scheduler) = (of(Component::ApiServer), of(Component::Scheduler));
    let manager = ("bin/kube-controller-manager", of(Component::ControllerManager));
    vec![
        (named("kube-apiserver", KUBERNETES_VERSION), vec![("bin/kube-apiserver", apiserver)]),
        (named("kube-controller-manager", KUBERNETES_VERSION), vec![manager]),
        (named("kube-scheduler", KUBERNETES_VERSION), vec![("bin/kube-scheduler", scheduler)]),
        (named("kube-proxy", KUBERNETES_VERSION), proxy),
        (named("etcd", "3.6.8-0"), vec![("bin/etcd", of(Component::Etcd))]),
        (named("coredns/coredns", "v1.14.2"), vec![("bin/coredns", parts.coredns.clone())]),
        (named("pause", "3.10.2"), vec![("bin/pause", parts.node.pause())]),
        (
            NETWORK_IMAGE.to_owned(),
            vec![busybox.clone(), ("bin/kubectl", parts.kubernetes.kubectl())],
        ),
        (BUSYBOX_IMAGE.to_owned(), vec![busybox]),
    ]
}

fn image(reference: &str, programs: &[ImageProgram], root: &Path) -> Result<LabImage> {
    let mut files: Vec<ImageFile> = Vec::new();
    for (path, program) in programs {
        files.push(file(path, program)?);
    }
    for (_, program) in programs {
        for library in libraries(program, root)? {
            let path = place(&library);
            if !files.iter().any(|file| file.path == path) {
                files.push(file(&path, Path::new(&library))?);
            }
        }
    }
    let first = files.first().map(|file| file.path.clone()).unwrap_or_default();
    let is_shell = first == "bin/busybox";
    let other_references = match reference {
        BUSYBOX_IMAGE => vec![SAMPLE_IMAGE.to_owned()],
        _ => Vec::new(),
    };
    Ok(LabImage {
        reference: reference.to_owned(),
        other_references,
        programs: files,
        links: if is_shell { TOOLS.map(str::to_owned).to_vec() } else { Vec::new() },
        // The sandbox of a pod names no command, and the pods of CoreDNS name arguments only.
        entrypoint: if is_shell { Vec::new() } else { vec![format!("/{first}")] },
        command: if is_shell { vec!["/bin/sh".to_owned()] } else { Vec::new() },
        ..LabImage::default()
    })
}

fn file(path: &str, source: &Path) -> Result<ImageFile> {
    let program = fs::read(source).with_context(|| format!("reading {}", source.display()))?;
    Ok(ImageFile { path: path.to_owned(), program })
}

/// The libraries of a program with the loader. Those of the node come first; a static program has none.
fn libraries(program: &Path, root: &Path) -> Result<Vec<String>> {
    let own = root.join("usr/lib/x86_64-linux-gnu");
    let output = Command::new("ldd").arg(program).env("LD_LIBRARY_PATH", own).output();
    let output = output.context("running ldd")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    if text.contains("statically linked") || said.contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    ensure!(output.status.success(), "ldd {}: {said}", program.display());
    ensure!(!text.contains("not found"), "{} lacks a library: {text}", program.display());
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(str::to_owned).collect())
}

/// Where a loader finds a library.
fn place(library: &str) -> String {
    let name = library.rsplit('/').next().unwrap_or(library);
    if name.starts_with("ld-linux") {
        format!("lib64/{name}")
    } else {
        format!("lib/x86_64-linux-gnu/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_is_where_programs_name_it() {
        assert_eq!(place("/x/ld-linux-x86-64.so.2"), "lib64/ld-linux-x86-64.so.2");
        assert_eq!(place("/root/usr/lib/libc.so.6"), "lib/x86_64-linux-gnu/libc.so.6");
    }
}
