//! Objects of a case as inputs of the engine.

use std::hash::{Hash, Hasher};

use anyhow::{Context, Result, bail};
use engine::node_selection::{
    LabelOperator, LabelRequirement, NodeSelection, NodeSelectorTerm, NodeTaint, PodToleration,
    TaintEffect, TolerationOperator, integer,
};
use engine::spec as input;
use engine::topology::{NO_SLICE_SIZE, TopologyMode, TopologyNodeSpec, TopologyRequest};
use engine::{Amount, EngineSettings, FairStrategy, Names, Time};

use super::case::{self, Case, Object};
use super::pods;
use super::quantity::{amount, scaled};

pub(crate) fn settings(case: &Case) -> Result<EngineSettings> {
    let mut settings = EngineSettings::default();
    if let Some(fair) = &case.config.fair_sharing {
        let mut strategies = Vec::new();
        for name in &fair.preemption_strategies {
            strategies.push(match name.as_str() {
                "LessThanOrEqualToFinalShare" => FairStrategy::LessThanOrEqualToFinalShare,
                "LessThanInitialShare" => FairStrategy::LessThanInitialShare,
                other => bail!("unknown strategy {other}"),
            });
        }
        if strategies.is_empty() {
            strategies.push(FairStrategy::LessThanOrEqualToFinalShare);
            strategies.push(FairStrategy::LessThanInitialShare);
        }
        settings.fair_sharing = Some(strategies);
    }
    for (gate, &on) in &case.config.feature_gates {
        match gate.as_str() {
            "PartialAdmission" => settings.partial_admission = on,
            "FlavorFungibility" => settings.flavor_fungibility = on,
            "FlavorFungibilityPreserveScanProgress" => {
                settings.flavor_fungibility_preserve_scan_progress = on;
            }
            "SchedulingEquivalenceHashing" => settings.scheduling_equivalence_hashing = on,
            "FairSharingPreemptWithinNominal" => settings.fair_sharing_preempt_within_nominal = on,
            "FairSharingPrioritizeNonBorrowing" => {
                settings.fair_sharing_prioritize_non_borrowing = on;
            }
            "PrioritySortingWithinCohort" => settings.priority_sorting_within_cohort = on,
            "PrioritizePreemptorWorkloads" => settings.prioritize_preemptor_workloads = on,
            "RecomputeAssignmentUponPreemptionTargetsOverlap" => {
                settings.recompute_upon_target_overlap = on;
            }
            "TASRecomputeAssignmentWithinSchedulingCycle" => {
                settings.tas_recompute_within_cycle = on;
            }
            "TASProfileMixed" => settings.tas_profile_mixed = on,
            "TASBalancedPlacement" => settings.tas_balanced_placement = on,
            // They change what is written, not what is decided.
            "UnadmittedWorkloadsObservability" | "UnadmittedWorkloadsExplicitStatus" => {}
            other => bail!("unknown gate {other}"),
        }
    }
    Ok(settings)
}

