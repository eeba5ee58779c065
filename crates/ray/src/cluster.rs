//! RayCluster: pods, Services and what belongs to them, from a spec and the objects that exist.
//!
//! | module | concept |
//! |---|---|
//! | `decide` | the order of the steps |
//! | `cluster_children` | the objects around a cluster, sorted once |
//! | `validate`, `validate_groups`, `validate_storage`, `validate_network_policy`, `validate_collector` | what a controller refuses |
//! | `head_pod`, `worker_pod`, `ray_container`, `start_command`, `probes`, `autoscaler`, `workload_slice` | pods |
//! | `groups`, `group_size`, `multi_host`, `duplicate_workers`, `pod_health` | which pods are made and deleted |
//! | `services`, `ingress`, `access`, `network_policy`, `gcs_storage` | other objects |
//! | `named_objects` | which of them are looked up by name |
//! | `suspension`, `redis_cleanup` | removal of pods |
//! | `status`, `conditions`, `resources` | the status |
//!
//! Source: docs/reference/ray.md §3, §5, §6, §7.

mod access;
mod autoscaler;
mod cluster_children;
mod conditions;
mod context;
mod decide;
mod duplicate_workers;
mod failure;
mod gcs_storage;
mod group_size;
mod groups;
mod head_pod;
mod ingress;
mod multi_host;
mod named_objects;
mod network_policy;
mod pod_health;
mod pod_metadata;
mod probes;
mod ray_container;
mod ray_env;
mod redis_cleanup;
mod resources;
mod services;
mod spec_hash;
mod start_command;
mod status;
mod suspension;
mod validate;
mod validate_collector;
mod validate_groups;
mod validate_network_policy;
mod validate_storage;
mod worker_pod;
mod workload_slice;

pub(crate) use conditions::rfc3339;
pub use context::PassInputs;
pub(crate) use context::{ClusterContext, label_value, of_cluster};
pub use decide::decide;
pub use named_objects::{named_objects, reads};
pub(crate) use pod_health::is_running_and_ready;
pub(crate) use probes::version;
pub(crate) use ray_env::token_secret;
pub(crate) use ray_env::{add_token, add_token_volume};
pub(crate) use services::{
    dashboard_address, dashboard_port, head_service as head_service_of, head_service_port,
    select_head, serve_port, serve_ports as serve_ports_of,
};
pub(crate) use spec_hash::recreate_hash;
pub(crate) use status::{no_cluster_status, same_status};
pub(crate) use validate::{
    LONGEST_NAME, check_cluster_spec, check_name, check_no_kubernetes_token,
};
