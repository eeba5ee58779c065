//! The copies of a Workload on workers: their creates, changes and deletes, and what is remembered of those.
//!
//! | file | concept |
//! |---|---|
//! | `create_copies`, `worker_writes` | creates and deletes of copies |
//! | `copy_answers`, `sent_copies` | answers to writes of copies, and what was sent |
//! | `copy_sizes`, `push_sizes` | sizes that copies do not have yet |
//! | `copy_stamp` | what a copy carries of the incarnation and the Workload |
//! | `lost_copies` | how often a worker has removed or changed copies |
//! | `held_members` | members of groups that get no copy |
//! | `name_holders`, `name_wait` | copies for other Workloads under the name of a job that is to be created |
//! | `preemption_gates`, `clone_gate` | preemption gates of clones: which a clone is created with, and their opening |

pub(super) mod clone_gate;
pub(super) mod copy_answers;
pub(super) mod copy_sizes;
pub(super) mod copy_stamp;
pub(super) mod create_copies;
pub(super) mod held_members;
pub(super) mod lost_copies;
pub(super) mod name_holders;
pub(super) mod name_wait;
pub(super) mod preemption_gates;
pub(super) mod push_sizes;
pub(super) mod sent_copies;
pub(super) mod worker_writes;
