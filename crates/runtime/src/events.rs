//! Events (`events.k8s.io/v1`): what people read below `kubectl describe`.
//!
//! * [`EventRecord`] is what happened to an object, told through a [`Recorder`] from anywhere. Telling never waits.
//! * `Book` is the rule, pure: news and the time in, what to write out. Equal news within ten minutes of each other are one
//!   Event whose `series` counts them. New Events and changes of series share fifty writes a second.
//! * [`Events`] is the task that writes: one write at a time, never twice, and what fails is not tried again.
//!
//! What must stay true: events cost a bounded amount of memory and a bounded number of writes, whatever is told, and an API
//! server that does not answer holds up nothing but events. What is lost is counted ([`EventMetrics`]).
//!
//! Source: docs/reference/kueue.md §6.3 for the length of notes; the rest are the rules of the API server.

mod book;
mod bucket;
mod metrics;
mod object;
mod record;
mod recorder;
#[cfg(test)]
mod tests;

pub use metrics::EventMetrics;
pub use object::Reporter;
pub use record::{EventRecord, EventType, Regarding};
pub use recorder::{Events, Recorder, recorder};
