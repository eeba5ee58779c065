//! Pods that are jobs themselves: single pods, and groups of pods with one Workload (docs/reference/kueue.md §7.8, §7.9).
//!
//! A pod has no switch. A new one is held by the scheduling gate `kueue.x-k8s.io/admission`; its start removes the gate, and its
//! stop is its deletion. The finalizer `kueue.x-k8s.io/managed` keeps a finished pod until its Workload has counted it.
//!
//! | file | concept |
//! |---|---|
//! | `pod` | the object, and what a single pod answers as a job |
//! | `role_hash` | which pods of a group are alike |
//! | `template_shape` | changes of what makes pods alike |
//! | `start_and_stop` | gates, additions of an admission, and the mark of a termination |
//! | `defaulting`, `validate` | the rules of the webhooks |
//! | `group` | a group of pods: its Workload, and what each member needs |

pub mod defaulting;
pub mod group;
pub mod pod;
pub mod role_hash;
mod start_and_stop;
pub(crate) mod template_shape;
mod validate;

pub use pod::{Pod, kind};
pub use start_and_stop::{gates, ungate};
