//! Which cluster runs a Workload, and what follows from that, decided without doing.
//!
//! * [`WorkloadRequest`] is what a Workload asks of a cluster, [`CapacityReport`] what a cluster can take.
//! * [`Fleet`] knows all clusters and what was placed on them, and chooses; [`FleetPlacer`] is the fleet as the engine's placer.
//! * [`life::decide`] says what to do next for a Workload that has a cluster, until nothing of it is left anywhere.
//! * [`orphans()`] finds what a worker should not have, [`check_status()`] what to say of an AdmissionCheck.
//!
//! Nothing here reads a clock, waits or writes (docs/reference/dispatch.md).

mod admission_check;
mod assigned_workload;
mod capacity_report;
mod cluster_choice;
mod fleet;
mod fleet_placer;
mod free_capacity;
mod gang_reservation;
mod node_packing;
mod orphan_cleanup;
mod pending_placements;
mod placement_message;
mod policy;
mod queue_order;
mod refusal;
mod released_capacity;
mod request;
mod worker_cluster;
pub mod workload;

pub use admission_check::{CheckStatus, ClusterAvailability, bad_config, check_status};
pub use assigned_workload::{AssignedPodSet, AssignedWorkload};
pub use capacity_report::{CapacityReport, NodeClassCapacity, WorkerMode};
pub use cluster_choice::PlacementRequest;
pub use fleet::Fleet;
pub use fleet_placer::{DispatchLookup, DispatchedEntry, FleetPlacer};
pub use free_capacity::free_capacity;
pub use gang_reservation::CapacityReservation;
pub use orphan_cleanup::{ListedCopy, OrphanScan, find_orphans};
pub use placement_message::placement_message;
pub use policy::{
    ClusterPreference, DispatchConfig, GangReservationPolicy, PlacementPolicy, PlacementStrategy,
};
pub use queue_order::QueueOrder;
pub use refusal::{CapacityShortage, ClusterRefusal, PlacementRefusal, ShortageCause};
pub use request::{JobGvk, RequestedPodSet, WorkloadRequest};
