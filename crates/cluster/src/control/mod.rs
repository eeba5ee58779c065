//! Deciding for one cluster: two compositions of small machines, and the loop around them.
//!
//! [`ManagerControl`] and [`AgentControl`] route inputs to machines and let them decide. A machine owns its state; it takes
//! inputs, reads what its arguments give it, and answers with typed messages: reevaluations on the agenda, writes and Events
//! in the outbox, changes and effects that the composition routes. None of them waits, reads a clock or does IO.
//!
//! | room | machine | decides |
//! |---|---|---|
//! | `jobs` | [`jobs::Jobs`] | what a job needs next, by `jobs::reconcile` |
//! | `workloads` | [`workloads::Workloads`] | the next status of a Workload, in one write |
//! | `scheduling` | [`scheduling::Scheduler`] | which Workload gets quota, by the engine and the index |
//! | `multikueue` | [`multikueue::MultiKueueDispatch`] | copies on workers, by `dispatch::workload`; orphan cleanup |
//! | `fleet` | [`fleet::FleetRegistry`] | registered workers and their policies; connections; conditions `Active` |
//! | `queues` | [`queues::Queues`] | the status of queues; finalizers of queues and flavors |
//! | `quota_automation` | [`quota_automation::QuotaAutomation`] | which quota of the hub follows that of its workers |
//! | `capacity` | [`capacity::LocalCapacity`] | the room of an agent's cluster, and its report |
//! | `autoscalers` | [`autoscalers::Autoscalers`] | the nodes that autoscalers can still add |
//! | `agent_provisioning` | [`agent_provisioning::AgentProvisioning`] | the nodes that an agent asks an autoscaler for, and their refusal |
//! | `grants` | [`grants::AgentGrants`] | which clones an agent may start under ExactlyOnce, and which it stops |
//! | `topology` | [`topology::ClusterTopology`] | the nodes of topologies, the domains of gated pods, failed nodes |
//! | `provisioning` | [`provisioning::Provisioning`] | what Workloads ask of an autoscaler, the states of their provisioning checks |
//! | `concurrent_admission` | [`concurrent_admission::ConcurrentAdmission`] | the variants of Workloads, and what their parents show |
//! | `elastic_pods` | [`elastic_pods::ElasticPods`] | which pods of elastic jobs start with the quota of their slice |
//! | `failure_recovery` | [`failure_recovery::FailureRecovery`] | which pods on unreachable nodes are deleted by force |
//! | `unavailable_integrations` | `unavailable_integrations::UnavailableIntegrations` | what is reported about enabled kinds that cannot be observed |
//! | `namespaces_and_priorities` | [`namespaces_and_priorities::NamespacesAndPriorities`] | labels of namespaces, values of priority classes |
//! | `workload_measurements` | [`workload_measurements::WorkloadNumbers`] | what happened, as metrics count it |
//! | `timers` | agenda, deadlines | what is evaluated now and later |
//! | `outbox` | [`outbox::Outbox`] | one write per object, its answer, its backoff |
//!
//! Each composition owns a [`dispatch::Fleet`] beside its machines: several of them record in it what they observe of clusters, and
//! placement decides on it. `core` is what both compositions share. Nothing here waits; the crate `leader` does. Beside the machines:
//!
//! | modules | concept |
//! |---|---|
//! | `manager`, `agent`, `decisions`, `context` | the two compositions; what they promise; what a machine may use meanwhile |
//! | `input`, `change`, `listing` | what is observed, object by object; which kinds were listed |
//! | `manager_settings`, `agent_settings`, `agent_policy`, `scheduler_settings` | settings of the compositions, of the agent's administrator, of the engine |
//! | `queue_objects`, `agent_queues` | where objects about queues go; the queues of an agent that admits by quota |
//! | `job_key`, `job_selection`, `gated_integrations` | identity of a job; which jobs are managed; integrations with a gate that is off |
//! | `elastic_chains`, `elastic_slices` | the slices of an elastic job, in the cluster and as far as they run on a worker |
//! | `lease_objects` | Leases between managers and agents, as objects |
//! | `observed`, `node_info`, `pod_fields`, `pod_on_node`, `autoscaler_input` | what watches keep of nodes, pods and autoscalers |
//! | `start_failure`, `pod_failure`, `pod_end` | pods that cannot start or run, and ends that no kubelet reports |
//! | `measurement` | what happened, as metrics count it |
//! | `key_map`, `key_set`, `time` | maps and sets of keys; times of the engine and of objects |

mod agent;
mod agent_policy;
mod agent_provisioning;
mod agent_queues;
mod agent_settings;
mod autoscaler_input;
mod autoscalers;
mod capacity;
mod change;
mod concurrent_admission;
mod context;
mod core;
mod decisions;
mod elastic_chains;
mod elastic_pods;
mod elastic_slices;
mod failure_recovery;
mod fleet;
mod gated_integrations;
mod grants;
mod input;
mod job_key;
mod job_selection;
mod jobs;
mod key_map;
mod key_set;
mod lease_objects;
mod listing;
mod manager;
mod manager_settings;
pub mod measurement;
mod multikueue;
mod namespaces_and_priorities;
mod node_info;
mod observed;
mod outbox;
mod pod_end;
mod pod_failure;
mod pod_fields;
mod pod_on_node;
mod provisioning;
mod queue_objects;
mod queues;
mod quota_automation;
mod scheduler_settings;
mod scheduling;
mod start_failure;
#[cfg(test)]
mod tests;
mod time;
mod timers;
mod topology;
mod unavailable_integrations;
mod workload_measurements;
mod workloads;

pub use index::AdmissionMode;

pub use self::{
    agent::AgentControl,
    agent_policy::AgentPolicy,
    agent_settings::AgentSettings,
    autoscaler_input::AutoscalerInput,
    capacity::{PodInfo, REFUSED_PODS_FIELDS, RefusedPodsEvent},
    decisions::{AdmissionExplained, Control, Decisions},
    elastic_pods::WatchedElasticPod,
    failure_recovery::{NodeReachability, WatchedTerminatingPod},
    fleet::{ClaimAnswer, ClaimResult, ConnectionPlan, ConnectionPlans, WorkerRegistration},
    input::{AgentInput, ConnectionStatus, ManagerInput, QueueInput, WorkerInput},
    job_key::JobKey,
    manager::ManagerControl,
    manager_settings::{ManagerSettings, QUEUE_STATUS_PERIOD},
    node_info::NodeInfo,
    observed::Observed,
    outbox::{Destination, Order, Purpose, Subject, Target, Ticket, TicketId},
    scheduler_settings::{index_settings, usage_weights},
    scheduling::has_explanation,
    timers::Reevaluation,
    topology::{WatchedNode, WatchedPod},
    workloads::PodsReadyPolicy,
};
