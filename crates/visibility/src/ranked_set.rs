//! An ordered set that knows the position of each element.
//!
//! Elements are in sorted chunks of at most [`CHUNK`]. An insertion or removal moves the elements of one chunk; a position is
//! found by adding the lengths of the chunks before it. With 100,000 elements that are about 300 additions.

/// The most elements of a chunk.
const CHUNK: usize = 512;

/// An ordered set with positions. No chunk is empty.
#[derive(Debug, Clone)]
pub(crate) struct RankedSet<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for RankedSet<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Ord> RankedSet<T> {
    /// Whether there is no element.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element. Returns false if an equal one is there, which stays.
    pub(crate) fn insert(&mut self, element: T) -> bool {
        let at = self.chunk_of(&element);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(vec![element]);
            self.len += 1;
            return true;
        };
        let Err(place) = chunk.binary_search(&element) else { return false };
        chunk.insert(place, element);
        self.len += 1;
        if chunk.len() > CHUNK {
            let upper = chunk.split_off(CHUNK / 2);
            self.chunks.insert(at + 1, upper);
        }
        true
    }

    /// Removes an element. Returns whether it was there.
    pub(crate) fn remove(&mut self, element: &T) -> bool {
        let at = self.chunk_of(element);
        let Some(chunk) = self.chunks.get_mut(at) else { return false };
        let Ok(place) = chunk.binary_search(element) else { return false };
        chunk.remove(place);
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(at);
        }
        true
    }

    /// The number of elements before this one, which need not be in the set.
    pub(crate) fn rank(&self, element: &T) -> usize {
        let at = self.chunk_of(element);
        let before: usize = self.chunks.iter().take(at).map(Vec::len).sum();
        let within = self.chunks.get(at).map(|chunk| chunk.binary_search(element));
        before + within.map_or(0, |place| place.unwrap_or_else(|place| place))
    }

    /// The elements from a position on, in order.
    pub(crate) fn iter_from(&self, position: usize) -> impl Iterator<Item = &T> {
        let mut skip = position;
        let mut first = 0;
        while let Some(chunk) = self.chunks.get(first).filter(|chunk| chunk.len() <= skip) {
            skip -= chunk.len();
            first += 1;
        }
        self.chunks.iter().skip(first).flatten().skip(skip)
    }

    /// The chunk that has the element, or that it would be added to: the last one that does not begin after it.
    fn chunk_of(&self, element: &T) -> usize {
        let after = self
            .chunks
            .partition_point(|chunk| chunk.first().is_some_and(|first| first <= element));
        after.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_list(
            steps in proptest::collection::vec((any::<bool>(), 0_u16..3000), 0..4000),
            position in 0_usize..3000,
        ) {
            let (mut set, mut model) = (RankedSet::default(), BTreeSet::new());
            for (add, element) in steps {
                if add {
                    prop_assert_eq!(set.insert(element), model.insert(element));
                } else {
                    prop_assert_eq!(set.remove(&element), model.remove(&element));
                }
            }
            prop_assert_eq!(set.is_empty(), model.is_empty());
            let sorted: Vec<u16> = model.into_iter().collect();
            let all: Vec<u16> = set.iter_from(0).copied().collect();
            prop_assert_eq!(&all, &sorted);
            let rest: Vec<u16> = set.iter_from(position).copied().collect();
            prop_assert_eq!(&rest, &sorted[position.min(sorted.len())..]);
            for element in (0..3000).step_by(97) {
                prop_assert_eq!(set.rank(&element), sorted.partition_point(|&one| one < element));
            }
        }
    }

    #[test]
    fn chunks_stay_small_and_are_never_empty() {
        let mut set = RankedSet::default();
        for element in 0..10_000 {
            set.insert(element);
        }
        assert!(set.chunks.iter().all(|chunk| chunk.len() <= CHUNK), "split when it is full");
        for element in 0..10_000 {
            set.remove(&element);
            assert!(set.chunks.iter().all(|chunk| !chunk.is_empty()), "{element}");
        }
        assert!(set.chunks.is_empty());
    }
}
