//! What containers wrote down themselves, in a directory of their node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use harness::Cluster;

/// The directory of a node with a directory per test.
pub(crate) const DIARIES: &str = "/var/lib/diaries";

/// The shell function `note WORD`: one line with the pod, the word, and the seconds since the machine's start. All nodes share that clock.
pub(crate) const NOTE: &str =
    r#"note() { read up rest </proc/uptime; echo "$(hostname) $1 $up" >>/diaries/diary; }"#;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DiaryEntry {
    pub(crate) pod: String,
    pub(crate) word: String,
    /// Seconds since the machine's start, in hundredths.
    pub(crate) seconds: f64,
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
pub(crate) struct Diary(Vec<DiaryEntry>);

impl Diary {
    /// What the containers of a namespace have written on a worker.
    pub(crate) fn read(worker: &Cluster, namespace: &str) -> Result<Self> {
        let mut entries = Vec::new();
        for node in &worker.state().real_nodes {
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
    pub(crate) fn joined(diaries: Vec<Self>) -> Self {
        Self(diaries.into_iter().flat_map(|diary| diary.0).collect())
    }

    /// Leaves a file beside the diary of every node of a worker.
    pub(crate) fn leave_file(worker: &Cluster, namespace: &str, name: &str) -> Result<()> {
        for node in &worker.state().real_nodes {
            let directory = directory(&node.directory, namespace);
            std::fs::create_dir_all(&directory)?;
            std::fs::write(directory.join(name), "")?;
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries with a word.
    pub(crate) fn entries(&self, word: &str) -> Vec<&DiaryEntry> {
        self.0.iter().filter(|entry| entry.word == word).collect()
    }

    /// The one entry with a word.
    pub(crate) fn only(&self, word: &str) -> Result<&DiaryEntry> {
        let entries = self.entries(word);
        ensure!(entries.len() == 1, "{word} is not there once: {self:?}");
        entries.into_iter().next().context("one entry")
    }

    /// The pods that noted a word, each once: a second line of a pod is an error.
    pub(crate) fn pods(&self, word: &str) -> Result<BTreeSet<String>> {
        let mut pods = BTreeSet::new();
        for entry in self.entries(word) {
            ensure!(pods.insert(entry.pod.clone()), "{} noted {word} twice: {self:?}", entry.pod);
        }
        Ok(pods)
    }
}

/// The directory of a namespace, below what a node has in place of `/var/lib`.
fn directory(node: &Path, namespace: &str) -> PathBuf {
    node.join("var-lib").join(DIARIES.trim_start_matches("/var/lib/")).join(namespace)
}
