//! The scheduling core: Kueue's semantics as a pure function of events.
//!
//! [`Engine::apply`] updates the tables and notes which inadmissible Workloads a change may help. A cycle
//! ([`Engine::begin`], [`CycleInProgress::advance`]) decides about the head of every ClusterQueue. There is no IO, no
//! clock and no hash order in a decision: the same events give the same decisions. Source: docs/reference/kueue.md
//! §3-4.
//!
//! The state has four layers that own their data: quota (cohort tree, usage, flavors), workloads (records, equivalence
//! classes), topology (nodes, domain trees) and queues (ClusterQueues, LocalQueues, pending Workloads). Other files read
//! a layer and change it through its methods; a lower layer never knows a higher one (`state.rs`). On top of the layers
//! stand flavor assignment, preemption and the cycle. README.md has the map of files.
//!
//! Simulations run on the live tables: changes of usage are journalled and rewound, nothing is copied.

mod admission_fair_sharing;
mod amount;
mod apply;
mod checks;
mod cohort_view;
mod cycle;
mod debug_dump;
mod dense_table;
mod engine;
mod event;
pub mod explain;
mod flavors;
pub mod ids;
mod names;
pub mod node_selection;
mod pending;
mod placer;
mod preemption;
mod queues;
mod quota;
mod quota_view;
mod reason;
mod reservations;
mod row_undo;
mod second_pass;
mod settings;
mod slice_changes;
mod slices;
pub mod spec;
mod state;
mod time;
pub mod topology;
mod variants;
mod view;
mod what_if;
mod workloads;

pub use crate::admission_fair_sharing::{AdmissionFairSharingSettings, FairSharingUsage};
pub use crate::amount::{Amount, NanoAmount};
pub use crate::cycle::entry::{CycleEntry, CycleOutcome, RequeueDestination};
pub use crate::engine::{CycleInProgress, Engine};
pub use crate::event::Event;
pub use crate::flavors::assignment::{
    Assignment, FlavorAssignment, FlavorAssignmentMode, PodSetFlavorAssignment,
};
pub use crate::ids::RequeueKey;
pub use crate::names::{Interner, Names};
pub use crate::placer::{AcceptAll, Placer};
pub use crate::preemption::target::PreemptionTarget;
pub use crate::quota_view::QueueQuota;
pub use crate::reason::{NoFitReason, PendingReason, PreemptionReason};
pub use crate::second_pass::SecondPass;
pub use crate::settings::{EngineSettings, FairStrategy};
pub use crate::time::Time;
pub use crate::view::AssignedTopology;
pub use crate::what_if::WhatIf;
