//! LeaderWorkerSet: a set of replicas, each of which is a group of pods with a leader (docs/reference/kueue.md §7.8).
//!
//! | file | concept |
//! |---|---|
//! | `set` | the object, and what it answers as a job |
//! | `members` | what makes a pod of the set a member of the group of its replica |
//! | `defaulting`, `validate` | the rules of the webhooks |

mod defaulting;
mod members;
mod set;
mod validate;

pub use set::{LeaderWorkerSet, kind};
