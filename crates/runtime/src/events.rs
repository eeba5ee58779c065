//! Events (`events.k8s.io/v1`), as `kubectl describe` shows them.
//!
//! * [`EventRecord`] is one occurrence. Any component passes it to a [`Recorder`], which never blocks.
//! * `EventCache` is the rule, pure: a record and the time in, the write out. Equal records within ten minutes of each other
//!   are one Event whose `series` counts them. New Events and series updates share fifty writes a second.
//! * [`EventBroadcaster`] is the task that writes: one write at a time, without retries.
//!
//! Invariants: memory and writes are bounded however many records arrive, and an API server that does not answer delays only
//! events. Dropped events are counted ([`EventMetrics`]).
//!
//! Source: docs/reference/kueue.md §6.3 for the length of notes; the other limits are those of the API server.

mod cache;
mod metrics;
mod object;
mod record;
mod recorder;
#[cfg(test)]
mod tests;
mod token_bucket;

pub use metrics::EventMetrics;
pub use object::Reporter;
pub use record::{EventRecord, EventType, Regarding};
pub use recorder::{EventBroadcaster, Recorder, recorder};
