//! Real Kubernetes control planes on loopback, without containers.
//!
//! A *lab* is one manager cluster and any number of worker clusters. Each cluster is an etcd, a kube-apiserver, a
//! kube-controller-manager, a kube-scheduler and a kwok that plays the kubelets. The programs are built from the Go
//! module in this same folder, or taken from `KUBEBUILDER_ASSETS`.
//!
//! ```text
//! up ──writes──> lab.json ──read by──> supervisor ──starts──> tether ──becomes──> etcd, kube-apiserver, …
//!  └──────────────waits for "ready"──────┘  │
//!                                           └── answers on control.sock: restart, run, down
//! ```
//!
//! Invariants:
//! * Nothing outlives its owner. Every child dies with the supervisor, whatever kills it ([`tether`]); a lab started by
//!   a test dies with the test's process ([`up::LabOwner`]).
//! * A process is a pid together with its start time ([`identity`]). No signal goes to a recycled pid.
//! * Everything a lab owns lies below its directory, so removing the directory removes the lab ([`leftovers`]).

pub mod binaries;
pub mod certs;
pub mod component;
pub mod control;
pub mod control_plane;
pub mod faults;
pub mod identity;
pub mod kubeconfig;
pub mod leftovers;
pub mod logs;
pub mod nodes;
pub mod ports;
pub mod real_nodes;
pub mod root;
pub mod stages;
pub mod state;
pub mod supervisor;
pub mod tether;
pub mod up;

pub use component::Component;
pub use identity::ProcessId;
pub use nodes::NodeSpec;
pub use root::StateRoot;
pub use state::{ClusterState, LabState, Phase};
