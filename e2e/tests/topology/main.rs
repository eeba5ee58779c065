//! Topology-aware scheduling on a control plane: nodes of blocks and racks, Kubernetes' own scheduler, and pods without a kubelet.
//!
//! | module | scenarios |
//! |---|---|
//! | `placement` | which nodes the pods of Jobs and groups get |
//! | `usage` | pods of others, and a manager that starts again |
//! | `node_failures` | pods move from a failed node |
//! | `task_samples` | the samples of `docs/tasks`, of which one has a topology |

mod fixture;
mod node_failures;
mod placement;
mod task_samples;
mod usage;
