//! `sluice-kind with-docker`: with a played Docker, and with a daemon of its own where root may start one.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::host_state::HostState;
use harness::program;
use tempfile::TempDir;

use crate::{DEAD_DOCKER, DOCKER, LACKING, PlayedPrograms, said, write_program};

/// A busy machine takes a multiple of the usual two seconds.
const STARTED: Duration = Duration::from_secs(120);

#[test]
fn a_docker_that_answers_is_used_and_the_exit_code_is_that_of_the_command() -> Result<()> {
    let played = PlayedPrograms::new(Some(DOCKER))?;
    let output = played.run(&["with-docker", "--", "/bin/sh", "-c", "echo ran; exit 7"])?;
    ensure!(output.status.code() == Some(7) && said(&output) == "ran\n", "{}", said(&output));
    let output = played.run(&["with-docker", "--", "/absent/program"])?;
    let expected = "error: running /absent/program: No such file";
    ensure!(!output.status.success() && said(&output).starts_with(expected), "{}", said(&output));
    Ok(())
}

#[test]
fn without_docker_and_its_daemon_one_line_has_both_reasons() -> Result<()> {
    for (docker, dead) in [
        (None, "docker is not installed"),
        (Some(DEAD_DOCKER), "Docker's daemon does not answer: Cannot connect to the daemon"),
    ] {
        let played = PlayedPrograms::new(docker)?;
        let output = played.run(&["with-docker", "--", "/bin/sh", "-c", "echo ran"])?;
        let said = said(&output);
        let lacking = [
            "starting a daemon needs root",
            "dockerd is not installed, which Debian's package docker.io has",
        ];
        let lines = lacking.map(|one| format!("kind: SKIPPED, nothing was done: {dead}; {one}\n"));
        ensure!(output.status.code() == Some(LACKING) && lines.contains(&said), "{said}");
    }
    Ok(())
}

/// A daemon of its own, with its files in a folder of the test.
struct OwnDaemon(TempDir);

impl OwnDaemon {
    fn command(&self, script: &str) -> Result<Command> {
        let mut command = Command::new(program("sluice-kind")?);
        // A Docker of the machine would be used.
        command.env("DOCKER_HOST", "unix:///absent").env("XDG_STATE_HOME", self.0.path());
        command.args(["with-docker", "--", "sh", "-c", script]);
        Ok(command)
    }

    /// Starts it with a command that does not end by itself.
    fn running(&self) -> Result<Child> {
        let started = self.0.path().join("started");
        let script =
            format!("docker network create one && touch {} && sleep 1000", started.display());
        let child = self.command(&script)?.stdout(Stdio::null()).spawn()?;
        let begun = Instant::now();
        while !started.exists() {
            ensure!(begun.elapsed() < STARTED, "the daemon does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        fs::remove_file(started)?;
        Ok(child)
    }

    /// The directories of daemons.
    fn left(&self) -> Result<usize> {
        let entries = fs::read_dir(self.0.path().join("sluice-kind"))?;
        Ok(entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir())).count())
    }
}

fn signal(child: &Child, name: &str) -> Result<()> {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status()?;
    ensure!(sent.success(), "kill {name} failed");
    Ok(())
}

/// No process has this text in its arguments.
fn ensure_ended(text: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        let processes = fs::read_dir("/proc")?.filter_map(|entry| {
            let arguments = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&arguments).replace('\0', " "))
        });
        let left: Vec<String> = processes.filter(|one| one.contains(text)).collect();
        if left.is_empty() {
            return Ok(());
        }
        ensure!(begun.elapsed() < STARTED, "{left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "make test-real-kind: needs root and dockerd"]
fn a_daemon_of_its_own_ends_with_the_command_and_leaves_nothing() -> Result<()> {
    let (daemon, host) = (OwnDaemon(tempfile::tempdir()?), HostState::now());
    let output = daemon.command("docker info --format {{.DockerRootDir}}; exit 7")?.output()?;
    let root = daemon.0.path().join("sluice-kind/docker-1/data").display().to_string();
    ensure!(said(&output).trim() == root, "{}", said(&output));
    ensure!(output.status.code() == Some(7) && daemon.left()? == 0, "{:?}", output.status);

    for name in ["-TERM", "-INT"] {
        let mut child = daemon.running()?;
        host.ensure_unchanged()?;
        signal(&child, name)?;
        ensure!(child.wait()?.code() == Some(130), "{name}");
        ensure!(daemon.left()? == 0, "{name}");
    }

    // After a crash the processes end, and the next start removes the files.
    let mut child = daemon.running()?;
    let beside = daemon.command("true")?.output()?;
    ensure!(beside.status.success() && daemon.left()? == 1, "{}", said(&beside));
    child.kill()?;
    child.wait()?;
    ensure_ended(&daemon.0.path().display().to_string())?;
    ensure!(daemon.left()? == 1, "the files are gone");
    let output = daemon.command("true")?.output()?;
    let removed = "removing the files of a daemon that crashed: ";
    ensure!(said(&output).starts_with(removed) && daemon.left()? == 0, "{}", said(&output));
    host.ensure_unchanged()
}

#[test]
#[ignore = "make test-real-kind: needs root and dockerd"]
fn a_daemon_that_does_not_start_is_a_failure() -> Result<()> {
    let daemon = OwnDaemon(tempfile::tempdir()?);
    let bin = daemon.0.path().join("bin");
    fs::create_dir(&bin)?;
    write_program(&bin.join("dockerd"), "#!/bin/sh\necho 'failed to start: no overlay' >&2\n")?;
    let mut command = daemon.command("echo ran")?;
    let path = std::env::var("PATH").context("PATH")?;
    let output = command.env("PATH", format!("{}:{path}", bin.display())).output()?;
    let expected = "error: Docker's daemon cannot be started: \
                    dockerd ended: failed to start: no overlay\n";
    ensure!(output.status.code() == Some(1) && said(&output) == expected, "{}", said(&output));
    ensure!(daemon.left()? == 0);
    Ok(())
}
