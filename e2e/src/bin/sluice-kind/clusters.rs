//! The three clusters: made together, deleted together.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use e2e::installation::root;
use e2e::program_image;
use images::archive;
use kube::config::Kubeconfig;
use lab::binaries::Binaries;
use lab::real_nodes::configuration::BUSYBOX_IMAGE;

use crate::node_counts::{INOTIFY_LIMIT, KindNodeCounts};
use crate::node_image::{self, NODE_IMAGE};
use crate::programs::{feed, read, run};
use crate::registration;
use crate::variables::{NODE_IMAGE_VARIABLE, kind_program, named_by};

/// The files of the clusters in `kind/`, without their extension. The manager is the first.
const FILES: [&str; 3] = ["manager", "worker-1", "worker-2"];

/// The public image with the shell that the containers of the test run, as `config/samples` name it.
const PUBLIC_BUSYBOX: &str = "busybox:1.37";

/// The three clusters of an installation.
pub(crate) struct KindClusters {
    kind: PathBuf,
    docker: PathBuf,
    /// The folder of their kubeconfigs.
    folder: PathBuf,
}

impl KindClusters {
    pub(crate) fn of_workspace() -> Result<Self> {
        let kind = kind_program()?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = root().join(target.unwrap_or_else(|| PathBuf::from("target")));
        Ok(Self { kind, docker: PathBuf::from("docker"), folder: target.join("kind") })
    }

