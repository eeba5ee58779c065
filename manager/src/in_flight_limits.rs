//! Requests in flight, counted by two names, such as a cluster and a namespace on it.
//!
//! Names come from callers, so the counts do not keep those without requests.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

type CountsByName = HashMap<Box<str>, HashMap<Box<str>, usize>>;

/// Counts of requests in flight. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct InFlightCounts(Arc<Mutex<CountsByName>>);

/// How many requests are in flight.
pub(crate) struct InFlight {
    /// All of them.
    pub(crate) all: usize,
    /// Those with the outer name.
    pub(crate) with_outer: usize,
    /// Those with both names.
    pub(crate) with_both: usize,
}

/// The permit of one request in flight, which is counted until it is dropped.
pub(crate) struct InFlightPermit {
    counts: InFlightCounts,
    outer: Box<str>,
    inner: Box<str>,
}

impl InFlightCounts {
    /// A permit for a request with these names; `None` if what is in flight does not allow it.
    pub(crate) fn try_acquire(
        &self,
        outer: &str,
        inner: &str,
        allows: impl FnOnce(&InFlight) -> bool,
    ) -> Option<InFlightPermit> {
        let mut counts = self.0.lock();
        let of_outer = counts.get(outer);
        let found = InFlight {
            all: counts.values().flat_map(HashMap::values).sum(),
            with_outer: of_outer.map_or(0, |it| it.values().sum()),
            with_both: of_outer.and_then(|it| it.get(inner)).copied().unwrap_or_default(),
        };
        allows(&found).then(|| {
            let (outer, inner): (Box<str>, Box<str>) = (outer.into(), inner.into());
            *counts.entry(outer.clone()).or_default().entry(inner.clone()).or_default() += 1;
            InFlightPermit { counts: self.clone(), outer, inner }
        })
    }

    /// Whether nothing is counted.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        let Some(of_outer) = counts.get_mut(&self.outer) else { return };
        if let Some(count) = of_outer.get_mut(&self.inner) {
            *count = count.saturating_sub(1);
        }
        of_outer.retain(|_, count| *count > 0);
        if of_outer.is_empty() {
            counts.remove(&self.outer);
        }
    }
}
