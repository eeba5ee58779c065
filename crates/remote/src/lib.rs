//! Connections of the manager to worker clusters (docs/reference/multikueue.md §1.2, §2.8, §2.9).
//!
//! | module | concept |
//! |---|---|
//! | `kubeconfig` | validates a kubeconfig, pure |
//! | `kubeconfig_file`, `file_watch` | kubeconfigs in files, and their changes |
//! | `file_read_limits` | how many files are read at a time |
//! | `cluster_profile` | kubeconfigs from ClusterProfiles and credential plugins |
//! | `reconcile` | what the supervisor does for a worker, pure |
//! | `retry`, `failed_load` | when a connection is retried, and the status meanwhile; what follows without a kubeconfig, pure |
//! | `cluster_uid` | which cluster a connection leads to, and whether it may be used |
//! | `confirmed_lists` | a list counts only if it came from that cluster |
//! | `client`, `response_limit`, `response_deadline` | the client of a worker |
//! | `replaceable_client` | replacing the credentials of a client in use |
//! | `worker` | the task of one worker: loads, probes, connects |
//! | [`supervisor`] | one `worker` task per worker that is wanted |
//! | `worker_clients` | clients for requests of users, apart from the connections |
//! | `load_kubeconfig`, `kubeconfig_secret`, `kubeconfig_refused` | where a kubeconfig is read from; why one is refused |
//! | `context`, `object_store` | what all connections share; the objects of one kind by name |
//!
//! Invariants: only a worker's own task waits for that worker. Credentials are never logged or reported, and are compared by
//! hash only. The status of a connection is reported before anything that depends on it, and nothing of a lost connection is
//! reported after its loss.

mod client;
mod cluster_profile;
mod cluster_uid;
mod confirmed_lists;
mod connection;
mod context;
mod failed_load;
mod file_read_limits;
mod file_watch;
mod kubeconfig;
mod kubeconfig_file;
mod kubeconfig_refused;
mod kubeconfig_secret;
mod load_kubeconfig;
mod object_store;
mod reconcile;
mod replaceable_client;
mod response_deadline;
mod response_limit;
mod retry;
mod supervisor;
#[cfg(test)]
mod tests;
mod worker;
mod worker_clients;

pub use self::{
    client::with_deadlines,
    cluster_profile::{ClusterProfileObject, ClusterProfiles},
    context::{ConnectionSettings, ConnectionTiming, WorkerContext},
    kubeconfig_file::{KUBECONFIG_DIRECTORY, KubeconfigDirectory},
    kubeconfig_secret::{KubeconfigSecret, kubeconfig_secrets},
    supervisor::supervise,
    worker_clients::{WorkerClients, WorkerUnavailable},
};
