//! What the pods of an admitted Workload get at a start (docs/reference/kueue.md §7.7).
//!
//! | question | module |
//! |---|---|
//! | Which infos follow from an admission? | [`admitted_infos`] |
//! | What does an info add to a template, and a stop restore? | [`pod_set_info`] |
//! | How are pods bound to assigned hosts? | `node_affinity` |
//! | Which taints do the pods tolerate? | [`pod_tolerations`] |

pub mod admitted_infos;
pub(crate) mod node_affinity;
pub mod pod_set_info;
pub mod pod_tolerations;
