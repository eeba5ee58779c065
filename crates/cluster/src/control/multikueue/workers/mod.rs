//! The worker clusters, and what each of them has.
//!
//! | file | concept |
//! |---|---|
//! | `worker_clusters` | all workers: connections and watches |
//! | `worker`, `copies`, `job_copies`, `naming` | one worker: connection, clones and jobs, which job names which clone |
//! | `refused_writes` | what the API server of a worker has refused, and for how long that counts |
//! | `unregistered` | Events about workers without a MultiKueueCluster |

pub(super) mod copies;
pub(super) mod job_copies;
pub(super) mod naming;
pub(super) mod refused_writes;
pub(super) mod unregistered;
pub(super) mod worker;
pub(super) mod worker_clusters;
