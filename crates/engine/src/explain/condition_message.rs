//! Reasons and messages of conditions, in upstream's words. They appear on the wire, so they never change.
//!
//! Source: docs/reference/kueue.md §4.12.

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::cycle::entry::{CycleEntry, CycleOutcome};
use crate::engine::Engine;
use crate::explain::quantity::{format_missing, format_quantity};
use crate::flavors::assignment::{FlavorAssignmentMode, PodSetFlavorAssignment};
use crate::ids::{FlavorId, ResourceId, Slot, TopologyNodeId};
use crate::reason::NoFitReason;
use crate::spec::PodSetSpec;
use crate::workloads::equivalence_class::members;

/// Reason of the condition `QuotaReserved=False`; of `Evicted` for a Workload whose failed nodes have no
/// replacement. Empty where upstream leaves it empty.
pub fn condition_reason(entry: &CycleEntry) -> &'static str {
    match entry.outcome {
        CycleOutcome::Reserved { .. }
        | CycleOutcome::Nominated
        | CycleOutcome::NodeReplaced
        | CycleOutcome::NodeNotReplaced => "",
        CycleOutcome::NodesFailed => "NodeFailures",
        CycleOutcome::Preempting | CycleOutcome::Deferred | CycleOutcome::Migrating { .. } => {
            "WaitingForPreemptedWorkloads"
        }
        CycleOutcome::NoCandidates | CycleOutcome::Skipped | CycleOutcome::NoClusterCapacity(_) => {
            "WaitingForQuota"
        }
        CycleOutcome::PreemptionGated => "AdmissionGated",
        CycleOutcome::FailedCheck
        | CycleOutcome::BetterVariantAdmitted
        | CycleOutcome::MigrationRefused => "PendingEvaluation",
        CycleOutcome::NoFit => {
            entry.assignment.pending_reason.map_or("", |pending_reason| pending_reason.name())
        }
        CycleOutcome::NamespaceMismatch | CycleOutcome::Invalid => "Misconfigured",
    }
}

/// Message of the same condition; for a Workload that waits for a node replacement, the message of the event.
pub fn condition_message(engine: &Engine, entry: &CycleEntry) -> String {
    match entry.outcome {
        CycleOutcome::Reserved { .. } | CycleOutcome::Nominated | CycleOutcome::NodeReplaced => {
            String::new()
        }
        CycleOutcome::NodesFailed => failed_nodes(engine, entry),
        CycleOutcome::FailedCheck => "The workload has failed admission checks".to_owned(),
        CycleOutcome::NamespaceMismatch => {
            "workload namespace doesn't match ClusterQueue selector".to_owned()
        }
        CycleOutcome::Invalid => invalid(engine, entry),
        CycleOutcome::BetterVariantAdmitted => {
            "A more favorable variant is already admitted".to_owned()
        }
        CycleOutcome::MigrationRefused => {
            "Target flavor is below LastAcceptableFlavorName".to_owned()
        }
        CycleOutcome::Migrating { .. } => {
            format!("{}. Pending the migration of 1 workload(s)", summary(engine, entry))
        }
        CycleOutcome::PreemptionGated => "Workload requires preemption, but it's gated".to_owned(),
        CycleOutcome::Skipped if entry.targets_taken => {
            "Workload has overlapping preemption targets with another workload".to_owned()
        }
        CycleOutcome::Skipped => {
            "Workload no longer fits after processing another workload".to_owned()
        }
        CycleOutcome::Deferred if entry.assignment.awaits_leaving_pods => {
            "Workload will fit after the pods of evicted workloads have terminated".to_owned()
        }
        CycleOutcome::Deferred => OVERLAPPING_TARGETS.to_owned(),
        CycleOutcome::NoClusterCapacity(_) => "no cluster has room".to_owned(),
        CycleOutcome::NoFit | CycleOutcome::NoCandidates | CycleOutcome::NodeNotReplaced => {
            summary(engine, entry)
        }
        CycleOutcome::Preempting => preempting(engine, entry),
    }
}

