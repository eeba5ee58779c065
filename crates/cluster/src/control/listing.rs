//! Which kinds were listed. Nothing is decided before every kind was listed once.

use std::collections::BTreeSet;

/// Kinds whose first list has not come.
#[derive(Debug)]
pub(crate) struct Listing {
    awaited: BTreeSet<&'static str>,
}

impl Listing {
    pub(crate) fn new(kinds: impl IntoIterator<Item = &'static str>) -> Self {
        Self { awaited: kinds.into_iter().collect() }
    }

    /// Whether every kind was listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Records that a kind was listed. Returns whether it was the last one that was awaited.
    pub(crate) fn listed(&mut self, kind: &'static str) -> bool {
        let last = self.awaited.remove(kind) && self.awaited.is_empty();
        if last {
            tracing::info!("everything was listed");
        }
        last
    }
}
