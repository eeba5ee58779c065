//! What CodeFlare's operator adds to a RayCluster: NetworkPolicies, encryption between Ray's nodes, and a way to the dashboard.
//!
//! | module | concept |
//! |---|---|
//! | `config` | what an administrator sets, and what is known of the cluster |
//! | `object_names` | names of the objects |
//! | `mutation`, `pod_additions`, `containers` | what is added to the pods of a RayCluster |
//! | `validation` | what admission refuses |
//! | `network_policies`, `exposure`, `proxy_access`, `authority` | the objects |
//! | `reconcile` | which of them are written, and the end of a cluster |
//!
//! The mutation is the same on a manager cluster and on its workers. A RayCluster that changes on the worker only would no longer
//! match the Workload that was dispatched with it.
//!
//! Source: docs/reference/ray.md §14.

mod authority;
mod config;
mod containers;
mod exposure;
mod mutation;
mod network_policies;
mod object_names;
mod pod_additions;
mod proxy_access;
mod reconcile;
mod secured_cluster;
mod validation;

pub use authority::{AUTHORITY_SUBJECT, authority_data};
pub use config::{
    ClusterPlatform, SecurityConfig, SecurityConfigError, SecurityFacts, SecuritySettings,
};
pub(crate) use exposure::exposure_targets;
pub use mutation::mutate;
pub(crate) use reconcile::{PreparedCluster, prepare, reconcile_security};
pub use validation::validate;
pub(crate) use validation::{INGRESS_REFUSED, enables_ingress};
