//! Changes of the objects of a watch.

use std::sync::Arc;

use super::{Key, Unavailable};

/// A change of objects of kind `K`, which are shared.
pub type Change<K> = WatchChange<Arc<K>>;

/// A change of the objects of a watch. Changes of one object arrive in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchChange<T> {
    /// The object is new or changed.
    Apply(T),
    /// The object was deleted.
    Delete(Key),
    /// All objects were listed. The first `Reset` completes the initial list.
    Reset {
        /// Objects that are new or changed since the last change that was sent.
        objects: Vec<T>,
        /// Objects that were deleted since they were last sent.
        removed: Vec<Key>,
    },
    /// The objects of an optional kind cannot be observed. Sent once per transition; a `Reset` follows when they can be
    /// again. Consumers that wait for the first list need not wait any longer.
    Unavailable {
        /// Why.
        reason: Unavailable,
        /// Objects that do not exist any more, because their kind is not served.
        removed: Vec<Key>,
    },
}

impl<T> WatchChange<T> {
    /// Whether everything that can be observed was: the change is a list, or there is nothing to list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self, Self::Reset { .. } | Self::Unavailable { .. })
    }

    /// This change, of converted objects.
    #[must_use]
    pub fn map<U>(self, mut convert: impl FnMut(T) -> U) -> WatchChange<U> {
        match self {
            Self::Apply(object) => WatchChange::Apply(convert(object)),
            Self::Delete(key) => WatchChange::Delete(key),
            Self::Reset { objects, removed } => {
                WatchChange::Reset { objects: objects.into_iter().map(convert).collect(), removed }
            }
            Self::Unavailable { reason, removed } => WatchChange::Unavailable { reason, removed },
        }
    }
}