pub(crate) fn pairs(map: &case::Map) -> Vec<(Box<str>, Box<str>)> {
    map.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

pub(crate) fn flavor(
    names: &mut Names,
    object: &Object<case::FlavorSpec>,
) -> Result<input::FlavorSpec> {
    let spec = object.spec.clone().unwrap_or_default();
    let topology = spec.topology_name.as_deref().map(|name| names.topologies.intern(name));
    Ok(input::FlavorSpec {
        labels: pairs(&spec.node_labels),
        taints: spec.node_taints.iter().map(taint).collect::<Result<_>>()?,
        tolerations: spec.tolerations.iter().map(toleration).collect::<Result<_>>()?,
        topology,
    })
}

fn effect(name: &str) -> Result<TaintEffect> {
    Ok(match name {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        other => bail!("unknown effect {other}"),
    })
}

fn taint(one: &case::Taint) -> Result<NodeTaint> {
    let (key, value) = (one.key.as_str().into(), one.value.as_str().into());
    Ok(NodeTaint { key, value, effect: effect(&one.effect)? })
}

fn toleration(one: &case::Toleration) -> Result<PodToleration> {
    let bound = || integer(&one.value).context("a toleration that compares");
    Ok(PodToleration {
        key: one.key.as_str().into(),
        operator: match one.operator.as_str() {
            "Exists" => TolerationOperator::Exists,
            "Gt" => TolerationOperator::Gt(bound()?),
            "Lt" => TolerationOperator::Lt(bound()?),
            _ => TolerationOperator::Equal(one.value.as_str().into()),
        },
        effect: if one.effect.is_empty() { None } else { Some(effect(&one.effect)?) },
    })
}

fn requirement(one: &case::Expression) -> Result<LabelRequirement> {
    let values = || one.values.iter().map(|value| value.as_str().into()).collect();
    let bound = || Ok::<i64, anyhow::Error>(one.values.first().map_or("", |v| v).parse()?);
    let operator = match one.operator.as_str() {
        "In" => LabelOperator::In(values()),
        "NotIn" => LabelOperator::NotIn(values()),
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        "Gt" => LabelOperator::Gt(bound()?),
        "Lt" => LabelOperator::Lt(bound()?),
        other => bail!("unknown operator {other}"),
    };
    Ok(LabelRequirement { key: one.key.as_str().into(), operator })
}

fn selector(one: &case::LabelSelector) -> Result<Vec<LabelRequirement>> {
    let labels = one.match_labels.iter().map(|(key, value)| {
        let operator = LabelOperator::In(vec![value.as_str().into()]);
        Ok(LabelRequirement { key: key.as_str().into(), operator })
    });
    labels.chain(one.match_expressions.iter().map(requirement)).collect()
}

fn node_term(one: &case::NodeSelectorTerm) -> Result<NodeSelectorTerm> {
    let read = |all: &[case::Expression]| all.iter().map(requirement).collect::<Result<_>>();
    Ok(NodeSelectorTerm { labels: read(&one.match_expressions)?, fields: read(&one.match_fields)? })
}

fn groups(
    names: &mut Names,
    groups: &[case::ResourceGroup],
) -> Result<Vec<input::ResourceGroupSpec>> {
    let mut all = Vec::new();
    for group in groups {
        let covered = group.covered_resources.iter();
        let resources = covered.map(|name| names.resources.intern(name)).collect();
        let mut flavors = Vec::new();
        for one in &group.flavors {
            let mut quotas = Vec::new();
            for quota in &one.resources {
                quotas.push(resource_quota(names, quota)?);
            }
            let flavor = names.flavors.intern(&one.name);
            flavors.push(input::FlavorQuotaSpec { flavor, resources: quotas });
        }
        all.push(input::ResourceGroupSpec { resources, flavors });
    }
    Ok(all)
}

fn resource_quota(names: &mut Names, quota: &case::ResourceQuota) -> Result<input::QuotaSpec> {
    let parse = |text: &Option<String>| -> Result<Option<Amount>> {
        let one = text.as_deref().map(|text| amount(&quota.name, text)).transpose()?;
        Ok(one.map(|one| one.as_quota_of(&quota.name)))
    };
    Ok(input::QuotaSpec {
        resource: names.resources.intern(&quota.name),
        nominal: parse(&quota.nominal_quota)?.unwrap_or_default(),
        borrowing_limit: parse(&quota.borrowing_limit)?,
        lending_limit: parse(&quota.lending_limit)?,
    })
}

fn weight(one: Option<&case::FairSharingWeight>) -> Result<input::FairSharingWeight> {
    let Some(text) = one.and_then(|one| one.weight.as_deref()) else {
        return Ok(input::FairSharingWeight::default());
    };
    Ok(input::FairSharingWeight(u64::try_from(scaled(text, 1_000_000_000)?)?))
}

pub(crate) fn cohort(
    names: &mut Names,
    object: &Object<case::CohortSpec>,
) -> Result<input::CohortInfo> {
    let spec = object.spec.clone().unwrap_or_default();
    let parent = spec.parent_name.as_deref().filter(|name| !name.is_empty());
    Ok(input::CohortInfo {
        parent: parent.map(|name| names.cohorts.intern(name)),
        groups: groups(names, &spec.resource_groups)?,
        weight: weight(spec.fair_sharing.as_ref())?,
    })
}

fn policy(name: &str) -> Result<input::PreemptionPolicy> {
    Ok(match name {
        "" | "Never" => input::PreemptionPolicy::Never,
        "LowerPriority" => input::PreemptionPolicy::LowerPriority,
        "LowerOrNewerEqualPriority" => input::PreemptionPolicy::LowerOrNewerEqualPriority,
        "Any" => input::PreemptionPolicy::Any,
        other => bail!("unknown policy {other}"),
    })
}

fn search(
    name: &str,
    default: input::FlavorFungibilityPolicy,
) -> Result<input::FlavorFungibilityPolicy> {
    Ok(match name {
        "" => default,
        "MayStopSearch" => input::FlavorFungibilityPolicy::MayStopSearch,
        "TryNextFlavor" => input::FlavorFungibilityPolicy::TryNextFlavor,
        other => bail!("unknown search {other}"),
    })
}

pub(crate) fn queue(
    names: &mut Names,
    object: &Object<case::QueueSpec>,
) -> Result<input::ClusterQueueInfo> {
    let spec = object.spec.clone().unwrap_or_default();
    let cohort = spec.cohort_name.as_deref().filter(|name| !name.is_empty());
    let borrow = spec.preemption.borrow_within_cohort.as_ref();
    let borrow = borrow.filter(|one| !matches!(one.policy.as_str(), "" | "Never"));
    Ok(input::ClusterQueueInfo {
        generation: 0,
        cohort: cohort.map(|name| names.cohorts.intern(name)),
        groups: groups(names, &spec.resource_groups)?,
        strategy: match spec.queueing_strategy.as_str() {
            "StrictFIFO" => input::QueueingStrategy::StrictFifo,
            _ => input::QueueingStrategy::BestEffortFifo,
        },
        preemption: input::PreemptionSpec {
            within_cluster_queue: policy(&spec.preemption.within_cluster_queue)?,
            reclaim: policy(&spec.preemption.reclaim_within_cohort)?,
            borrow: borrow.map(|one| input::BorrowWithinCohortSpec {
                max_priority: one.max_priority_threshold,
            }),
        },
        flavor_fungibility: input::FungibilitySpec {
            when_can_borrow: search(
                &spec.flavor_fungibility.when_can_borrow,
                input::FlavorFungibilityPolicy::MayStopSearch,
            )?,
            when_can_preempt: search(
                &spec.flavor_fungibility.when_can_preempt,
                input::FlavorFungibilityPolicy::TryNextFlavor,
            )?,
            preference: match spec.flavor_fungibility.preference.as_str() {
                "PreemptionOverBorrowing" => {
                    input::FlavorFungibilityPreference::PreemptionOverBorrowing
                }
                _ => input::FlavorFungibilityPreference::BorrowingOverPreemption,
            },
        },
        weight: weight(spec.fair_sharing.as_ref())?,
        stopped: !matches!(spec.stop_policy.as_str(), "" | "None"),
        ready: true,
        checks: Vec::new(),
        last_acceptable_flavor: None,
        admission_fair_sharing: false,
        namespaces: match &spec.namespace_selector {
            None => input::NamespaceSelector::Nothing,
            Some(one) => input::NamespaceSelector::All(selector(one)?),
        },
    })
}

pub(crate) fn host(names: &mut Names, object: &Object<case::NodeSpec>) -> Result<TopologyNodeSpec> {
    let spec = object.spec.clone().unwrap_or_default();
    let mut conditions = object.status.conditions.iter();
    let ready = conditions.any(|one| one.kind == "Ready" && one.status == "True");
    let mut allocatable = Vec::new();
    for (name, text) in &object.status.allocatable {
        allocatable.push((names.resources.intern(name), amount(name, text)?));
    }
    Ok(TopologyNodeSpec {
        name: object.metadata.name.as_str().into(),
        labels: pairs(&object.metadata.labels),
        taints: spec.taints.iter().map(taint).collect::<Result<_>>()?,
        usable: ready && !spec.unschedulable,
        allocatable,
        foreign: Vec::new(),
        leaving: Vec::new(),
    })
}

pub(crate) fn workload(
    names: &mut Names,
    object: &Object<case::WorkloadSpec>,
) -> Result<input::WorkloadInfo> {
    let spec = object.spec.clone().unwrap_or_default();
    let namespace = &object.metadata.namespace;
    let local_queue = format!("{namespace}/{}", spec.queue_name);
    let mut pod_sets = Vec::new();
    for one in &spec.pod_sets {
        let gone = object.status.reclaimable_pods.iter().find(|gone| gone.name == one.name);
        pod_sets.push(pod_set(names, one, gone.map_or(0, |gone| gone.count))?);
    }
    let created = object.metadata.creation_timestamp.map_or(0, |stamp| stamp.0);
    Ok(input::WorkloadInfo {
        namespace: names.namespaces.intern(namespace),
        local_queue: Some(names.local_queues.intern(&local_queue)),
        uid: object.metadata.uid.as_str().into(),
        priority: spec.priority.unwrap_or(0),
        has_priority_class: false,
        queued_at: Time(created),
        pod_sets,
        eligibility: if spec.active == Some(false) {
            input::QueueEligibility::Excluded
        } else {
            input::QueueEligibility::Eligible
        },
        invalid: pods::problems(&spec)?
            .map(|words| format!("resources validation failed: {words}").into()),
        preemption_gated: false,
        allowed_flavors: None,
        variant_of: None,
        replaced_slice: None,
        elastic: false,
        checks: Vec::new(),
        admission: admission(names, object)?,
    })
}

fn pod_set(names: &mut Names, one: &case::PodSet, reclaimed: i64) -> Result<input::PodSetSpec> {
    let spec = &one.template.spec;
    let requests = pods::requests(spec)?;
    let requests = requests.iter().map(|(name, &amount)| (names.resources.intern(name), amount));
    let required = spec.affinity.as_ref().and_then(|one| one.node_affinity.as_ref());
    let required = required.and_then(|one| one.required.as_ref());
    let terms = required.map(|one| one.node_selector_terms.iter().map(node_term).collect());
    Ok(input::PodSetSpec {
        name: one.name.as_str().into(),
        count: one.count - reclaimed,
        reclaimed,
        min_count: one.min_count,
        requests: requests.collect(),
        on_node: None,
        selection: NodeSelection {
            node_selector: pairs(&spec.node_selector),
            affinity: terms.transpose()?,
            tolerations: spec.tolerations.iter().map(toleration).collect::<Result<_>>()?,
        },
        preferred: Box::default(),
        topology: one.topology_request.as_ref().map(topology_request),
        template: fingerprint(spec)?,
    })
}

/// The parts of a pod template that upstream's equivalence hash covers besides the sums: requests of each container
/// (its limits by default) and node selection. Limits are not part of it, so a Workload whose requests exceed its
/// limits becomes inadmissible with valid ones.
fn fingerprint(spec: &case::PodSpec) -> Result<u64> {
    let asks = |containers: &[case::Container]| {
        containers.iter().map(pods::of_container).collect::<Result<Vec<_>>>()
    };
    let containers = (asks(&spec.init_containers)?, asks(&spec.containers)?);
    let place = (&spec.node_selector, &spec.affinity, &spec.tolerations, &spec.overhead);
    let mut hasher = std::hash::DefaultHasher::new();
    format!("{containers:?} {place:?}").hash(&mut hasher);
    Ok(hasher.finish())
}

fn topology_request(one: &case::TopologyRequest) -> TopologyRequest {
    let required = one.required.as_deref().map(|level| TopologyMode::Required(level.into()));
    let preferred = one.preferred.as_deref().map(|level| TopologyMode::Preferred(level.into()));
    let free = (one.unconstrained == Some(true)).then_some(TopologyMode::Unconstrained);
    let level = one.pod_set_slice_required_topology.as_deref();
    TopologyRequest {
        mode: required.or(preferred).or(free),
        slices: level
            .map(|it| (it.into(), one.pod_set_slice_size.unwrap_or(NO_SLICE_SIZE)))
            .into_iter()
            .collect(),
        group: one.pod_set_group_name.as_deref().map(Into::into),
    }
}

fn admission(
    names: &mut Names,
    object: &Object<case::WorkloadSpec>,
) -> Result<Option<input::AdmissionSpec>> {
    let Some(admission) = &object.status.admission else {
        return Ok(None);
    };
    let since = object.status.conditions.iter().find(|one| one.kind == "QuotaReserved");
    let since = since.and_then(|one| one.last_transition_time).map_or(0, |stamp| stamp.0);
    let mut pod_sets = Vec::new();
    for one in &admission.pod_set_assignments {
        let mut resources = Vec::new();
        for (name, text) in &one.resource_usage {
            let Some(flavor) = one.flavors.get(name) else {
                continue;
            };
            let amount = amount(name, text)?;
            let (resource, flavor) = (names.resources.intern(name), names.flavors.intern(flavor));
            resources.push(input::AssignedResource { resource, flavor, amount });
        }
        pod_sets.push(input::PodSetAdmission {
            count: one.count.unwrap_or(0),
            reclaimed: 0,
            resources,
            domains: Vec::new(),
            delayed_topology: false,
        });
    }
    Ok(Some(input::AdmissionSpec {
        queue: names.queues.intern(&admission.cluster_queue),
        reserved_at: Time(since),
        evicted: false,
        pod_sets,
    }))
}
