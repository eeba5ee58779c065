//! Which kubeconfigs in files have changed.
//!
//! Files are read once a second: a volume may report no changes. Only what two reads in a row agree on counts, because a file that
//! is being written has a part of its text.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use runtime::Stop;
use tokio::{sync::watch, time};

use crate::{
    kubeconfig_file::KubeconfigDirectory, kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::Fingerprint,
};

/// The pause between two reads.
const READ_EVERY: Duration = Duration::from_secs(1);

/// What a file was read as.
pub(super) type FileState = Result<Fingerprint, KubeconfigRefused>;

/// Files by path.
pub(super) type FileStates = BTreeMap<Box<str>, FileState>;

/// The files that MultiKueueClusters name, read by a task of its own.
pub(super) struct FileWatch {
    paths: watch::Sender<BTreeSet<Box<str>>>,
    states: watch::Receiver<FileStates>,
}

impl FileWatch {
    /// Starts the task, which ends with `stop` or when the watch is dropped.
    pub(super) fn start(directory: KubeconfigDirectory, stop: Stop) -> Self {
        let (paths, wanted) = watch::channel(BTreeSet::new());
        let (published, states) = watch::channel(FileStates::new());
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = read_files(directory, wanted, published) => {}
            }
        });
        Self { paths, states }
    }

    /// Sets the files that are read.
    pub(super) fn follow(&self, paths: BTreeSet<Box<str>>) {
        self.paths.send_if_modified(|known| {
            let changed = *known != paths;
            *known = paths;
            changed
        });
    }

    /// Waits for a change.
    pub(super) async fn changed(&mut self) {
        if self.states.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// What a file was read as; `None` before that is known.
    pub(super) fn get(&self, path: &str) -> Option<FileState> {
        self.states.borrow().get(path).cloned()
    }
}

async fn read_files(
    directory: KubeconfigDirectory,
    mut wanted: watch::Receiver<BTreeSet<Box<str>>>,
    published: watch::Sender<FileStates>,
) {
    let mut last = FileStates::new();
    loop {
        let paths = wanted.borrow_and_update().clone();
        if paths.is_empty() {
            // Most installations have none.
            if wanted.changed().await.is_err() {
                return;
            }
            continue;
        }
        let mut read = FileStates::new();
        for path in paths {
            let state = directory.clone().fingerprint(path.clone()).await;
            read.insert(path, state);
        }
        published.send_if_modified(|states| settle(states, &last, &read));
        last = read;
        time::sleep(READ_EVERY).await;
        if published.is_closed() {
            return;
        }
    }
}

/// Takes over what two reads agree on, and drops files that are not read any more. Returns whether anything changed.
fn settle(states: &mut FileStates, last: &FileStates, read: &FileStates) -> bool {
    let before = states.len();
    states.retain(|path, _| read.contains_key(path));
    let mut changed = states.len() != before;
    for (path, state) in read.iter().filter(|(path, state)| last.get(*path) == Some(state)) {
        if states.get(path) != Some(state) {
            states.insert(path.clone(), state.clone());
            changed = true;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(states: &[(&str, &str)]) -> FileStates {
        let read = |text: &str| match text {
            "" => Err(KubeconfigRefused::NoFile("east".into())),
            text => Ok(Fingerprint::of(text.as_bytes())),
        };
        states.iter().map(|(path, text)| ((*path).into(), read(text))).collect()
    }

    #[test]
    fn a_state_counts_when_two_reads_agree_on_it() {
        let mut states = FileStates::new();
        let (none, half, whole) =
            (files(&[]), files(&[("east", "ha")]), files(&[("east", "half")]));
        assert!(!settle(&mut states, &none, &half));
        assert!(!settle(&mut states, &half, &whole), "the file is being written");
        assert!(settle(&mut states, &whole, &whole));
        assert_eq!(states, whole);
        assert!(!settle(&mut states, &whole, &whole), "nothing is new");
        let gone = files(&[("east", "")]);
        assert!(!settle(&mut states, &whole, &gone), "a file is replaced by way of its absence");
        assert_eq!(states, whole);
        assert!(settle(&mut states, &gone, &gone));
        assert_eq!(states, gone);
        assert!(settle(&mut states, &gone, &none), "no MultiKueueCluster names it");
        assert_eq!(states, none);
    }
}
