//! Renders decisions as text: condition reasons and messages as upstream writes them, and explanations of our own.
//!
//! * [`condition_message`](mod@condition_message) renders a cycle entry in upstream's words, which users search logs
//!   and dashboards for.
//! * [`considered_flavors`](fn@considered_flavors) names the flavors that did not simply fit a Workload that got quota.
//! * [`pending_explanation`] collects why a Workload is pending as values ([`explanation`]);
//!   [`explanation_text`](mod@explanation_text) renders them: per flavor what is missing, which queues use it, and
//!   what would help.
//! * [`admission_explanation`] adds the smallest changes that would make the Workload admissible, found by what-ifs
//!   ([`change_search`]); [`admission_text`](mod@admission_text) renders both as one line.
//!
//! Everything is a pure function of the engine's state, runs only on request, and leaves no trace. Source: docs/reference/kueue.md
//! §4.12.

mod admission_explanation;
mod admission_text;
mod change_search;
mod condition_message;
mod considered_flavors;
pub(crate) mod explanation;
mod explanation_text;
mod pending_explanation;
pub mod quantity;
mod quota_shortage;
mod short_flavors;
mod topology_text;

pub use crate::cycle::alone::Admissibility;
pub use admission_explanation::{
    AdmissionExplanation, FlavorAmount, SufficientChange, WorkloadEnd,
};
pub use admission_text::admission_text;
pub use condition_message::{condition_message, condition_reason, reason_messages};
pub use considered_flavors::considered_flavors;
pub use explanation::{
    FlavorExplanation, PendingExplanation, PodSetExplanation, QueueInactiveReason, QueueingStatus,
    TopologyExplanation,
};
pub use explanation_text::explanation_text;
pub use quota_shortage::{QueueUsage, QuotaRemedy, QuotaShortage};

pub use crate::topology::{
    FittingCount, LimitingResource, NodeMismatch, PlacementRemedy, PlacementShortfall,
    TopologyUsage,
};
