//! A map in the order of its keys, for many types of values.
//!
//! The compiler makes the code of a `BTreeMap` for each pair of key and value, which is ten thousand lines of LLVM IR; half of this
//! crate was that. Here the ordered part holds a position and is made once per type of key; values stand in a slab.
//!
//! Iteration follows the keys, so that no order depends on the past. A mutable pass is internal ([`KeyMap::for_each_mut`]).

use std::{
    borrow::Borrow,
    collections::{BTreeMap, btree_map},
    fmt,
    ops::Index,
};

use slab::Slab;

use super::key_set::KeySet;

/// A map in the order of its keys.
pub(crate) struct KeyMap<K, V> {
    positions: BTreeMap<K, usize>,
    values: Slab<V>,
}

impl<K, V> Default for KeyMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for KeyMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord, V> KeyMap<K, V> {
    /// The value of a key.
    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.values.get(*self.positions.get(key)?)
    }

    /// The stored key and its value.
    pub(crate) fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (key, position) = self.positions.get_key_value(key)?;
        Some((key, self.values.get(*position)?))
    }

    /// The value of a key, to change it.
    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.values.get_mut(*self.positions.get(key)?)
    }

    /// Whether the key has a value.
    pub(crate) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.positions.contains_key(key)
    }

    /// Sets a value. Returns the one before.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(present) = self.get_mut(&key) {
            return Some(std::mem::replace(present, value));
        }
        self.positions.insert(key, self.values.insert(value));
        None
    }

    /// Removes a key. Returns its value.
    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let position = self.positions.remove(key)?;
        self.values.try_remove(position)
    }

    /// The value of a key, which may be made.
    pub(crate) fn entry(&mut self, key: K) -> KeyMapEntry<'_, K, V> {
        KeyMapEntry { map: self, key }
    }

    /// Keeps the values for which the function is true.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let Self { positions, values } = self;
        positions.retain(|key, position| {
            let is_kept = keep(key, &mut values[*position]);
            if !is_kept {
                values.remove(*position);
            }
            is_kept
        });
    }
}

impl<K: Ord, M: Ord> KeyMap<K, KeySet<M>> {
    /// Removes a member of the set of a key, and the key with its last member. Returns whether that was the last one.
    pub(crate) fn remove_member<Q: Ord + ?Sized>(&mut self, key: &Q, member: &M) -> bool
    where
        K: Borrow<Q>,
    {
        let Some(members) = self.get_mut(key) else {
            return false;
        };
        members.remove(member);
        let is_empty = members.is_empty();
        if is_empty {
            self.remove(key);
        }
        is_empty
    }
}

impl<K, V> KeyMap<K, V> {
    /// A map without keys.
    pub(crate) fn new() -> Self {
        Self { positions: BTreeMap::new(), values: Slab::new() }
    }

    /// Keys and values in order.
    pub(crate) fn iter(&self) -> KeyMapIter<'_, K, V> {
        KeyMapIter { positions: self.positions.iter(), values: &self.values }
    }

    /// Keys in order.
    pub(crate) fn keys(&self) -> btree_map::Keys<'_, K, usize> {
        self.positions.keys()
    }

    /// Values in the order of their keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Changes every value, in order.
    pub(crate) fn for_each_mut(&mut self, mut change: impl FnMut(&K, &mut V)) {
        for (key, position) in &self.positions {
            change(key, &mut self.values[*position]);
        }
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there are no keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }
}

/// A key, and the map where it may have a value.
pub(crate) struct KeyMapEntry<'a, K, V> {
    map: &'a mut KeyMap<K, V>,
    key: K,
}

impl<'a, K: Ord, V> KeyMapEntry<'a, K, V> {
    /// The value, which is the default one if there is none.
    pub(crate) fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// The value, which is this one if there is none.
    pub(crate) fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// The value, which is made if there is none.
    pub(crate) fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        let Self { map: KeyMap { positions, values }, key } = self;
        let position = match positions.get(&key) {
            Some(position) => *position,
            None => {
                let position = values.insert(value());
                positions.insert(key, position);
                position
            }
        };
        &mut values[position]
    }
}

/// Keys and values in order.
pub(crate) struct KeyMapIter<'a, K, V> {
    positions: btree_map::Iter<'a, K, usize>,
    values: &'a Slab<V>,
}

impl<K, V> Clone for KeyMapIter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { positions: self.positions.clone(), values: self.values }
    }
}

impl<'a, K, V> Iterator for KeyMapIter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, position) = self.positions.next()?;
        Some((key, &self.values[*position]))
    }
}

impl<'a, K, V> IntoIterator for &'a KeyMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = KeyMapIter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Ord + Borrow<Q>, Q: Ord + ?Sized, V> Index<&Q> for KeyMap<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        &self.values[self.positions[key]]
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for KeyMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(all: I) -> Self {
        let mut map = Self::default();
        all.into_iter().for_each(|(key, value)| drop(map.insert(key, value)));
        map
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// One call: the key, and what is done with it.
    fn apply(map: &mut KeyMap<u8, u32>, model: &mut BTreeMap<u8, u32>, call: (u8, u8, u32)) {
        let (key, what, value) = call;
        match what {
            0 | 1 => assert_eq!(map.insert(key, value), model.insert(key, value)),
            2 => assert_eq!(map.remove(&key), model.remove(&key)),
            3 => assert_eq!(
                map.entry(key).or_insert_with(|| value),
                model.entry(key).or_insert_with(|| value)
            ),
            4 => {
                map.retain(|key, one| *one != value && *key != 3);
                model.retain(|key, one| *one != value && *key != 3);
            }
            5 => {
                map.for_each_mut(|key, one| *one += u32::from(*key));
                model.iter_mut().for_each(|(key, one)| *one += u32::from(*key));
            }
            _ => assert_eq!(map.get_mut(&key), model.get_mut(&key)),
        }
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_map(calls in prop::collection::vec((0_u8..8, 0_u8..7, 0_u32..4), 0..60)) {
            let (mut map, mut model) = (KeyMap::default(), BTreeMap::new());
            for call in calls {
                apply(&mut map, &mut model, call);
                prop_assert!(map.iter().eq(model.iter()));
                prop_assert!(map.keys().eq(model.keys()) && map.values().eq(model.values()));
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                prop_assert!((0..8).all(|key| map.get(&key) == model.get(&key)));
                prop_assert!((0..8).all(|key| map.contains_key(&key) == model.contains_key(&key)));
                prop_assert_eq!(map.values.len(), model.len(), "no value outlives its key");
            }
        }
    }
}
