//! How many files are read at a time.
//!
//! A read that a file system does not answer holds a thread for ever, of the pool that host names are resolved with as well. Any user
//! with the right to create MultiKueueClusters chooses how many paths there are, so the reads of all paths together are limited.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// The reads at a time of all paths: a small part of the threads of the pool.
const READS: usize = 32;

/// The limits; clones share them.
#[derive(Clone, Debug)]
pub(super) struct ReadTurns {
    /// One read at a time per path.
    paths: Arc<Mutex<BTreeMap<Box<str>, Arc<Semaphore>>>>,
    all: Arc<Semaphore>,
}

impl Default for ReadTurns {
    fn default() -> Self {
        Self { paths: Arc::default(), all: Arc::new(Semaphore::new(READS)) }
    }
}

impl ReadTurns {
    /// Reads in a thread when it is the turn of the path. `None` if the runtime ends.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        path: &str,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // No semaphore is closed.
        let of_path = self.of_path(path).acquire_owned().await.ok()?;
        // After the turn of the path: what waits for that holds up no other path.
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let reading = tokio::task::spawn_blocking(move || {
            let value = read();
            drop((of_path, of_all));
            value
        });
        reading.await.ok()
    }

    /// The turn of a path; those that no read holds are forgotten.
    fn of_path(&self, path: &str) -> Arc<Semaphore> {
        let mut paths = self.paths.lock();
        paths.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(paths.entry(path.into()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
        time::Duration,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_path_has_one_read_at_a_time() {
        let turns = ReadTurns::default();
        let stuck = turns.of_path("east").acquire_owned().await.expect("a turn");
        let second = tokio::time::timeout(Duration::from_secs(60), turns.read("east", || ())).await;
        assert!(second.is_err(), "it holds no thread");
        assert!(turns.read("west", || ()).await.is_some());
        drop(stuck);
        assert!(turns.read("east", || ()).await.is_some());
        turns.read("west", || ()).await.expect("an answer");
        assert_eq!(turns.paths.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_silent_file_system_holds_few_threads() {
        let turns = ReadTurns::default();
        let begun = Arc::new(AtomicUsize::new(0));
        let answers = Arc::new(AtomicBool::new(false));
        let mut reads = tokio::task::JoinSet::new();
        for number in 0..100 {
            let (turns, begun, answers) = (turns.clone(), Arc::clone(&begun), Arc::clone(&answers));
            reads.spawn(async move {
                let read = move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    while !answers.load(Ordering::SeqCst) {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                };
                turns.read(&number.to_string(), read).await
            });
        }
        while begun.load(Ordering::SeqCst) < READS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let held = begun.load(Ordering::SeqCst);
        answers.store(true, Ordering::SeqCst);
        let read = reads.join_all().await;
        assert_eq!(held, READS);
        assert!(read.len() == 100 && read.iter().all(Option::is_some));
    }
}
