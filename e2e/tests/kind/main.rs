//! `sluice-kind` with played programs `docker` and `kind`: what it asks of them, and what it leaves when they fail. Clusters of the
//! real kind are made by `make kind-up`.

mod real_parts;
mod registration;
mod with_docker;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use harness::program;
use lab::real_nodes::preflight::LACKING_EXIT_CODE;
use tempfile::TempDir;

/// Answers like a kind that has a cluster for each line of the file `clusters`; it cannot make the one that `fails` names.
const KIND: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
echo "$*" >>HOME/calls
case "$1 $2" in
"get clusters") cat HOME/clusters ;;
"get kubeconfig")
  cat "HOME/target/kind/${5#sluice-}.kubeconfig" 2>/dev/null ||
    echo "clusters: [{name: c, cluster: {server: 'https://$5-control-plane:6443'}}]" ;;
"create cluster")
  if [ "$4" = "$(cat HOME/fails)" ]; then echo "no room" >&2; exit 1; fi
  echo "$4" >>HOME/clusters ;;
"delete cluster") grep -v -x "$4" HOME/clusters >HOME/left; mv HOME/left HOME/clusters ;;
esac
"#;

const DOCKER: &str = "#!/bin/sh\necho \"docker $*\" >>HOME/calls\necho 27.0\n";

const DEAD_DOCKER: &str =
    "#!/bin/sh\necho one >&2\necho 'Cannot connect to the daemon' >&2\nexit 1\n";

/// The exit code if the machine lacks something.
const LACKING: i32 = LACKING_EXIT_CODE as i32;

struct PlayedPrograms {
    home: TempDir,
}

impl PlayedPrograms {
    fn new(docker: Option<&str>) -> Result<Self> {
        let played = Self { home: tempfile::tempdir()? };
        fs::create_dir(played.path("bin"))?;
        for (name, script) in
            [("kind", Some(KIND)), ("bin/docker", docker), ("bin/cargo", Some(CARGO))]
        {
            if let Some(script) = script {
                let home = played.home.path().display().to_string();
                write_program(&played.path(name), &script.replace("HOME", &home))?;
            }
        }
        ["calls", "clusters", "fails"]
            .iter()
            .try_for_each(|name| fs::write(played.path(name), ""))?;
        Ok(played)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        self.command(arguments)?.output().context("running sluice-kind")
    }

    /// The played programs before those of the machine.
    fn search_path(&self) -> String {
        format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default())
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(program("sluice-kind")?);
        // Nothing but what is played: the machine may have a docker.
        command.env("PATH", self.path("bin")).env("SLUICE_KIND", self.path("kind"));
        command.env("CARGO", self.path("bin/cargo")).env("CARGO_TARGET_DIR", self.path("target"));
        command.args(arguments);
        Ok(command)
    }

    /// The calls since the last look, without those that change nothing.
    fn calls(&self) -> Result<Vec<String>> {
        let calls = fs::read_to_string(self.path("calls"))?;
        fs::write(self.path("calls"), "")?;
        let home = self.home.path().display().to_string();
        let acts =
            calls.lines().filter(|call| !call.starts_with("get ") && !call.contains("version"));
        Ok(acts.map(|call| call.replace(&home, "~")).collect())
    }

    fn clusters(&self) -> Result<String> {
        Ok(fs::read_to_string(self.path("clusters"))?)
    }
}

/// Notes the clusters that the test gets.
const CARGO: &str = "#!/bin/sh\necho \"cargo $*\" >>HOME/calls\n\
    echo \"$SLUICE_E2E_KUBECONFIGS $SLUICE_E2E_SERVERS\" >>HOME/calls\n\
    echo \"registered by $SLUICE_E2E_REGISTER\" >>HOME/calls\n";

