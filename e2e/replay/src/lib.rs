//! Replays recorded answers of the real API against ours.
//!
//! A case is a request with what upstream's API server, CRDs and webhooks answered. It is sent to the API under test, the
//! answer is normalised as the recording was, and compared in levels: accepted or not, code and reason, fields, objects,
//! words.

mod case;
mod compare;
mod exceptions;
mod normalise;
mod report;
mod run;
mod served;

pub use case::{Case, Config, load};
pub use report::Report;
pub use run::{Target, run};
pub use served::until_served;

/// Kinds whose webhooks are Kueue's own; cases of other kinds belong to job integrations.
pub const KUEUE_KINDS: [&str; 12] = [
    "AdmissionCheck",
    "ClusterQueue",
    "Cohort",
    "Discovery",
    "LocalQueue",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "ProvisioningRequestConfig",
    "ResourceFlavor",
    "Topology",
    "Workload",
    "WorkloadPriorityClass",
];
