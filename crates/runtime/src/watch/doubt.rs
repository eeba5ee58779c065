//! Whether a watch has lost something in silence: what is there, compared with what it told. Pure.
//!
//! A watch is never at the very point of a list that is asked for beside it. What is not told may be on its way, and what
//! was told may be newer. So a difference is a doubt first: an object that the list shows and the watch did not tell of, or
//! only in an older state; or one that was told, is no newer than the list, and is not in it. If nothing at all is told of
//! such an object in the time that an event may take, the event was lost.
//!
//! It stands on resourceVersions of one kind being numbers that grow; of those that are none, nothing is doubted.

use std::collections::BTreeMap;

use super::Key;

/// All objects at one moment, by name and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) version: u64,
    pub(super) objects: BTreeMap<Key, u64>,
}

/// Objects that differ, with what was told of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubts(BTreeMap<Key, Option<u64>>);

impl Doubts {
    /// Compares a list with everything that was `told`, by name and version; `gone` says what was told to be gone since
    /// the list was asked for.
    pub(super) fn of<'a>(
        seen: &Seen,
        told: impl Fn(&Key) -> Option<u64>,
        all_told: impl Iterator<Item = (&'a Key, u64)>,
        gone: impl Fn(&Key) -> bool,
    ) -> Self {
        let older = seen.objects.iter().filter_map(|(key, version)| {
            let told = told(key);
            let behind = told.is_none_or(|told| told < *version) && !gone(key);
            behind.then(|| (key.clone(), told))
        });
        let absent = all_told.filter_map(|(key, told)| {
            let missing = told <= seen.version && !seen.objects.contains_key(key);
            missing.then(|| (key.clone(), Some(told)))
        });
        Self(older.chain(absent).collect())
    }

    /// The first object of which nothing was told since.
    pub(super) fn lost(&self, told: impl Fn(&Key) -> Option<u64>) -> Option<&Key> {
        self.0.iter().find(|(key, before)| told(key) == **before).map(|(key, _)| key)
    }
}

/// A resourceVersion as a number.
pub(super) fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(text: &str) -> BTreeMap<Key, u64> {
        let pair = |pair: &str| {
            let (name, version) = pair.split_once('@')?;
            Some((Key { namespace: None, name: name.into() }, number(version)?))
        };
        text.split_whitespace().map(|one| pair(one).expect("name@version")).collect()
    }

    fn doubts(seen: &str, told: &str, gone: &str) -> Doubts {
        let (told, gone) = (versions(told), versions(gone));
        let seen = Seen { version: 50, objects: versions(seen) };
        let all = told.iter().map(|(key, version)| (key, *version));
        Doubts::of(&seen, |key| told.get(key).copied(), all, |key| gone.contains_key(key))
    }

    #[test]
    fn what_differs_and_is_not_explained_by_the_time_between_is_doubted() {
        for (seen, told, gone, doubted) in [
            ("a@7 b@8", "a@7 b@8", "", None),
            ("a@7", "", "", Some("a")),
            ("a@7", "a@6", "", Some("a")),
            // The list is behind the watch.
            ("a@7", "a@60", "", None),
            ("a@7", "", "a@9", None),
            ("", "a@51", "", None),
            // The watch told of it, and did not tell of its end.
            ("", "a@50", "", Some("a")),
        ] {
            let told_of = versions(told);
            let lost = doubts(seen, told, gone);
            let lost = lost.lost(|key| told_of.get(key).copied()).map(|key| &*key.name);
            assert_eq!(lost, doubted, "{seen:?} {told:?} {gone:?}");
        }
    }

    #[test]
    fn whatever_is_told_of_an_object_ends_the_doubt() {
        let doubts = doubts("a@7 b@7", "b@6 c@5", "");
        for (told, lost) in [
            ("a@7 b@7", None),
            ("a@9 b@8", None),
            ("b@7", Some("a")),
            ("a@7 b@7 c@5", Some("c")),
            ("a@7 b@6", Some("b")),
        ] {
            let told_of = versions(told);
            let found = doubts.lost(|key| told_of.get(key).copied());
            assert_eq!(found.map(|key| &*key.name), lost, "{told:?}");
        }
    }
}
