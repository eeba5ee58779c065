//! Jobs from submission to their end, on the manager's own cluster and on workers, with and without faults.

mod adopted_result;
mod agent_mode;
mod assigned_nodes;
mod broken_workers;
mod cluster_profiles;
mod credentials;
mod cut_off;
mod deleted;
mod elastic;
mod exactly_once;
mod external_dispatcher;
mod external_frameworks;
mod fixture;
mod garbage;
mod growth;
mod hub_account;
mod manager_quota;
mod mixed_workers;
mod no_capacity;
mod own_cluster;
mod pods_ready;
mod queued_moves;
mod queued_workers;
mod race;
mod registered_twice;
mod rights;
mod shared_installation;
mod slices;
mod stranded;
mod takeover;
mod unknown_queue;
mod unregistered;
mod withdrawn;
mod workers;

use e2e::objects;
