//! Replays recorded answers of the real API against ours.
//!
//! A case is a request with what upstream's API server, CRDs and webhooks answered. It is sent to the API under test, the
//! answer is normalised as the recording was, and compared in levels: accepted or not, code and reason, fields, objects,
//! words.

mod case;
mod compare;
mod exceptions;
mod normalise;
mod operators;
mod report;
mod run;
mod served;
mod traces;

pub use case::{Case, Config, RecordedCases, load};
pub use operators::run_operators;
pub use report::{CutCase, ReplayReport};
pub use run::{ReplayTarget, run};
pub use served::until_served;
pub use traces::{ReplayClusters, TraceCase, TraceSettings, listed_cuts, run_traces};

/// Kinds whose cases can be replayed; the others are jobs that we have no webhooks for yet.
pub const SERVED_KINDS: [&str; 17] = [
    "AdmissionCheck",
    "ClusterQueue",
    "Cohort",
    "Deployment",
    "Discovery",
    "Job",
    "LocalQueue",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "Pod",
    "ProvisioningRequestConfig",
    "ReplicaSet",
    "ResourceFlavor",
    "StatefulSet",
    "Topology",
    "Workload",
    "WorkloadPriorityClass",
];
