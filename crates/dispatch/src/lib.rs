//! Which cluster runs a Workload, and what follows from that, decided without doing.
//!
//! * [`Request`] is what a Workload asks of a cluster, [`Report`] what a cluster can take.
//!
//! Nothing here reads a clock, waits or writes (spec/dispatch.md).

mod report;
mod request;

pub use report::{Mode, NodeClass, Report};
pub use request::{Kind, Pods, Request};
