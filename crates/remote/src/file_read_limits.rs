//! How many files are read at a time.
//!
//! A read that a file system does not answer holds a thread for ever, of the pool that host names are resolved with as well. Any user
//! with the right to create MultiKueueClusters chooses how many paths there are, so the reads of all paths together are limited.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// The reads at a time of all paths: a small part of the threads of the pool.
const MAX_CONCURRENT_READS: usize = 32;

/// The limits; clones share them.
#[derive(Clone, Debug)]
pub(super) struct FileReadLimits {
    /// One read at a time per path.
    paths: Arc<Mutex<BTreeMap<Box<str>, Arc<Semaphore>>>>,
    all: Arc<Semaphore>,
}

impl Default for FileReadLimits {
    fn default() -> Self {
        Self { paths: Arc::default(), all: Arc::new(Semaphore::new(MAX_CONCURRENT_READS)) }
    }
}

impl FileReadLimits {
    /// Reads in a thread, when no other read of the path goes on. `None` if the runtime ends.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        path: &str,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // No semaphore is closed.
        let path_permit = self.path_semaphore(path).acquire_owned().await.ok()?;
        // After that of the path: what waits for it holds up no other path.
        let permit = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let reading = tokio::task::spawn_blocking(move || {
            let value = read();
            drop((path_permit, permit));
            value
        });
        reading.await.ok()
    }

    /// The semaphore of a path; those that no read holds are forgotten.
    fn path_semaphore(&self, path: &str) -> Arc<Semaphore> {
        let mut paths = self.paths.lock();
        paths.retain(|_, one| Arc::strong_count(one) > 1);
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
        let limits = FileReadLimits::default();
        let stuck = limits.path_semaphore("east").acquire_owned().await.expect("a permit");
        let second =
            tokio::time::timeout(Duration::from_secs(60), limits.read("east", || ())).await;
        assert!(second.is_err(), "it holds no thread");
        assert!(limits.read("west", || ()).await.is_some());
        drop(stuck);
        assert!(limits.read("east", || ()).await.is_some());
        limits.read("west", || ()).await.expect("an answer");
        assert_eq!(limits.paths.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_silent_file_system_holds_few_threads() {
        let limits = FileReadLimits::default();
        let begun = Arc::new(AtomicUsize::new(0));
        let answers = Arc::new(AtomicBool::new(false));
        let mut reads = tokio::task::JoinSet::new();
        for number in 0..100 {
            let (limits, begun, answers) =
                (limits.clone(), Arc::clone(&begun), Arc::clone(&answers));
            reads.spawn(async move {
                let read = move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    while !answers.load(Ordering::SeqCst) {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                };
                limits.read(&number.to_string(), read).await
            });
        }
        while begun.load(Ordering::SeqCst) < MAX_CONCURRENT_READS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let held = begun.load(Ordering::SeqCst);
        answers.store(true, Ordering::SeqCst);
        let read = reads.join_all().await;
        assert_eq!(held, MAX_CONCURRENT_READS);
        assert!(read.len() == 100 && read.iter().all(Option::is_some));
    }
}
