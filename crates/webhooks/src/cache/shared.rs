//! The cache behind a lock: one writer task per kind, many readers.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use parking_lot::RwLock;
use runtime::watch::Change;

use super::{CachedKind, WebhookCache, cached_kind::N_KINDS};

/// The set of all kinds, one bit each.
const ALL: u8 = (1 << N_KINDS) - 1;

/// A handle on the shared [`WebhookCache`]. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SharedWebhookCache(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cache: RwLock<WebhookCache>,
    listed: AtomicU8,
}

impl SharedWebhookCache {
    /// Runs `query` under the read lock. Keep it short: it blocks writers.
    pub fn read<T>(&self, query: impl FnOnce(&WebhookCache) -> T) -> T {
        query(&self.0.cache.read())
    }

    /// Whether every kind has been listed once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.0.listed.load(Ordering::Acquire) == ALL
    }

    /// Handles one change of a watch.
    pub fn handle<K: CachedKind>(&self, change: Change<K>) {
        let listed = change.is_list();
        self.0.cache.write().handle(change);
        // After the objects: a reader that sees the bit sees the list as well.
        if listed {
            self.0.listed.fetch_or(1 << K::BIT, Ordering::Release);
        }
    }
}
