//! Places for requests in flight, counted by two names, such as a cluster and a namespace on it.
//!
//! Names come from callers, so the counts do not keep those without requests.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

type TakenByName = HashMap<Box<str>, HashMap<Box<str>, usize>>;

/// See the module. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct NestedPlaces(Arc<Mutex<TakenByName>>);

/// How many places are taken.
pub(crate) struct TakenPlaces {
    /// By all requests.
    pub(crate) by_all: usize,
    /// By those with the outer name.
    pub(crate) by_outer: usize,
    /// By those with both names.
    pub(crate) by_both: usize,
}

/// A place for one request. Dropping it makes it free.
pub(crate) struct NestedPermit {
    places: NestedPlaces,
    outer: Box<str>,
    inner: Box<str>,
}

impl NestedPlaces {
    /// A place for a request with these names; `None` if what is taken leaves no room.
    pub(crate) fn enter(
        &self,
        outer: &str,
        inner: &str,
        has_room: impl FnOnce(&TakenPlaces) -> bool,
    ) -> Option<NestedPermit> {
        let mut taken = self.0.lock();
        let of_outer = taken.get(outer);
        let found = TakenPlaces {
            by_all: taken.values().flat_map(HashMap::values).sum(),
            by_outer: of_outer.map_or(0, |it| it.values().sum()),
            by_both: of_outer.and_then(|it| it.get(inner)).copied().unwrap_or_default(),
        };
        has_room(&found).then(|| {
            let (outer, inner): (Box<str>, Box<str>) = (outer.into(), inner.into());
            *taken.entry(outer.clone()).or_default().entry(inner.clone()).or_default() += 1;
            NestedPermit { places: self.clone(), outer, inner }
        })
    }

    /// Whether nothing is counted.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Drop for NestedPermit {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        let Some(of_outer) = taken.get_mut(&self.outer) else { return };
        if let Some(count) = of_outer.get_mut(&self.inner) {
            *count = count.saturating_sub(1);
        }
        of_outer.retain(|_, count| *count > 0);
        if of_outer.is_empty() {
            taken.remove(&self.outer);
        }
    }
}
