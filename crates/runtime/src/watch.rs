//! Watches that handle re-lists, undecodable objects and lost events.
//!
//! * A re-list is a [`Change::Reset`] with explicit removals: it names every object that was deleted in the meantime, and
//!   does not repeat objects that did not change.
//! * An object that does not decode is skipped, counted and logged; the watch goes on. The consumer keeps the last version
//!   that decoded, until a newer one decodes or the object is deleted.
//! * `managedFields` are removed.
//! * Failures are retried with exponential backoff. A stream that cannot be resumed is restarted with a list.
//! * An API server may lose an event. [`Watch::check_every`] lists names and versions periodically and restarts the stream
//!   if a change was not delivered.
//!
//! `known_objects` decides what an event means, `backoff` when to retry, `missed_events` what was lost, and `consistency`
//! lists; [`Watch`] is the task.

mod backoff;
mod consistency;
mod key;
mod known_objects;
mod metrics;
mod missed_events;
mod task;
#[cfg(test)]
mod tests;

pub use key::Key;
pub use kube::{core::DeserializeGuard as Guarded, runtime::watcher::Config};
pub use metrics::WatchMetrics;
pub use task::{Watch, WatchEnd};

/// A change of the objects of a watch. Changes of one object arrive in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<K> {
    /// The object is new or changed.
    Apply(K),
    /// The object was deleted.
    Delete(Key),
    /// All objects were listed. The first `Reset` completes the initial list.
    Reset {
        /// Objects that are new or changed since the last change that was sent.
        objects: Vec<K>,
        /// Objects that were deleted since they were last sent.
        removed: Vec<Key>,
    },
}
