//! Two binary heaps whose order is passed in by the caller, since it depends on other tables.

use crate::dense_table::DenseTable;

/// A heap of plain values.
#[derive(Debug, Clone)]
pub(crate) struct Heap<T> {
    items: Vec<T>,
}

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<T: Copy> Heap<T> {
    pub(crate) fn peek(&self) -> Option<T> {
        self.items.first().copied()
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
    }

    // A preemption search pushes every candidate here; without the hint, inlining depended on unrelated code of the
    // crate.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: T, before: impl Fn(T, T) -> bool) {
        self.items.push(item);
        let mut at = self.items.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !before(self.items[at], self.items[parent]) {
                break;
            }
            self.items.swap(at, parent);
            at = parent;
        }
    }

    pub(crate) fn pop(&mut self, before: impl Fn(T, T) -> bool) -> Option<T> {
        let last = self.items.len().checked_sub(1)?;
        self.items.swap(0, last);
        let item = self.items.pop();
        let mut at = 0;
        while let Some(child) = first_child(&self.items, at, &before) {
            if !before(self.items[child], self.items[at]) {
                break;
            }
            self.items.swap(at, child);
            at = child;
        }
        item
    }
}

fn first_child<T: Copy>(items: &[T], at: usize, before: &impl Fn(T, T) -> bool) -> Option<usize> {
    let left = 2 * at + 1;
    let right = left + 1;
    if left >= items.len() {
        None
    } else if right < items.len() && before(items[right], items[left]) {
        Some(right)
    } else {
        Some(left)
    }
}

/// A heap of ids with their positions, so that any of them can be removed or moved.
#[derive(Debug, Clone)]
pub(crate) struct IndexHeap<Id> {
    items: Vec<Id>,
    /// Position of each id; `NOWHERE` if it is not in the heap.
    places: DenseTable<Id, u32>,
}

const NOWHERE: u32 = u32::MAX;

impl<Id> Default for IndexHeap<Id> {
    fn default() -> Self {
        Self { items: Vec::new(), places: DenseTable::default() }
    }
}

impl<Id: From<usize> + Into<usize> + Copy + PartialEq> IndexHeap<Id> {
    pub(crate) fn peek(&self) -> Option<Id> {
        self.items.first().copied()
    }

    pub(crate) fn contains(&self, item: Id) -> bool {
        self.places.get(item).is_some_and(|&place| place != NOWHERE)
    }

    /// Inserts `item`, or moves it to its position if it is in the heap already.
    pub(crate) fn settle(&mut self, item: Id, before: impl Fn(Id, Id) -> bool) {
        self.places.reach_with(item, NOWHERE);
        if !self.contains(item) {
            self.items.push(item);
            self.note(self.items.len() - 1);
        }
        let at = self.rise(self.places[item] as usize, &before);
        self.sink(at, &before);
    }

    pub(crate) fn remove(&mut self, item: Id, before: impl Fn(Id, Id) -> bool) {
        if !self.contains(item) {
            return;
        }
        let at = std::mem::replace(&mut self.places[item], NOWHERE) as usize;
        let Some(last) = self.items.pop() else { return };
        if last != item {
            self.items[at] = last;
            self.note(at);
            // The last item comes from another subtree, so it may belong above or below `at`.
            let at = self.rise(at, &before);
            self.sink(at, &before);
        }
    }

    fn note(&mut self, at: usize) {
        let place = u32::try_from(at).expect("invariant: heaps hold fewer than 2^32 items");
        self.places[self.items[at]] = place;
    }

    fn swap(&mut self, left: usize, right: usize) {
        self.items.swap(left, right);
        self.note(left);
        self.note(right);
    }

    fn rise(&mut self, mut at: usize, before: &impl Fn(Id, Id) -> bool) -> usize {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !before(self.items[at], self.items[parent]) {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
        at
    }

    fn sink(&mut self, mut at: usize, before: &impl Fn(Id, Id) -> bool) {
        while let Some(child) = first_child(&self.items, at, before) {
            if !before(self.items[child], self.items[at]) {
                break;
            }
            self.swap(at, child);
            at = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_item_can_be_moved_or_removed() {
        let mut keys = [5, 3, 8, 1, 9, 2, 7];
        let mut heap = IndexHeap::default();
        for item in 0..7_usize {
            heap.settle(item, |a, b| keys[a] < keys[b]);
        }
        keys[4] = 0;
        heap.settle(4, |a, b| keys[a] < keys[b]);
        heap.remove(3, |a, b| keys[a] < keys[b]);
        let mut order = Vec::new();
        while let Some(top) = heap.peek() {
            order.push(top);
            heap.remove(top, |a, b| keys[a] < keys[b]);
        }
        assert_eq!(order, [4, 5, 1, 0, 6, 2]);
    }
}
