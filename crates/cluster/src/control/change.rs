//! Changes that watches report, object by object.

use std::sync::Arc;

use kube::Resource;
use runtime::watch::{Change, Key};

/// Calls `apply` with each object of a change: as it is now, or `None` if it is gone. Removals come first.
pub(crate) fn for_each_object<K: Resource>(
    change: Change<K>,
    mut apply: impl FnMut(Key, Option<Arc<K>>),
) {
    match change {
        Change::Apply(object) => apply(Key::of(&*object), Some(object)),
        Change::Delete(gone) => apply(gone, None),
        Change::Reset { objects, removed } => {
            removed.into_iter().for_each(|gone| apply(gone, None));
            objects.into_iter().for_each(|object| apply(Key::of(&*object), Some(object)));
        }
        Change::Unavailable { removed, .. } => {
            removed.into_iter().for_each(|gone| apply(gone, None));
        }
    }
}
