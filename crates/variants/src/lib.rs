//! Concurrent admission, pure: which variants a Workload has, which of them compete, and what their parent shows
//! (docs/reference/kueue.md §4.13).
//!
//! In a ClusterQueue with a `concurrentAdmissionPolicy` the Workload of a job is a parent: it is in no queue. Each of its variants is a
//! Workload that tries one flavor. The parent shows the admission of the variant that is admitted, and its job runs with that. Nothing is
//! remembered: each decision reads the parent and the variants that exist.
//!
//! | module | concept |
//! |---|---|
//! | [`family`] | a parent with its variants, as they were observed |
//! | [`decide`](mod@decide) | everything that follows for a family |
//! | [`membership`] | variants that are missing, and those without a use |
//! | [`activation`] | which variants compete |
//! | [`preemption_gate`] | which variant may preempt, and when |

pub mod activation;
pub mod decide;
pub mod family;
pub mod membership;
pub mod preemption_gate;

pub use decide::{FamilyDecision, ParentTransition, VariantAdmission, VariantStep, decide};
pub use family::{FamilyRules, Variant, VariantFamily};