    /// Makes all of them, or none.
    pub(crate) fn up(
        &self,
        nodes: KindNodeCounts,
        ignore_inotify: bool,
        own_node_image: Option<Option<PathBuf>>,
    ) -> Result<()> {
        let existing = self.existing()?;
        let taken = FILES.map(cluster_name).into_iter().find(|name| existing.contains(name));
        if let Some(name) = taken {
            bail!("kind cluster {name} exists already; `make kind-down` deletes it");
        }
        if !ignore_inotify {
            nodes.check_inotify(std::fs::read_to_string(INOTIFY_LIMIT).ok().as_deref())?;
        }
        // Clusters that were deleted by other means left their files.
        self.remove_folder()?;
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("creating {}", self.folder.display()))?;
        let made = self.create_all(nodes, own_node_image);
        if made.is_err() {
            println!("not all clusters could be made; deleting those that were");
            self.down()?;
        }
        made
    }

    fn create_all(
        &self,
        nodes: KindNodeCounts,
        own_node_image: Option<Option<PathBuf>>,
    ) -> Result<()> {
        let image = own_node_image.map(|archive| self.load_node_image(archive)).transpose()?;
        FILES.iter().try_for_each(|file| self.create(file, nodes, image))
    }

    /// Gives Docker the image of the nodes, and notes that they have it.
    fn load_node_image(&self, archive: Option<PathBuf>) -> Result<&'static str> {
        let archive = match archive.or_else(|| named_by(NODE_IMAGE_VARIABLE)) {
            Some(archive) => archive::check(&archive).map(|()| archive)?,
            None => node_image::find(&|line| println!("{line}"))?,
        };
        run(&self.docker, &["load", "--input", &text(archive)])?;
        let mark = self.own_nodes();
        std::fs::write(&mark, NODE_IMAGE).with_context(|| format!("writing {}", mark.display()))?;
        Ok(NODE_IMAGE)
    }

    /// A file that is there if the nodes have our image.
    fn own_nodes(&self) -> PathBuf {
        self.folder.join("own-node-image")
    }

    /// Makes a cluster, with nodes of this image or of kind's.
    fn create(&self, file: &str, nodes: KindNodeCounts, image: Option<&str>) -> Result<()> {
        let configuration = root().join("kind").join(format!("{}.yaml", nodes.file(file)));
        let [configuration, kubeconfig] = [configuration, self.kubeconfig(file)].map(text);
        let (name, wait) = (cluster_name(file), "180s");
        let create = ["create", "cluster", "--name", &name, "--config", &configuration];
        let place = ["--kubeconfig", &kubeconfig, "--wait", wait];
        let image: Vec<&str> = image.into_iter().flat_map(|image| ["--image", image]).collect();
        run(&self.kind, &[&create[..], &place[..], &image[..]].concat())
    }

    /// Loads the images that the test needs, those of manager and agent of the debug programs or of `make images`.
    pub(crate) fn load(&self, debug: bool) -> Result<()> {
        self.ensure_up()?;
        for (place, file) in FILES.iter().enumerate() {
            let image = if place == 0 { "sluice-manager" } else { "sluice-agent" };
            let archive = if debug {
                program_image::debug_archive(&self.folder, image)?
            } else {
                self.released(image)?
            };
            let (archive, name) = (text(archive), cluster_name(file));
            run(&self.kind, &["load", "image-archive", &archive, "--name", &name])?;
        }
        if self.own_nodes().exists() {
            // It has a busybox.
            return Ok(());
        }
        run(&self.docker, &["pull", PUBLIC_BUSYBOX])?;
        run(&self.docker, &["tag", PUBLIC_BUSYBOX, BUSYBOX_IMAGE])?;
        FILES.iter().skip(1).try_for_each(|file| {
            let name = cluster_name(file);
            let images = ["load", "docker-image", BUSYBOX_IMAGE, PUBLIC_BUSYBOX];
            run(&self.kind, &[&images[..], &["--name", &name]].concat())
        })
    }

    /// The archive that `make images` has made of a program.
    fn released(&self, image: &str) -> Result<PathBuf> {
        let archive = self.folder.with_file_name("images").join(format!("{image}.tar"));
        ensure!(
            archive.is_file(),
            "{} is not there; `make images` makes it, and `load --debug` needs none",
            archive.display()
        );
        archive::check(&archive)?;
        Ok(archive)
    }

    /// Registers the workers at the manager, and replaces the tokens of those that are registered.
    pub(crate) fn register(&self) -> Result<()> {
        self.ensure_up()?;
        let kubectl = Binaries::find(&|line| println!("{line}"))?.kubectl();
        let [manager, workers @ ..] = FILES;
        // A worker that lacks the installation leaves none registered.
        let objects = workers.map(|file| self.registration(&kubectl, file));
        let objects = objects.into_iter().collect::<Result<Vec<_>>>()?.join("---\n");
        let kubeconfig = text(self.kubeconfig(manager));
        // Without force: a Secret of this name that has another owner is not overwritten.
        let apply = ["apply", "--server-side", "--field-manager=sluice-kind", "-f", "-"];
        let arguments = [&["--kubeconfig", &kubeconfig][..], &apply].concat();
        feed(&kubectl, &arguments, &objects).with_context(|| {
            format!(
                "registering on kind cluster {}; `kubectl apply --server-side -k config/default` installs the manager there",
                cluster_name(manager)
            )
        })
    }

    /// The objects of a worker on the manager, with a fresh token.
    fn registration(&self, kubectl: &Path, file: &str) -> Result<String> {
        let (name, kubeconfig) = (cluster_name(file), text(self.kubeconfig(file)));
        let token = [&["--kubeconfig", &kubeconfig][..], &registration::token_command()].concat();
        let token = read(kubectl, &token).with_context(|| {
            format!(
                "a token of {} on kind cluster {name}; `kubectl apply --server-side -k config/worker` installs the agent there",
                registration::ACCOUNT
            )
        })?;
        let internal = (self.internal_kubeconfig(file)?, self.internal_server(file)?);
        registration::objects(file, (&internal.0, &internal.1), &token)
    }

    /// Runs the test of `e2e/tests/real_pods` on them.
    pub(crate) fn test(&self) -> Result<()> {
        self.ensure_up()?;
        let kubeconfigs = FILES.map(|file| text(self.kubeconfig(file))).join(":");
        let servers = FILES.iter().skip(1).map(|file| self.internal_server(file));
        let servers = servers.collect::<Result<Vec<_>>>()?.join(",");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root()).env("SLUICE_E2E_KUBECONFIGS", kubeconfigs);
        command.env("SLUICE_E2E_SERVERS", servers);
        // Workers are registered as people register them: by `kind-register`.
        command.env("SLUICE_E2E_REGISTER", std::env::current_exe().context("this program")?);
        // The features of all members, as every other build has them.
        let test = ["test", "--workspace", "--locked", "--test", "real_pods", "--", "--ignored"];
        let status = command.args(test).status().context("running cargo test")?;
        ensure!(status.success(), "the test failed");
        Ok(())
    }

    /// Deletes all of them that are there.
    pub(crate) fn down(&self) -> Result<()> {
        let existing = self.existing()?;
        for file in FILES {
            let name = cluster_name(file);
            let kubeconfig = text(self.kubeconfig(file));
            if existing.contains(&name) {
                let delete = ["delete", "cluster", "--name", &name, "--kubeconfig", &kubeconfig];
                run(&self.kind, &delete)?;
            }
        }
        self.remove_folder()
    }

    fn remove_folder(&self) -> Result<()> {
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing {}", self.folder.display()))
            }
            _ => Ok(()),
        }
    }

    fn existing(&self) -> Result<Vec<String>> {
        let listed = read(&self.kind, &["get", "clusters"])?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    fn ensure_up(&self) -> Result<()> {
        let existing = self.existing()?;
        let absent = FILES.map(cluster_name).into_iter().find(|name| !existing.contains(name));
        match absent {
            Some(name) => bail!("there is no kind cluster {name}; `make kind-up` makes it"),
            None => Ok(()),
        }
    }

    fn kubeconfig(&self, file: &str) -> PathBuf {
        self.folder.join(format!("{file}.kubeconfig"))
    }

    /// The address of an API server on Docker's network, where pods of the other clusters reach it: Docker resolves the name of
    /// the container.
    fn internal_server(&self, file: &str) -> Result<String> {
        let server = server_of(&self.internal_kubeconfig(file)?);
        let name = cluster_name(file);
        server.with_context(|| format!("the kubeconfig of kind cluster {name} has no server"))
    }

    fn internal_kubeconfig(&self, file: &str) -> Result<String> {
        let name = cluster_name(file);
        read(&self.kind, &["get", "kubeconfig", "--internal", "--name", &name])
    }
}

