//! Scenarios: one rule each, in the text language of `play/mod.rs`. The name of a case is the rule.

mod play;

#[path = "scenarios/admission_checks.rs"]
mod admission_checks;
#[path = "scenarios/admission_explanations.rs"]
mod admission_explanations;
#[path = "scenarios/admission_fair_sharing.rs"]
mod admission_fair_sharing;
#[path = "scenarios/balanced_placement.rs"]
mod balanced_placement;
#[path = "scenarios/borrowing.rs"]
mod borrowing;
#[path = "scenarios/check.rs"]
mod check;
#[path = "scenarios/cluster_capacity.rs"]
mod cluster_capacity;
#[path = "scenarios/condition_messages.rs"]
mod condition_messages;
#[path = "scenarios/considered_flavors.rs"]
mod considered_flavors;
#[path = "scenarios/cycle_order.rs"]
mod cycle_order;
#[path = "scenarios/elastic_topology.rs"]
mod elastic_topology;
#[path = "scenarios/fair_sharing.rs"]
mod fair_sharing;
#[path = "scenarios/fair_sharing_tournament.rs"]
mod fair_sharing_tournament;
#[path = "scenarios/finished_pod_sets.rs"]
mod finished_pod_sets;
#[path = "scenarios/flavor_assignment.rs"]
mod flavor_assignment;
#[path = "scenarios/flavor_fungibility.rs"]
mod flavor_fungibility;
#[path = "scenarios/inactive_queues.rs"]
mod inactive_queues;
#[path = "scenarios/inadmissible.rs"]
mod inadmissible;
#[path = "scenarios/leaving_pods.rs"]
mod leaving_pods;
#[path = "scenarios/missing_levels.rs"]
mod missing_levels;
#[path = "scenarios/namespaces.rs"]
mod namespaces;
#[path = "scenarios/node_feasibility.rs"]
mod node_feasibility;
#[path = "scenarios/node_replacement.rs"]
mod node_replacement;
#[path = "scenarios/node_requests.rs"]
mod node_requests;
#[path = "scenarios/nodes.rs"]
mod nodes;
#[path = "scenarios/other_flavors.rs"]
mod other_flavors;
#[path = "scenarios/partial_admission.rs"]
mod partial_admission;
#[path = "scenarios/pod_set_groups.rs"]
mod pod_set_groups;
#[path = "scenarios/preemption_gates.rs"]
mod preemption_gates;
#[path = "scenarios/preemption_within_queue.rs"]
mod preemption_within_queue;
#[path = "scenarios/preferred_affinity.rs"]
mod preferred_affinity;
#[path = "scenarios/queue_eligibility.rs"]
mod queue_eligibility;
#[path = "scenarios/queue_order.rs"]
mod queue_order;
#[path = "scenarios/quota_changes.rs"]
mod quota_changes;
#[path = "scenarios/quota_explanations.rs"]
mod quota_explanations;
#[path = "scenarios/reclaim_within_cohort.rs"]
mod reclaim_within_cohort;
#[path = "scenarios/requeue.rs"]
mod requeue;
#[path = "scenarios/reservations.rs"]
mod reservations;
#[path = "scenarios/saturated_usage.rs"]
mod saturated_usage;
#[path = "scenarios/second_pass.rs"]
mod second_pass;
#[path = "scenarios/slice_layers.rs"]
mod slice_layers;
#[path = "scenarios/stopped_queues.rs"]
mod stopped_queues;
#[path = "scenarios/strict_fifo.rs"]
mod strict_fifo;
#[path = "scenarios/topology_assignment.rs"]
mod topology_assignment;
#[path = "scenarios/topology_explanations.rs"]
mod topology_explanations;
#[path = "scenarios/usage.rs"]
mod usage;
#[path = "scenarios/variants.rs"]
mod variants;
#[path = "scenarios/what_if.rs"]
mod what_if;
#[path = "scenarios/workload_slices.rs"]
mod workload_slices;
