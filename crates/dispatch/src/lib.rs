//! Which cluster runs a Workload, and what follows from that, decided without doing.
//!
//! * [`Request`] is what a Workload asks of a cluster, [`Report`] what a cluster can take.
//! * [`Fleet`] knows all clusters and what was placed on them, and chooses; [`Placing`] is the fleet as the engine's placer.
//! * [`life::decide`] says what to do next for a Workload that has a cluster, until nothing of it is left anywhere.
//! * [`orphans()`] finds what a worker should not have, [`check_status()`] what to say of an AdmissionCheck.
//!
//! Nothing here reads a clock, waits or writes (docs/reference/dispatch.md).

mod check_status;
mod choose;
mod cluster;
mod credit;
mod fleet;
mod left_over;
pub mod life;
mod orphans;
mod pack;
mod placing;
mod policy;
mod refusal;
mod report;
mod request;
mod reservation;
mod summary;
mod turn;
mod waits;
mod work;

pub use check_status::{CheckStatus, Presence, bad_config, check_status};
pub use choose::Ask;
pub use fleet::Fleet;
pub use left_over::left_over;
pub use orphans::{Listed, Sweep, orphans};
pub use placing::{Asked, Lookup, Placing};
pub use policy::{ClusterPolicy, Config, Keeping, Policy, Strategy};
pub use refusal::{Lack, Misfit, Refusal, Refused};
pub use report::{Mode, NodeClass, Report};
pub use request::{Kind, Pods, Request};
pub use reservation::Reservation;
pub use summary::summary;
pub use turn::Turn;
pub use work::{Given, Work};
