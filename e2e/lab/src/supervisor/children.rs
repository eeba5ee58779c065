//! The supervisor's children: starting, killing, reaping.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use rustix::process::Signal;
use tokio::sync::watch;

use crate::component::Component;
use crate::control::ProgramLaunch;
use crate::control_plane;
use crate::identity::ProcessId;
use crate::state::ClusterState;
use crate::tether;

/// One child. A task of its own reaps it, so that a killed child does not remain a zombie.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) id: ProcessId,
    exited: watch::Receiver<Option<String>>,
}

impl Child {
    /// Waits for the end and returns the exit status.
    pub(super) async fn end(&mut self) -> String {
        match self.exited.wait_for(Option::is_some).await {
            Ok(status) => status.clone().unwrap_or_default(),
            Err(_) => "ended".to_owned(),
        }
    }
}

/// What a child is.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ChildKey {
    /// A component of a cluster.
    Component(String, Component),
    /// A program beside the clusters.
    Program(String),
}

/// All children of this supervisor.
pub(super) struct Children {
    sluice_lab: PathBuf,
    running: Mutex<HashMap<ChildKey, Child>>,
}

impl Children {
    pub(super) fn new(sluice_lab: PathBuf) -> Self {
        Self { sluice_lab, running: Mutex::default() }
    }

    /// The tool that starts all children.
    pub(super) fn sluice_lab(&self) -> &Path {
        &self.sluice_lab
    }

    /// Starts `program` as a component of `cluster`, its output appended to the component's log.
    pub(super) fn start(
        &self,
        program: &Path,
        cluster: &ClusterState,
        component: Component,
        arguments: &[String],
    ) -> std::io::Result<Child> {
        let log = OpenOptions::new().create(true).append(true).open(cluster.log(component))?;
        let mut command = tokio::process::Command::from(tether::command(&self.sluice_lab, program));
        command
            .args(arguments)
            .envs(control_plane::environment(component))
            .current_dir(&cluster.directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = reaped(command.spawn()?)?;
        self.lock().insert(ChildKey::Component(cluster.name.clone(), component), child.clone());
        Ok(child)
    }

    /// Starts a program beside the clusters, its output appended to `log`.
    pub(super) fn start_program(
        &self,
        launch: &ProgramLaunch,
        log: &Path,
    ) -> std::io::Result<Child> {
        let key = ChildKey::Program(launch.name.clone());
        if self.lock().contains_key(&key) {
            return Err(std::io::Error::other("the lab has a program of this name"));
        }
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let command = tether::command(&self.sluice_lab, &launch.program);
        let mut command = tokio::process::Command::from(command);
        command.args(&launch.arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = reaped(command.spawn()?)?;
        self.lock().insert(key, child.clone());
        Ok(child)
    }

    /// Kills one component, if it runs, and waits for its end.
    pub(super) async fn kill(&self, cluster: &str, component: Component) -> std::io::Result<()> {
        let key = ChildKey::Component(cluster.to_owned(), component);
        let Some(mut child) = self.lock().remove(&key) else {
            return Ok(());
        };
        child.id.signal(Signal::KILL)?;
        child.end().await;
        Ok(())
    }

    /// Kills all components and programs, and waits for their end.
    pub(super) async fn kill_all(&self) {
        let children: Vec<Child> = self.lock().drain().map(|(_, child)| child).collect();
        for child in &children {
            // A child that cannot be signalled has ended, or ends with this process.
            let _ = child.id.signal(Signal::KILL);
        }
        for mut child in children {
            child.end().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ChildKey, Child>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the child a task that reaps it.
fn reaped(mut child: tokio::process::Child) -> std::io::Result<Child> {
    let id = child
        .id()
        .and_then(ProcessId::of)
        .ok_or_else(|| std::io::Error::other("the process ended at once"))?;
    let (ended, exited) = watch::channel(None);
    tokio::spawn(async move {
        let status = match child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => format!("unknown status: {error}"),
        };
        ended.send_replace(Some(status));
    });
    Ok(Child { id, exited })
}