fn write_program(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn touch(path: &Path) -> Result<()> {
    fs::create_dir_all(path.parent().context("a folder")?)?;
    Ok(fs::write(path, "")?)
}

/// The least that counts as an archive of an image.
fn write_archive(path: &Path) -> Result<()> {
    let index = path.with_file_name("manifest.json");
    touch(&index)?;
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(path).arg("-C").arg(path.parent().context("a folder")?);
    ensure!(tar.arg("manifest.json").status()?.success(), "tar failed");
    Ok(fs::remove_file(index)?)
}

#[test]
fn without_docker_one_line_says_that_everything_is_skipped() -> Result<()> {
    for (docker, why) in [
        (None, "docker is not installed"),
        (Some(DEAD_DOCKER), "Docker's daemon does not answer: Cannot connect to the daemon"),
    ] {
        let played = PlayedPrograms::new(docker)?;
        for command in ["up", "load", "register", "test", "down"] {
            let output = played.run(&[command])?;
            let expected = format!("kind: SKIPPED, nothing was done: {why}\n");
            ensure!(
                output.status.code() == Some(LACKING) && said(&output) == expected,
                "{}",
                said(&output)
            );
            ensure!(played.calls()?.is_empty());
        }
    }
    Ok(())
}

#[test]
fn clusters_are_made_loaded_tested_and_deleted_in_order() -> Result<()> {
    let played = PlayedPrograms::new(Some(DOCKER))?;
    let output = played.run(&["load"])?;
    ensure!(said(&output).contains("there is no kind cluster sluice-manager; `make kind-up`"));
    // A mark of clusters that were deleted by other means counts no more.
    touch(&played.path("target/kind/own-node-image"))?;
    let output = played.run(&["up", "--ignore-inotify"])?;
    ensure!(output.status.success(), "{}", said(&output));
    let calls = played.calls()?;
    ensure!(calls.len() == 3, "{calls:?}");
    for (call, name) in calls.iter().zip(["manager", "worker-1", "worker-2"]) {
        let starts = format!("create cluster --name sluice-{name} --config ");
        let ends =
            format!("kind/{name}.yaml --kubeconfig ~/target/kind/{name}.kubeconfig --wait 180s");
        ensure!(call.starts_with(&starts) && call.ends_with(&ends), "{call}");
    }

    let output = played.run(&["load"])?;
    ensure!(said(&output).contains("sluice-manager.tar is not there; `make images` makes it"));
    for image in ["sluice-manager", "sluice-agent"] {
        write_archive(&played.path(&format!("target/images/{image}.tar")))?;
    }
    let output = played.run(&["load"])?;
    ensure!(output.status.success(), "{}", said(&output));
    let loaded = [
        "load image-archive ~/target/images/sluice-manager.tar --name sluice-manager",
        "load image-archive ~/target/images/sluice-agent.tar --name sluice-worker-1",
        "load image-archive ~/target/images/sluice-agent.tar --name sluice-worker-2",
        "docker pull busybox:1.37",
        "docker tag busybox:1.37 lab.sluice.dev/busybox:1",
        "load docker-image lab.sluice.dev/busybox:1 busybox:1.37 --name sluice-worker-1",
        "load docker-image lab.sluice.dev/busybox:1 busybox:1.37 --name sluice-worker-2",
    ];
    let calls = played.calls()?;
    ensure!(calls == loaded, "{calls:?}");
    // ldd is not played.
    let output =
        played.command(&["load", "--debug"])?.env("PATH", played.search_path()).output()?;
    ensure!(output.status.success(), "{}", said(&output));
    let debug = "load image-archive ~/target/kind/sluice-agent.tar --name sluice-worker-1";
    let calls = played.calls()?;
    ensure!(calls.iter().any(|call| call == debug), "{calls:?}");

    let output = played.run(&["test"])?;
    ensure!(output.status.success(), "{}", said(&output));
    let registers = format!("registered by {}", program("sluice-kind")?.display());
    let tested = [
        "cargo test --workspace --locked --test real_pods -- --ignored",
        "~/target/kind/manager.kubeconfig:~/target/kind/worker-1.kubeconfig:~/target/kind/worker-2.kubeconfig \
         https://sluice-worker-1-control-plane:6443,https://sluice-worker-2-control-plane:6443",
        &registers,
    ];
    let calls = played.calls()?;
    ensure!(calls == tested, "{calls:?}");

    let output = played.run(&["down"])?;
    ensure!(output.status.success() && played.clusters()?.is_empty(), "{}", said(&output));
    ensure!(!played.path("target/kind").exists() && played.calls()?.len() == 3);
    Ok(())
}

#[test]
fn with_an_own_image_of_the_nodes_nothing_is_pulled() -> Result<()> {
    let played = PlayedPrograms::new(Some(DOCKER))?;
    for name in ["named.tar", "nodes.tar"] {
        write_archive(&played.path(name))?;
    }
    let mut up = played.command(&["up", "--ignore-inotify", "--own-node-image"])?;
    let output = up.env("SLUICE_KIND_NODE_IMAGE", played.path("named.tar")).output()?;
    ensure!(output.status.success(), "{}", said(&output));
    ensure!(played.calls()?[0] == "docker load --input ~/named.tar");
    ensure!(played.run(&["down"])?.status.success() && played.calls()?.len() == 3);
    let nodes = played.path("nodes.tar").display().to_string();
    let output = played.run(&["up", "--ignore-inotify", "--own-node-image", &nodes])?;
    ensure!(output.status.success(), "{}", said(&output));
    let calls = played.calls()?;
    ensure!(calls.len() == 4 && calls[0] == "docker load --input ~/nodes.tar", "{calls:?}");
    let image = " --wait 180s --image lab.sluice.dev/kind-node:v1.36.3";
    ensure!(calls.iter().skip(1).all(|call| call.ends_with(image)), "{calls:?}");
    for image in ["sluice-manager", "sluice-agent"] {
        write_archive(&played.path(&format!("target/images/{image}.tar")))?;
    }
    ensure!(played.run(&["load"])?.status.success());
    let calls = played.calls()?;
    ensure!(calls.len() == 3 && !calls.iter().any(|call| call.contains("pull")), "{calls:?}");
    Ok(())
}

#[test]
fn an_archive_that_is_not_whole_is_neither_loaded_nor_made_nodes_of() -> Result<()> {
    let played = PlayedPrograms::new(Some(DOCKER))?;
    let nodes = played.path("nodes.tar");
    touch(&nodes)?;
    let nodes = nodes.display().to_string();
    let output = played.run(&["up", "--ignore-inotify", "--own-node-image", &nodes])?;
    let expected = "nodes.tar is no whole archive of an image";
    ensure!(!output.status.success() && said(&output).contains(expected), "{}", said(&output));
    ensure!(played.calls()?.is_empty() && played.clusters()?.is_empty());

    fs::write(played.path("clusters"), "sluice-manager\nsluice-worker-1\nsluice-worker-2\n")?;
    touch(&played.path("target/images/sluice-manager.tar"))?;
    let output = played.run(&["load"])?;
    let expected = "sluice-manager.tar is no whole archive of an image";
    ensure!(!output.status.success() && said(&output).contains(expected), "{}", said(&output));
    ensure!(played.calls()?.is_empty());
    Ok(())
}

#[test]
fn clusters_of_single_nodes_have_the_nodes_of_the_manager() -> Result<()> {
    let played = PlayedPrograms::new(Some(DOCKER))?;
    let output = played.run(&["up", "--ignore-inotify", "--single-nodes"])?;
    ensure!(output.status.success(), "{}", said(&output));
    let calls = played.calls()?;
    ensure!(calls.len() == 3, "{calls:?}");
    ensure!(calls.iter().all(|call| call.contains("kind/manager.yaml --kubeconfig")), "{calls:?}");
    Ok(())
}

#[test]
fn few_nodes_leave_the_workers_of_unequal_size() -> Result<()> {
    let played = PlayedPrograms::new(Some(DOCKER))?;
    let output = played.run(&["up", "--ignore-inotify", "--few-nodes"])?;
    ensure!(output.status.success(), "{}", said(&output));
    let calls = played.calls()?;
    for (call, file) in calls.iter().zip(["manager", "worker-1", "worker-2-few"]) {
        ensure!(call.contains(&format!("kind/{file}.yaml --kubeconfig")), "{calls:?}");
    }
    let nodes = |file: &str| {
        let text = fs::read_to_string(e2e::installation::root().join("kind").join(file));
        text.map(|text| text.matches("\n- role:").count())
    };
    let counts = [nodes("worker-1.yaml")?, nodes("worker-2-few.yaml")?, nodes("worker-2.yaml")?];
    ensure!(calls.len() == 3 && counts == [1, 2, 3], "{counts:?}");
    Ok(())
}

#[test]
fn clusters_of_these_names_are_not_touched_and_half_made_ones_are_deleted() -> Result<()> {
    let played = PlayedPrograms::new(Some(DOCKER))?;
    fs::write(played.path("clusters"), "other\nsluice-worker-1\n")?;
    let output = played.run(&["up", "--ignore-inotify"])?;
    let expected =
        "error: kind cluster sluice-worker-1 exists already; `make kind-down` deletes it";
    ensure!(!output.status.success() && said(&output).contains(expected), "{}", said(&output));
    ensure!(played.calls()?.is_empty());

    fs::write(played.path("clusters"), "other\n")?;
    fs::write(played.path("fails"), "sluice-worker-1")?;
    let output = played.run(&["up", "--ignore-inotify"])?;
    ensure!(!output.status.success() && said(&output).contains("no room"), "{}", said(&output));
    ensure!(played.clusters()? == "other\n", "{}", played.clusters()?);
    ensure!(!played.path("target/kind").exists(), "kubeconfigs are left");
    Ok(())
}
