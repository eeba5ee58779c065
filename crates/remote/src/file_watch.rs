//! Which kubeconfigs in files have changed.
//!
//! Files are read once a second: a volume may report no changes. Only what two reads in a row agree on counts, because a file that
//! is being written has a part of its text.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::Duration,
};

use runtime::Stop;
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time,
};

use crate::{
    kubeconfig_file::KubeconfigDirectory, kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::Fingerprint,
};

/// The pause between two reads.
const READ_EVERY: Duration = Duration::from_secs(1);

/// How long a file system may take to answer before that is reported.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What a file was read as.
pub(super) type FileState = Result<Fingerprint, KubeconfigRefused>;

/// Files by path.
pub(super) type FileStates = BTreeMap<Box<str>, FileState>;

/// The files that MultiKueueClusters name, read by tasks of their own.
pub(super) struct FileWatch {
    paths: watch::Sender<BTreeSet<Box<str>>>,
    states: watch::Receiver<FileStates>,
}

impl FileWatch {
    /// Starts the task, which ends with `stop` or when the watch is dropped.
    pub(super) fn start(directory: KubeconfigDirectory, stop: Stop) -> Self {
        Self::start_with(move |path| directory.clone().fingerprint(path), stop)
    }

    /// Starts the task with another way to read.
    fn start_with<R, F>(read: R, stop: Stop) -> Self
    where
        R: Fn(Box<str>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = FileState> + Send + 'static,
    {
        let (paths, wanted) = watch::channel(BTreeSet::new());
        let (published, states) = watch::channel(FileStates::new());
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = read_files(read, wanted, published) => {}
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

/// Publishes what each file settles on. Every file has a task of its own, so that one which a file system does not answer holds up no
/// other.
async fn read_files<R, F>(
    read: R,
    mut wanted: watch::Receiver<BTreeSet<Box<str>>>,
    published: watch::Sender<FileStates>,
) where
    R: Fn(Box<str>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = FileState> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let mut followed: BTreeMap<Box<str>, AbortHandle> = BTreeMap::new();
    let (settled, mut states) = mpsc::channel(1);
    loop {
        let paths = wanted.borrow_and_update().clone();
        followed.retain(|path, task| paths.contains(path) || end(task));
        published.send_if_modified(|states| forget(states, &paths));
        for path in paths {
            let follow = || follow_file(read.clone(), path.clone(), settled.clone());
            followed.entry(path.clone()).or_insert_with(|| tasks.spawn(follow()));
        }
        loop {
            tokio::select! {
                changed = wanted.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                Some((path, state)) = states.recv() => {
                    // The task of a path that is not followed any more may have sent its last state.
                    if followed.contains_key(&path) {
                        published.send_modify(|states| { states.insert(path, state); });
                    }
                }
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            }
        }
    }
}

/// Ends a task. Returns that it is not kept.
fn end(task: &AbortHandle) -> bool {
    task.abort();
    false
}

/// Drops files that are not read any more. Returns whether there were any.
fn forget(states: &mut FileStates, paths: &BTreeSet<Box<str>>) -> bool {
    let before = states.len();
    states.retain(|path, _| paths.contains(path));
    states.len() != before
}

/// Reads a file for ever, and sends each state that two reads agree on.
async fn follow_file<R, F>(read: R, path: Box<str>, settled: mpsc::Sender<(Box<str>, FileState)>)
where
    R: Fn(Box<str>) -> F,
    F: Future<Output = FileState>,
{
    let mut reads = FileReads::default();
    loop {
        let mut reading = pin!(read(path.clone()));
        let state = match time::timeout(ANSWER_WITHIN, &mut reading).await {
            Ok(state) => state,
            Err(_) => {
                tracing::warn!(
                    path = &*path,
                    "a kubeconfig is not read: the file system is silent"
                );
                // What is known stays: the credentials may be good.
                if reads.settled.is_none() {
                    let late = Err(KubeconfigRefused::LateFile(path.clone()));
                    let _ = settled.send((path.clone(), late)).await;
                }
                reading.await
            }
        };
        if let Some(state) = reads.observe(state) {
            let _ = settled.send((path.clone(), state)).await;
        }
        time::sleep(READ_EVERY).await;
    }
}

/// The reads of one file.
#[derive(Default)]
struct FileReads {
    last: Option<FileState>,
    settled: Option<FileState>,
}

impl FileReads {
    /// Takes over what two reads agree on. Returns it if it is new.
    fn observe(&mut self, read: FileState) -> Option<FileState> {
        let agrees = self.last.as_ref() == Some(&read);
        self.last = Some(read);
        if !agrees || self.settled == self.last {
            return None;
        }
        self.settled.clone_from(&self.last);
        self.settled.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::make_pipe;

    fn state(text: &str) -> FileState {
        match text {
            "" => Err(KubeconfigRefused::NoFile("east".into())),
            text => Ok(Fingerprint::of(text.as_bytes())),
        }
    }

    #[test]
    fn a_state_counts_when_two_reads_agree_on_it() {
        let mut reads = FileReads::default();
        let mut observe = |text: &str| reads.observe(state(text));
        assert_eq!(observe("ha"), None);
        assert_eq!(observe("half"), None, "the file is being written");
        assert_eq!(observe("half"), Some(state("half")));
        assert_eq!(observe("half"), None, "nothing is new");
        assert_eq!(observe(""), None, "a file is replaced by way of its absence");
        assert_eq!(observe("half"), None);
        assert_eq!(observe("half"), None);
        assert_eq!(observe(""), None);
        assert_eq!(observe(""), Some(state("")));
    }

    /// Waits for a state.
    async fn wait_for(watch: &mut FileWatch, path: &str, expected: &FileState) {
        let wait = async {
            while watch.get(path).as_ref() != Some(expected) {
                watch.changed().await;
            }
        };
        let waited = time::timeout(Duration::from_secs(60), wait).await;
        assert!(waited.is_ok(), "{path}: {:?}", watch.get(path));
    }

    #[tokio::test]
    async fn a_pipe_holds_up_no_other_file() {
        let directory = tempfile::tempdir().expect("a directory");
        make_pipe(&directory.path().join("a-pipe"));
        std::fs::write(directory.path().join("east"), "text").expect("a file");
        let path =
            |name: &str| -> Box<str> { directory.path().join(name).display().to_string().into() };
        let own = KubeconfigDirectory::new(directory.path().to_owned());
        let mut watch = FileWatch::start(own, Stop::new());
        watch.follow([path("a-pipe"), path("east")].into());
        wait_for(&mut watch, &path("east"), &state("text")).await;
        let refused = Err(KubeconfigRefused::NotRegularFile(path("a-pipe")));
        wait_for(&mut watch, &path("a-pipe"), &refused).await;
        watch.follow([path("east")].into());
        watch.changed().await;
        assert_eq!(watch.get(&path("a-pipe")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_system_that_does_not_answer_holds_up_no_other_file() {
        let (silent, is_silent) = watch::channel(true);
        let read = move |path: Box<str>| {
            let mut is_silent = is_silent.clone();
            async move {
                if &*path == "stuck" {
                    let _ = is_silent.wait_for(|silent| !silent).await;
                }
                state("text")
            }
        };
        let mut watch = FileWatch::start_with(read, Stop::new());
        watch.follow(["stuck".into(), "west".into()].into());
        wait_for(&mut watch, "west", &state("text")).await;
        assert_eq!(watch.get("stuck"), None);
        wait_for(&mut watch, "stuck", &Err(KubeconfigRefused::LateFile("stuck".into()))).await;
        silent.send_replace(false);
        wait_for(&mut watch, "stuck", &state("text")).await;
        silent.send_replace(true);
        time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(watch.get("stuck"), Some(state("text")), "the last known one stays");
    }
}
