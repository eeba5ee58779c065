//! What containers on real nodes of a lab wrote down themselves, in a directory of their node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use crds::names::MULTI_KUEUE_CONTROLLER;
use harness::{Judgement, PodOutcome, PodRecord};
use lab::ClusterState;
use lab::real_nodes::configuration::BUSYBOX_IMAGE;
use serde_json::{Value, json};

use crate::objects;

/// The directory of a node with a directory per test.
const DIARIES: &str = "/var/lib/diaries";

/// The shell function `note WORD`: one line with the pod, the word, and the seconds since the machine's start. All nodes share that clock.
const NOTE: &str =
    r#"note() { read up rest </proc/uptime; echo "$(hostname) $1 $up" >>/diaries/diary; }"#;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct DiaryEntry {
    /// The pod.
    pub pod: String,
    /// What it noted.
    pub word: String,
    /// Seconds since the machine's start, in hundredths.
    pub seconds: f64,
}

impl DiaryEntry {
    fn parse(line: &str) -> Result<Self> {
        let mut words = line.split_whitespace();
        let mut next = || words.next().with_context(|| format!("a diary has the line {line:?}"));
        let (pod, word) = (next()?.to_owned(), next()?.to_owned());
        Ok(Self { pod, word, seconds: next()?.parse()? })
    }
}

/// The lines of all nodes of a worker, in order per container.
#[derive(Debug, Clone, PartialEq)]
pub struct Diary(Vec<DiaryEntry>);

impl Diary {
    /// What the containers of a namespace have written on the real nodes of a cluster.
    ///
    /// # Errors
    /// If a file cannot be read, or has another line.
    pub fn read(cluster: &ClusterState, namespace: &str) -> Result<Self> {
        let mut entries = Vec::new();
        for node in &cluster.real_nodes {
            let path = directory(&node.directory, namespace).join("diary");
            if path.exists() {
                let text = std::fs::read_to_string(&path);
                let text = text.with_context(|| path.display().to_string())?;
                for line in text.lines() {
                    entries.push(DiaryEntry::parse(line)?);
                }
            }
        }
        Ok(Self(entries))
    }

    /// The lines of several diaries, in their order.
    #[must_use]
    pub fn joined(diaries: Vec<Self>) -> Self {
        Self(diaries.into_iter().flat_map(|diary| diary.0).collect())
    }

    /// Leaves a file beside the diary of every real node of a cluster.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn leave_file(cluster: &ClusterState, namespace: &str, name: &str) -> Result<()> {
        for node in &cluster.real_nodes {
            let directory = directory(&node.directory, namespace);
            std::fs::create_dir_all(&directory)?;
            std::fs::write(directory.join(name), "")?;
        }
        Ok(())
    }

    /// Whether no container has written anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries with a word.
    #[must_use]
    pub fn entries(&self, word: &str) -> Vec<&DiaryEntry> {
        self.0.iter().filter(|entry| entry.word == word).collect()
    }

    /// The one entry with a word.
    ///
    /// # Errors
    /// If there is another number of them.
    pub fn only(&self, word: &str) -> Result<&DiaryEntry> {
        let entries = self.entries(word);
        ensure!(entries.len() == 1, "{word} is not there once: {self:?}");
        entries.into_iter().next().context("one entry")
    }

    /// The pods that noted a word, each once.
    ///
    /// # Errors
    /// If a pod has noted it twice.
    pub fn pods(&self, word: &str) -> Result<BTreeSet<String>> {
        let mut pods = BTreeSet::new();
        for entry in self.entries(word) {
            ensure!(pods.insert(entry.pod.clone()), "{} noted {word} twice: {self:?}", entry.pod);
        }
        Ok(pods)
    }

    /// The containers of a cluster wrote `started` and `ended`, each once, as the observer saw their pods start and succeed.
    ///
    /// # Errors
    /// If it saw others.
    pub fn ensure_as_seen(&self, cluster: &str, seen: &[Judgement]) -> Result<()> {
        let started = pods_of(seen, cluster, |pod| pod.started.is_some());
        ensure!(self.pods("started")? == started, "{self:?}, seen: {started:?}");
        let succeeded = |pod: &PodRecord| matches!(pod.ended, Some((_, PodOutcome::Succeeded)));
        let succeeded = pods_of(seen, cluster, succeeded);
        ensure!(self.pods("ended")? == succeeded, "{self:?}, seen: {succeeded:?}");
        Ok(())
    }
}

/// The directory of a namespace, below what a node has in place of `/var/lib`.
fn directory(node: &Path, namespace: &str) -> PathBuf {
    node.join("var-lib").join(DIARIES.trim_start_matches("/var/lib/")).join(namespace)
}

/// The names of pods on a cluster in the observer's ledger.
fn pods_of(
    seen: &[Judgement],
    cluster: &str,
    which: impl Fn(&PodRecord) -> bool,
) -> BTreeSet<String> {
    let runs = seen.iter().flat_map(|judgement| &judgement.runs);
    let pods = runs.filter(|run| run.cluster == cluster).flat_map(|run| &run.pods);
    pods.filter(|pod| which(pod)).map(|pod| pod.name.clone()).collect()
}

/// The spec of a pod with a container that runs a script; `note WORD` writes a line to the diary of its node.
#[must_use]
pub fn pod_spec(namespace: &str, script: &str) -> Value {
    json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 20,
        "containers": [{
            "name": "main",
            "image": BUSYBOX_IMAGE,
            "command": ["sh", "-c", format!("{NOTE}\n{script}")],
            "resources": {"requests": {"cpu": "100m"}},
            "volumeMounts": [{"name": "diaries", "mountPath": "/diaries"}],
        }],
        "volumes": [{
            "name": "diaries",
            "hostPath": {"path": format!("{DIARIES}/{namespace}"), "type": "DirectoryOrCreate"},
        }],
    })
}

/// A Job of such pods, which fails with its first pod.
#[must_use]
pub fn job(namespace: &str, name: &str, pods: usize, script: &str) -> Value {
    let mut job = objects::job(name, pods, "100m", 1);
    job["spec"]["backoffLimit"] = json!(0);
    // The webhook may not know the new queue yet.
    job["spec"]["managedBy"] = json!(MULTI_KUEUE_CONTROLLER);
    job["spec"]["template"] = json!({"spec": pod_spec(namespace, script)});
    job
}

/// A pod of the queue with such a container.
#[must_use]
pub fn pod(namespace: &str, name: &str, script: &str) -> Value {
    let mut pod = objects::pod(name, "queue", 1);
    pod["spec"] = pod_spec(namespace, script);
    pod
}
