//! Which cluster runs a Workload, and what follows from that, decided without doing.
//!
//! * [`Request`] is what a Workload asks of a cluster, [`Report`] what a cluster can take.
//! * [`Fleet`] knows all clusters and what was placed on them, and chooses; [`Placing`] is the fleet as the engine's placer.
//!
//! Nothing here reads a clock, waits or writes (spec/dispatch.md).

mod choose;
mod cluster;
mod fleet;
mod pack;
mod placing;
mod policy;
mod refusal;
mod report;
mod request;
mod summary;
mod waits;
mod work;

pub use choose::Ask;
pub use fleet::Fleet;
pub use placing::{Lookup, Placing};
pub use policy::{ClusterPolicy, Config, Policy, Strategy};
pub use refusal::{Lack, Misfit, Refusal, Refused};
pub use report::{Mode, NodeClass, Report};
pub use request::{Kind, Pods, Request};
pub use summary::summary;
pub use work::{Given, Work};
