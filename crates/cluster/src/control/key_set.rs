//! A set of keys, in their order.
//!
//! The maps from one object to those that belong to it have an entry per object, and nearly all of these sets have one member. A
//! `BTreeSet` takes the room of eleven for it, some 400 bytes.

use std::{collections::BTreeSet, fmt};

/// A set of keys, in their order.
pub(crate) struct KeySet<K>(KeyMembers<K>);

enum KeyMembers<K> {
    Few(Option<K>),
    Many(BTreeSet<K>),
}

impl<K> Default for KeySet<K> {
    fn default() -> Self {
        Self(KeyMembers::Few(None))
    }
}

impl<K: fmt::Debug> fmt::Debug for KeySet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<K> KeySet<K> {
    /// Its members, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &K> {
        self.into_iter()
    }

    /// The number of members.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            KeyMembers::Few(one) => usize::from(one.is_some()),
            KeyMembers::Many(all) => all.len(),
        }
    }

    /// Whether it has no member.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Ord> KeySet<K> {
    /// Adds a member. Returns whether it is new.
    pub(crate) fn insert(&mut self, key: K) -> bool {
        match &mut self.0 {
            KeyMembers::Few(Some(one)) if *one == key => false,
            KeyMembers::Few(one) => {
                match one.take() {
                    None => *one = Some(key),
                    Some(first) => self.0 = KeyMembers::Many([first, key].into()),
                }
                true
            }
            KeyMembers::Many(all) => all.insert(key),
        }
    }

    /// Removes a member. Returns whether it was one.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        match &mut self.0 {
            KeyMembers::Few(one) => one.take_if(|one| one == key).is_some(),
            KeyMembers::Many(all) => all.remove(key),
        }
    }
}

impl<'a, K> IntoIterator for &'a KeySet<K> {
    type Item = &'a K;
    type IntoIter = Iter<'a, K>;

    fn into_iter(self) -> Iter<'a, K> {
        let (few, many) = match &self.0 {
            KeyMembers::Few(one) => (one.as_ref(), None),
            KeyMembers::Many(all) => (None, Some(all)),
        };
        few.into_iter().chain(many.into_iter().flatten())
    }
}

type Iter<'a, K> = std::iter::Chain<
    std::option::IntoIter<&'a K>,
    std::iter::Flatten<std::option::IntoIter<&'a BTreeSet<K>>>,
>;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// It is a `BTreeSet` by all that can be asked.
        #[test]
        fn it_has_the_members_of_an_ordered_set(changes in prop::collection::vec((any::<bool>(), 0..4_u8), 0..24)) {
            let (mut set, mut model) = (KeySet::default(), BTreeSet::new());
            for (inserts, key) in changes {
                if inserts { prop_assert_eq!(set.insert(key), model.insert(key)) } else { prop_assert_eq!(set.remove(&key), model.remove(&key)) }
                prop_assert!(set.iter().eq(&model));
                prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }

    #[test]
    fn a_member_has_the_room_of_its_key() {
        assert_eq!(size_of::<KeySet<[usize; 4]>>(), size_of::<[usize; 5]>());
    }
}
