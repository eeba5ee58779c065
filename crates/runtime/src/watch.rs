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
//! * A kind may be [optional](Watch::optional): while a cluster does not serve it, or forbids it, the watch says so with
//!   [`Change::Unavailable`] and tries again. That it is not served is what discovery says; a 404 alone is a failure like any other.
//!
//! Objects of every kind travel as [`ApiObject`](crate::api_object::ApiObject) and are decoded once, by a function. So `task`
//! is compiled once, and a kind may be known at run time only.
//!
//! Changes go to a channel, or into a [`Store`] that several tasks subscribe to.
//!
//! `known_objects` decides what an event means, `backoff` when to retry, `missed_events` what was lost, `availability` what a 404
//! means; `consistency` lists, and `discovery` asks for the kind; [`Watch`] is the task.

mod availability;
mod backoff;
mod change;
mod coalesced_changes;
mod consistency;
mod delivery;
mod discovery;
mod key;
mod known_objects;
mod metrics;
mod missed_events;
mod source;
mod store;
mod stores;
mod task;
#[cfg(test)]
mod tests;
mod typed;

pub use availability::Unavailable;
pub use change::{Change, WatchChange};
pub use key::Key;
pub use kube::{core::ApiResource, runtime::watcher::Config};
pub use metrics::WatchMetrics;
pub use source::WatchSource;
pub use store::{Store, Subscription};
pub use stores::Stores;
pub use task::WatchEnd;
pub use typed::{DecodeFn, KindDecoder, Watch};
