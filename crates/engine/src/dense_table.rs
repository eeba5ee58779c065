//! Tables indexed by typed dense ids, so that an id of one kind cannot index the table of another.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// One value per id, without gaps.
#[derive(Debug)]
pub(crate) struct DenseTable<Id, T> {
    rows: Vec<T>,
    kind: PhantomData<Id>,
}

impl<Id, T> Default for DenseTable<Id, T> {
    fn default() -> Self {
        Self { rows: Vec::new(), kind: PhantomData }
    }
}

impl<Id, T: Clone> Clone for DenseTable<Id, T> {
    fn clone(&self) -> Self {
        Self { rows: self.rows.clone(), kind: PhantomData }
    }

    // The derived one would allocate.
    fn clone_from(&mut self, other: &Self) {
        self.rows.clone_from(&other.rows);
    }
}

impl<Id: From<usize> + Into<usize>, T> DenseTable<Id, T> {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// All ids.
    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = Id> + use<Id, T> {
        (0..self.rows.len()).map(Id::from)
    }

    /// The row of an id; `None` behind the last.
    #[inline]
    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        self.rows.get(id.into())
    }

    /// The row of an id for a change; `None` behind the last.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        self.rows.get_mut(id.into())
    }

    /// All rows in the order of their ids.
    pub(crate) fn rows(&self) -> std::slice::Iter<'_, T> {
        self.rows.iter()
    }

    /// All rows in the order of their ids, for a change.
    pub(crate) fn rows_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.rows.iter_mut()
    }

    /// Appends a row and returns its id.
    pub(crate) fn push(&mut self, row: T) -> Id {
        self.rows.push(row);
        Id::from(self.rows.len() - 1)
    }

    /// Removes all rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Removes the last row.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.rows.pop()
    }

    /// Drops rows behind the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.rows.truncate(length);
    }
}

impl<Id: From<usize> + Into<usize>, T: Clone> DenseTable<Id, T> {
    /// Makes the table at least long enough for `id`, with rows of `value`.
    pub(crate) fn reach_with(&mut self, id: Id, value: T) {
        let length = id.into() + 1;
        if self.rows.len() < length {
            self.rows.resize(length, value);
        }
    }
}

impl<Id: From<usize> + Into<usize>, T: Default> DenseTable<Id, T> {
    /// Makes the table at least `length` rows long.
    pub(crate) fn reach(&mut self, length: usize) {
        if self.rows.len() < length {
            self.rows.resize_with(length, T::default);
        }
    }

    /// The row of an id, after the table was made long enough for it.
    pub(crate) fn entry(&mut self, id: Id) -> &mut T {
        let index = id.into();
        self.reach(index + 1);
        &mut self.rows[index]
    }
}

impl<Id: From<usize> + Into<usize>, T> DenseTable<Id, Option<T>> {
    /// The object with an id, if there is one.
    #[inline]
    pub(crate) fn find(&self, id: Id) -> Option<&T> {
        self.get(id).and_then(Option::as_ref)
    }
}

impl<Id, T> FromIterator<T> for DenseTable<Id, T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        Self { rows: rows.into_iter().collect(), kind: PhantomData }
    }
}

impl<Id: Into<usize>, T> Index<Id> for DenseTable<Id, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: Id) -> &T {
        &self.rows[id.into()]
    }
}

impl<Id: Into<usize>, T> IndexMut<Id> for DenseTable<Id, T> {
    #[inline]
    fn index_mut(&mut self, id: Id) -> &mut T {
        &mut self.rows[id.into()]
    }
}
