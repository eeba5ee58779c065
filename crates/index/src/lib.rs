//! API objects as inputs of the engine and of dispatch, and decisions as status.
//!
//! * [`Index`] takes objects in: one method per kind, each answering with the engine's events. It keeps what later
//!   objects are read against (flavors, checks, LimitRanges) and answers questions about queues.
//! * [`status`] takes decisions out: each transition of a Workload is a function from one status to the next.
//! * [`tally`] counts what queues show of themselves, [`report`] reads what a worker says of itself.
//!
//! Strings and options end here: what leaves for the engine is ids and integers. Nothing here reads a clock, waits or
//! writes, and no hash order decides an outcome.

mod activity;
mod affinity;
mod amount;
mod blocker;
mod capacity;
mod checks;
mod cluster_queue;
mod epoch;
mod flavor;
mod given;
mod index;
mod labels;
mod local_queue;
mod namespace;
mod quotas;
mod requests;
mod room;
mod settings;
pub mod status;
pub mod tally;
mod thin;
mod time;
mod workload;

pub use crate::activity::Activity;
pub use crate::capacity::report;
pub use crate::epoch::epoch;
pub use crate::given::{Added, given};
pub use crate::index::Index;
pub use crate::namespace::Affected;
pub use crate::room::{offered, pod_requests, quantity, selects, taints};
pub use crate::settings::{Settings, Strategy, Transformation};