/// A Workload that preempts only for room on a worker cluster lacks no quota, so its summary is empty.
fn preempting(engine: &Engine, entry: &CycleEntry) -> String {
    let pending = format!("Pending the preemption of {} workload(s)", entry.targets.len());
    let lacks = summary(engine, entry);
    if lacks.is_empty() { pending } else { format!("{lacks}. {pending}") }
}

const OVERLAPPING_TARGETS: &str = "Workload has overlapping preemption targets with another workload, but will fit \
                                   after these preemptions complete";

/// The error of a Workload that the caller found invalid.
fn invalid(engine: &Engine, entry: &CycleEntry) -> String {
    let workload = engine.state.workloads.get(entry.workload);
    workload.and_then(|one| one.invalid.as_deref()).unwrap_or_default().to_owned()
}

fn failed_nodes(engine: &Engine, entry: &CycleEntry) -> String {
    let reasons = entry.assignment.pod_sets.iter().flat_map(|one| &one.reasons);
    let parts = reasons.filter(|one| matches!(one, NoFitReason::NodesFailed(_)));
    parts.map(|one| reason_message(engine, one)).collect()
}

/// One part per pod set that does not fit. An error of one pod set replaces all other parts.
fn summary(engine: &Engine, entry: &CycleEntry) -> String {
    let pod_sets = in_assignment_order(entry);
    let mut all = pod_sets.iter();
    let error = all.find(|(one, _)| one.reasons.iter().any(NoFitReason::is_error));
    // Upstream returns on an error and reports nothing else.
    if let Some((one, spec)) = error {
        let reasons = reason_messages(engine, &one.reasons);
        return format!(
            "failed to assign flavors to pod set {}: {}",
            spec.name,
            reasons.join(", ")
        );
    }
    let unfit = pod_sets.into_iter().filter(|(pod_set, _)| {
        pod_set.mode() != FlavorAssignmentMode::Fit && !pod_set.reasons.is_empty()
    });
    let parts = unfit.map(|(pod_set, spec)| {
        let reasons = reason_messages(engine, &pod_set.reasons);
        format!("couldn't assign flavors to pod set {}: {}", spec.name, reasons.join(", "))
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// The pod sets that were assigned, with their specs, in upstream's order: grouped pod sets follow each other.
pub(super) fn in_assignment_order(
    entry: &CycleEntry,
) -> SmallVec<[(&PodSetFlavorAssignment, &PodSetSpec); 4]> {
    let specs = &entry.class.pod_sets;
    let all = entry.assignment.pod_sets.iter();
    let mut pod_sets: SmallVec<[_; 4]> =
        all.filter_map(|one| Some((one, specs.get(one.pod_set)?))).collect();
    pod_sets.sort_by_key(|(one, _)| (members(&entry.class, one.pod_set)[0], one.pod_set));
    pod_sets
}

/// Messages of reasons in upstream's words, sorted.
pub fn reason_messages(engine: &Engine, reasons: &[NoFitReason]) -> Vec<String> {
    let mut words: Vec<String> = reasons.iter().map(|one| reason_message(engine, one)).collect();
    words.sort();
    words
}

pub(super) fn reason_message(engine: &Engine, reason: &NoFitReason) -> String {
    let flavor = |id: FlavorId| engine.names().flavors.name(id);
    match reason {
        NoFitReason::ExceedsMaximum { slot, earlier, request, maximum } => {
            exceeds_maximum(engine, *slot, *earlier, *request, *maximum)
        }
        NoFitReason::InUse { slot, missing } => in_use(engine, *slot, *missing),
        NoFitReason::Taint { flavor: id, taint } => untolerated_taint(engine, *id, *taint),
        NoFitReason::Affinity(id) => format!("flavor {} doesn't match node affinity", flavor(*id)),
        NoFitReason::FlavorNotFound(id) => format!("flavor {} not found", flavor(*id)),
        NoFitReason::NotNominated { flavor, resource } => not_nominated(engine, *flavor, *resource),
        NoFitReason::FlavorNotAllowed(id) => format!(
            "skipping flavor {} due to WorkloadAllowedResourceFlavorAnnotation annotation",
            flavor(*id)
        ),
        NoFitReason::DiffersFromReplacedSlice { flavor, original } => {
            differs_from_replaced_slice(engine, *flavor, *original)
        }
        NoFitReason::ResourceNotCovered(id) => {
            format!("resource {} unavailable in ClusterQueue", engine.names().resources.name(*id))
        }
        NoFitReason::NoTopology(id) => {
            format!("Flavor \"{}\" does not support TopologyAwareScheduling", flavor(*id))
        }
        NoFitReason::OnlyTopologyAware(id) => {
            format!("Flavor \"{}\" supports only TopologyAwareScheduling", flavor(*id))
        }
        NoFitReason::NoTopologyLevel(id) => {
            format!("Flavor \"{}\" does not contain the requested level", flavor(*id))
        }
        NoFitReason::NoTopologyFlavor => "no TAS flavor assigned".to_owned(),
        NoFitReason::NoTopologies => {
            "workload requires Topology, but there is no TAS cache information".to_owned()
        }
        NoFitReason::TopologyFlavors(flavors) => several_topology_flavors(engine, flavors),
        NoFitReason::ElasticConstraint { required } => elastic_constraint(*required),
        NoFitReason::NodesFailed(nodes) => nodes_failed(engine, nodes),
        NoFitReason::TopologyPlacement(reason) => reason.message(),
    }
}

fn exceeds_maximum(
    engine: &Engine,
    slot: Slot,
    earlier: Amount,
    request: Amount,
    maximum: Amount,
) -> String {
    let (flavor, resource) = slot_names(engine, slot);
    format!(
        "insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests ({}) + \
         current podset request ({}) > maximum capacity ({})",
        format_quantity(resource, earlier),
        format_quantity(resource, request),
        format_quantity(resource, maximum)
    )
}

fn in_use(engine: &Engine, slot: Slot, missing: Amount) -> String {
    let (flavor, resource) = slot_names(engine, slot);
    let missing = format_missing(resource, missing);
    format!("insufficient unused quota for {resource} in flavor {flavor}, {missing} more needed")
}

fn not_nominated(engine: &Engine, flavor: FlavorId, resource: ResourceId) -> String {
    format!(
        "skipping flavor {} as it is not found in the nomination mapping for resource {}",
        engine.names().flavors.name(flavor),
        engine.names().resources.name(resource)
    )
}

fn differs_from_replaced_slice(
    engine: &Engine,
    flavor: FlavorId,
    original: Option<FlavorId>,
) -> String {
    let name = |id: FlavorId| engine.names().flavors.name(id);
    format!(
        "could not assign {} flavor since the original workload is assigned: {}",
        name(flavor),
        original.map_or("", name)
    )
}

fn several_topology_flavors(engine: &Engine, flavors: &[FlavorId]) -> String {
    let names: Vec<&str> = flavors.iter().map(|&id| engine.names().flavors.name(id)).collect();
    format!("more than one TAS flavor assigned: {}", names.join(", "))
}

fn elastic_constraint(required: bool) -> String {
    let how = if required { "required" } else { "preferred" };
    format!("{how} topology is not supported with ElasticJobsViaWorkloadSlices")
}

fn untolerated_taint(engine: &Engine, flavor: FlavorId, taint: usize) -> String {
    let taint = engine.state.quota.flavor(flavor).and_then(|spec| spec.taints.get(taint));
    // As Go prints the struct of a taint; its last field is the time that it was added.
    let words = taint.map_or_else(String::new, |taint| {
        format!("{{{} {} {} <nil>}}", taint.key, taint.value, taint.effect.name())
    });
    format!("untolerated taint {words} in flavor {}", engine.names().flavors.name(flavor))
}

fn nodes_failed(engine: &Engine, nodes: &[TopologyNodeId]) -> String {
    let names: Vec<&str> = nodes.iter().map(|&id| engine.names().nodes.name(id)).collect();
    match names[..] {
        [one] => {
            format!("Workload was evicted as there was no replacement for unhealthy node(s): {one}")
        }
        _ => format!(
            "Workload eviction triggered due to multiple TAS assigned node failures, including: {}",
            names.join(", ")
        ),
    }
}

pub(super) fn slot_names(engine: &Engine, slot: Slot) -> (&str, &str) {
    let (flavor, resource) = engine.state.quota.tree().flavor_and_resource(slot);
    (engine.names().flavors.name(flavor), engine.names().resources.name(resource))
}
