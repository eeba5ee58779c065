//! Guarded watches: what a kind's objects are, and how they change, without the traps of a bare watch.
//!
//! * A re-list is a [`Change::Reset`] with explicit removals: an object that vanished while nobody looked is named. Objects
//!   that are as they were are not sent again.
//! * An object that does not decode is skipped, counted and named; all others go on. What was known of it before stands
//!   until it decodes again or is deleted.
//! * `managedFields` are removed before anything is kept.
//! * Failures are followed by growing pauses. A stream that cannot be continued is begun anew with a list.
//!
//! * An event that a server forgot is found out by whoever asks for that: what is there is looked at now and then.
//!
//! `book` decides what an event means and `pace` when to try again, `doubt` what was lost; [`Watch`] does it.

mod book;
mod doubt;
mod key;
mod look;
mod metrics;
mod pace;
mod task;
#[cfg(test)]
mod tests;

pub use key::Key;
pub use kube::{core::DeserializeGuard as Guarded, runtime::watcher::Config};
pub use metrics::WatchMetrics;
pub use task::{Watch, WatchEnd};

/// What happened to the objects of a watch. Changes of one object come in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<K> {
    /// The object is new, or another than before.
    Apply(K),
    /// The object is gone.
    Delete(Key),
    /// All objects were listed. The first one says that the picture is complete.
    Reset {
        /// Those that are new, or others than before.
        objects: Vec<K>,
        /// Those that went since they were last sent.
        removed: Vec<Key>,
    },
}
