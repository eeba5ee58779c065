//! Dispatch of Workloads to worker clusters: the choice of a cluster and the steps that follow, as pure functions.
//!
//! * [`WorkloadRequest`] holds the requests of a Workload, [`CapacityReport`] the capacity of a cluster.
//! * [`Fleet`] holds all clusters with their placements and chooses among them; [`FleetPlacer`] is the fleet as the engine's placer.
//! * [`workload::decide`] returns the next steps of a Workload that has nominated or recorded clusters, until no copy is left.
//! * [`HubIncarnation`] says which copies come from a history that the hub knows, also after a restore from a backup.
//! * [`UnsettledCreates`] holds the creates that may be applied without the watch showing it.
//! * [`GrantIssuer`] and [`GrantHolder`] are the manager's and the agent's half of the leases under ExactlyOnce.
//! * [`find_orphans`] finds the copies that a worker should not have, [`check_status`] computes the condition of an AdmissionCheck.
//!
//! Nothing here reads a clock, waits or writes (docs/reference/dispatch.md).

mod admission_check;
mod assigned_workload;
mod capacity_report;
mod checkpoint;
mod cluster_choice;
mod cluster_race;
mod cluster_rank;
mod companions;
mod dispatcher;
mod exclusions;
mod fleet;
mod fleet_placer;
mod free_capacity;
mod gang_reservation;
mod incarnation;
mod lease;
mod local_cluster;
mod local_nodes;
mod node_class_reduction;
mod node_packing;
mod orphan_cleanup;
mod pending_placements;
mod placement_message;
mod policy;
mod preemption;
mod queue_order;
mod rebalance;
mod refusal;
mod released_capacity;
mod reported_quota;
mod request;
mod run_times;
mod slice_extension;
mod unreported_clusters;
mod unsettled_creates;
mod worker_cluster;
pub mod workload;

pub use admission_check::{CheckStatus, ClusterAvailability, bad_config, check_status};
pub use assigned_workload::{AssignedPodSet, AssignedWorkload};
pub use capacity_report::{
    CapacityReport, NodeClassCapacity, PROTOCOL, WorkerMode, unserved_protocol,
};
pub use checkpoint::CheckpointCluster;
pub use cluster_choice::PlacementRequest;
pub use cluster_race::{ClusterRace, Nominated, ROUND};
pub use dispatcher::{Dispatcher, IncrementalSteps};
pub use exclusions::ExclusionCause;
pub use fleet::Fleet;
pub use fleet_placer::{DispatchLookup, DispatchedEntry, FleetPlacer, RefusedFlavors};
pub use free_capacity::{RemainingNodes, free_capacity};
pub use gang_reservation::CapacityReservation;
pub use incarnation::{
    AcceptedIncarnation, CopyHistory, CopyStamp, HubIncarnation, PresentWorkload, SharedHistory,
};
pub use lease::{
    AgentBeat, CopyVerdict, FENCE_MARGIN, FenceRecord, Fencing, GrantHolder, GrantIssuer,
    GrantTiming, HubGrant, IssuerStep, LeaseStamp, LeasedCopy, STOP_TIME, WorkerLeases,
};
pub use local_nodes::{LocalNode, NodeUsage};
pub use node_class_reduction::{join_equal_classes, reduce_classes};
pub use orphan_cleanup::{HubWorkload, ListedCopy, OrphanScan, find_orphans};
pub use placement_message::{placement_message, refusals_message};
pub use policy::{
    ClusterPreference, GangReservationPolicy, LeasePolicy, ONE_COST, ONE_WEIGHT, PlacementConfig,
    PlacementPolicy, PlacementStrategy,
};
pub use queue_order::QueueOrder;
pub use rebalance::{QueuedWorkload, RebalancePolicy, StayReason};
pub use refusal::{CapacityShortage, ClusterRefusal, PlacementRefusal, ShortageCause};
pub use request::{JobGvk, RequestedPodSet, WorkloadRequest};
pub use run_times::{RunTime, RunTimeGroup};
pub use slice_extension::SliceExtension;
pub use unreported_clusters::UNREPORTED_WINDOW;
pub use unsettled_creates::{CreateAnswer, ReadAnswer, UnsettledCreates};
