//! Detects events that an API server did not deliver, by comparing a list with the stream. Pure.
//!
//! The list and the stream are never at the same resourceVersion: an event may be in flight, and the stream may be ahead of
//! the list. So a difference only makes an object *suspect*. An object is suspect if the list has it and the stream delivered
//! no version or an older one, or if the stream delivered a version that is not newer than the list, and the list lacks it.
//! If the stream delivers nothing about the object within the grace period, an event was lost. After a restore from a backup the list is
//! older than what the stream had delivered before the list was requested: the newest object of that time is suspect then.
//!
//! resourceVersions of a kind must be increasing numbers. Objects with other versions are never suspect.

use std::collections::BTreeMap;

use super::Key;

/// Names and versions of all objects in one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectVersions {
    pub(super) version: u64,
    pub(super) objects: BTreeMap<Key, u64>,
}

/// Suspect objects, with the version that the stream had delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Suspects(BTreeMap<Key, Option<u64>>);

impl Suspects {
    /// Compares a list with the versions that the stream `delivered`. `deleted` is true for objects whose deletion
    /// the stream delivered after the list was requested.
    pub(super) fn of<'a>(
        listed: &ObjectVersions,
        delivered: impl Fn(&Key) -> Option<u64>,
        all_delivered: impl Iterator<Item = (&'a Key, u64)>,
        deleted: impl Fn(&Key) -> bool,
    ) -> Self {
        let older = listed.objects.iter().filter_map(|(key, version)| {
            let delivered = delivered(key);
            // After a deletion the stream rightly has no version of a listed object.
            let behind = delivered.is_none_or(|delivered| delivered < *version) && !deleted(key);
            behind.then(|| (key.clone(), delivered))
        });
        let absent = all_delivered.filter_map(|(key, delivered)| {
            // A version above that of the list may belong to an object that was created after it.
            let missing = delivered <= listed.version && !listed.objects.contains_key(key);
            missing.then(|| (key.clone(), Some(delivered)))
        });
        Self(older.chain(absent).collect())
    }

    /// Adds an object of which the stream had delivered this version.
    pub(super) fn add(&mut self, key: Key, delivered: u64) {
        self.0.insert(key, Some(delivered));
    }

    /// The first suspect about which the stream delivered nothing since.
    pub(super) fn lost(&self, delivered: impl Fn(&Key) -> Option<u64>) -> Option<&Key> {
        // Any later version, or a deletion, shows that the stream still delivers.
        self.0.iter().find(|(key, before)| delivered(key) == **before).map(|(key, _)| key)
    }
}

/// A resourceVersion as a number; none if it is not a number.
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

    fn suspects(listed: &str, delivered: &str, deleted: &str) -> Suspects {
        let (delivered, deleted) = (versions(delivered), versions(deleted));
        let listed = ObjectVersions { version: 50, objects: versions(listed) };
        let all = delivered.iter().map(|(key, version)| (key, *version));
        Suspects::of(
            &listed,
            |key| delivered.get(key).copied(),
            all,
            |key| deleted.contains_key(key),
        )
    }

    #[test]
    fn a_difference_that_events_in_flight_do_not_explain_is_suspect() {
        for (listed, delivered, deleted, expected) in [
            ("a@7 b@8", "a@7 b@8", "", None),
            ("a@7", "", "", Some("a")),
            ("a@7", "a@6", "", Some("a")),
            // The stream is ahead of the list.
            ("a@7", "a@60", "", None),
            ("a@7", "", "a@9", None),
            ("", "a@51", "", None),
            // The stream lost the deletion.
            ("", "a@50", "", Some("a")),
        ] {
            let delivered_versions = versions(delivered);
            let lost = suspects(listed, delivered, deleted);
            let lost = lost.lost(|key| delivered_versions.get(key).copied()).map(|key| &*key.name);
            assert_eq!(lost, expected, "{listed:?} {delivered:?} {deleted:?}");
        }
    }

    #[test]
    fn any_later_event_of_an_object_clears_the_suspicion() {
        let suspects = suspects("a@7 b@7", "b@6 c@5", "");
        for (delivered, lost) in [
            ("a@7 b@7", None),
            ("a@9 b@8", None),
            ("b@7", Some("a")),
            ("a@7 b@7 c@5", Some("c")),
            ("a@7 b@6", Some("b")),
        ] {
            let delivered_versions = versions(delivered);
            let found = suspects.lost(|key| delivered_versions.get(key).copied());
            assert_eq!(found.map(|key| &*key.name), lost, "{delivered:?}");
        }
    }
}