fn cluster_name(file: &str) -> String {
    format!("sluice-{file}")
}

fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().display().to_string()
}

fn server_of(kubeconfig: &str) -> Option<String> {
    harness::server_of(&Kubeconfig::from_yaml(kubeconfig).ok()?)
}

#[cfg(test)]
mod tests {
    use lab::real_nodes::configuration::SAMPLE_IMAGE;

    use super::*;

    /// Each image of a busybox in files of this folder and below.
    fn busyboxes(folder: &Path) -> Vec<String> {
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let found = paths.flat_map(|path| {
            if path.is_dir() {
                busyboxes(&path)
            } else {
                let text = std::fs::read_to_string(path).unwrap();
                let words = text.split_whitespace().filter(|word| word.starts_with("busybox:"));
                words.map(str::to_owned).collect()
            }
        });
        found.collect()
    }

    #[test]
    fn samples_run_on_the_image_that_is_loaded() {
        let found = busyboxes(&root().join("config/samples"));
        assert!(found.len() > 5 && found.iter().all(|one| one == PUBLIC_BUSYBOX), "{found:?}");
        assert_eq!(SAMPLE_IMAGE, format!("docker.io/library/{PUBLIC_BUSYBOX}"));
    }

    #[test]
    fn the_address_of_a_kubeconfig_is_found() {
        let kubeconfig = "clusters:\n- name: c\n  cluster:\n    certificate-authority-data: x\n    server: https://sluice-worker-1-control-plane:6443\n";
        let server = server_of(kubeconfig);
        assert_eq!(server.as_deref(), Some("https://sluice-worker-1-control-plane:6443"));
        assert_eq!(server_of("clusters: []\n"), None);
    }
}
