//! Shared code of the lab's command-line tools and the tests on the lab.
//!
//! | module | concept |
//! |---|---|
//! | [`api_double`] | API servers in memory, for more clusters than a machine has room for |
//! | [`audit_log`] | the requests of the programs |
//! | [`cluster_cases`] | what is tested on any manager with two workers |
//! | [`diary`] | what containers on real nodes wrote down themselves |
//! | [`fault_matrix`] | each part of a dispatching installation fails in each phase of a job |
//! | [`fault_run`] | two managers under load, with faults |
//! | [`fleet`] | a manager with hundreds of workers, all of them doubles |
//! | [`garbage_collector`] | when Kubernetes collects objects of Kueue's kinds |
//! | [`host_state`] | what nodes, daemons and labs leave as it is on their machine |
//! | [`installation`] | a complete installation on a lab: manifests, managers, agents, workers |
//! | [`local_webhooks`] | manifests for a manager that runs outside the lab |
//! | [`manager_lab`] | one cluster with a manager that tests share, and may start again |
//! | [`objects`] | queues, nodes and Jobs of tests |
//! | [`program_image`] | images of manager and agent for tests |
//! | [`replays`] | recorded requests against a fresh control plane |
//! | [`trace_replays`] | recorded lives of jobs against a complete installation |
//! | [`usage`] | CPU time and resident memory of a process |
//! | [`waits`] | what many tests wait for |
//! | `listed_pods` | the pods of a Workload as the manager lists them |

pub mod api_double;
pub mod audit_log;
pub mod cluster_cases;
pub mod diary;
pub mod fault_matrix;
pub mod fault_run;
pub mod fleet;
pub mod garbage_collector;
pub mod host_state;
pub mod installation;
pub mod listed_pods;
pub mod local_webhooks;
pub mod manager_lab;
pub mod objects;
pub mod program_image;
pub mod replays;
pub mod trace_replays;
pub mod usage;
pub mod waits;
