//! Facts that many read and one task per kind writes.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use parking_lot::RwLock;
use runtime::watch::Change;

use super::{Fact, Facts, kinds::N_KINDS};

/// A bit for each kind.
const ALL: u8 = (1 << N_KINDS) - 1;

/// A handle on shared facts. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Known(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    facts: RwLock<Facts>,
    listed: AtomicU8,
}

impl Known {
    /// Asks the facts under a lock; the answer must not need them any more.
    pub fn ask<T>(&self, question: impl FnOnce(&Facts) -> T) -> T {
        question(&self.0.facts.read())
    }

    /// Whether every kind has been listed.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.0.listed.load(Ordering::Acquire) == ALL
    }

    /// Learns a change.
    pub fn learn<K: Fact>(&self, change: Change<K>) {
        let listed = matches!(change, Change::Reset { .. });
        self.0.facts.write().learn(change);
        if listed {
            self.0.listed.fetch_or(1 << K::WATCH.1, Ordering::Release);
        }
    }
}
