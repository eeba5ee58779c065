//! Validation of a configuration beyond its types. Finds all problems, each with the path of its field.

use std::collections::{BTreeMap, BTreeSet};

use crds::validation::labels;
use jobs::integrations::INTEGRATIONS;

use super::{
    AccessProvider, Configuration, ConfiguredSelector, CustomLabel, GoDuration, INCREMENTAL,
    QuotaCheckStrategy, SourceKind,
};

/// One invalid field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct InvalidField {
    /// The path of the field.
    pub path: String,
    /// The problem.
    pub problem: String,
}

/// Collects problems.
#[derive(Default)]
struct Problems(Vec<InvalidField>);

impl Problems {
    fn unless(&mut self, fine: bool, path: &str, problem: &str) {
        if !fine {
            self.0.push(InvalidField { path: path.to_owned(), problem: problem.to_owned() });
        }
    }
}

/// All problems of `config`.
pub(super) fn validate(config: &Configuration) -> Vec<InvalidField> {
    let mut problems = Problems::default();
    let leases = config.leader_election.resource_lock == "leases";
    problems.unless(leases, "leaderElection.resourceLock", "must be leases");
    tls(config, &mut problems);
    custom_labels(&config.metrics.custom_labels, &mut problems);
    namespaces(config, &mut problems);
    wait_for_pods_ready(config, &mut problems);
    integrations(config, &mut problems);
    multi_kueue(config, &mut problems);
    sharing(config, &mut problems);
    resources(config, &mut problems);
    retention(config, &mut problems);
    problems.0
}

fn tls(config: &Configuration, problems: &mut Problems) {
    let Some(tls) = &config.tls else { return };
    let version = tls.min_version.as_deref();
    let known = matches!(version, None | Some("" | "VersionTLS12" | "VersionTLS13"));
    problems.unless(known, "tls.minVersion", "must be VersionTLS12 or VersionTLS13");
    // TLS 1.3 has suites of its own, which Go does not let a program choose.
    let mixed = version == Some("VersionTLS13") && !tls.cipher_suites.is_empty();
    problems.unless(!mixed, "tls.cipherSuites", "must be empty when minVersion is VersionTLS13");
}

fn custom_labels(labels: &[CustomLabel], problems: &mut Problems) {
    let path = "metrics.customLabels";
    problems.unless(labels.len() <= 20, path, "must have at most 20 entries");
    for (kind, most) in [
        (SourceKind::ClusterQueue, 6),
        (SourceKind::LocalQueue, 6),
        (SourceKind::Cohort, 6),
        (SourceKind::Workload, 2),
    ] {
        let count = labels.iter().filter(|label| label.source_kind == kind).count();
        let problem = format!("must have at most {most} entries of sourceKind {kind:?}");
        problems.unless(count <= most, path, &problem);
    }
    let mut names = BTreeSet::new();
    for (i, label) in labels.iter().enumerate() {
        let path = format!("{path}[{i}]");
        problems.unless(metric_name(&label.name), &format!("{path}.name"), "is no label name");
        // A series with the same label twice is refused by Prometheus.
        let new = names.insert(&label.name);
        problems.unless(new, &format!("{path}.name"), "is given twice");
        let both = label.source_label_key.is_some() && label.source_annotation_key.is_some();
        let problem = "sourceLabelKey and sourceAnnotationKey exclude each other";
        problems.unless(!both, &path, problem);
        // Values of Workloads are unbounded, so only listed ones become series.
        let tracked = label.tracked_values.len();
        let (fine, problem) = match label.source_kind {
            SourceKind::Workload => ((1..=12).contains(&tracked), "must have 1 to 12 entries"),
            SourceKind::ClusterQueue | SourceKind::LocalQueue | SourceKind::Cohort => {
                (tracked == 0, "is only for sourceKind Workload")
            }
        };
        problems.unless(fine, &format!("{path}.trackedValues"), problem);
    }
}

fn metric_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn namespaces(config: &Configuration, problems: &mut Problems) {
    let path = "managedJobsNamespaceSelector";
    let Some(selector) = &config.managed_jobs_namespace_selector else {
        return;
    };
    well_formed(selector, path, problems);
    // Suspended jobs there could keep the control plane, or the manager itself, from starting.
    for namespace in ["kube-system", config.namespace()] {
        let labels = BTreeMap::from([(super::NAMESPACE_NAME.to_owned(), namespace.to_owned())]);
        let problem = format!("must not match namespace {namespace:?}");
        problems.unless(!selector.matches(&labels), path, &problem);
    }
    if let Some(selector) = &config.metrics.local_queue_metrics.local_queue_selector {
        well_formed(selector, "metrics.localQueueMetrics.localQueueSelector", problems);
    }
}

fn well_formed(selector: &ConfiguredSelector, path: &str, problems: &mut Problems) {
    for (i, requirement) in selector.match_expressions.iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}].values");
        let problem = "must be given for In and NotIn, and only for them";
        problems.unless(requirement.well_formed(), &path, problem);
    }
}

fn not_negative(value: GoDuration, path: &str, problems: &mut Problems) {
    problems.unless(value >= GoDuration::ZERO, path, "must not be negative");
}

fn wait_for_pods_ready(config: &Configuration, problems: &mut Problems) {
    let Some(wait) = &config.wait_for_pods_ready else {
        return;
    };
    not_negative(wait.timeout, "waitForPodsReady.timeout", problems);
    // The default is `timeout`, which is validated above.
    if let Some(recovery) = wait.recovery_timeout.filter(|recovery| *recovery != wait.timeout) {
        not_negative(recovery, "waitForPodsReady.recoveryTimeout", problems);
    }
    let strategy = &wait.requeuing_strategy;
    for (value, field) in [
        (strategy.backoff_limit_count.unwrap_or(0), "backoffLimitCount"),
        (strategy.backoff_base_seconds, "backoffBaseSeconds"),
        (strategy.backoff_max_seconds, "backoffMaxSeconds"),
    ] {
        let path = format!("waitForPodsReady.requeuingStrategy.{field}");
        problems.unless(value >= 0, &path, "must not be negative");
    }
}

fn integrations(config: &Configuration, problems: &mut Problems) {
    // One set for both lists: a kind is either built in or external.
    let mut seen = BTreeSet::new();
    for (i, name) in config.integrations.frameworks.iter().enumerate() {
        let path = format!("integrations.frameworks[{i}]");
        let problem = format!("{name:?} is no known framework");
        let known = INTEGRATIONS.iter().any(|framework| framework.name == name);
        problems.unless(known, &path, &problem);
        problems.unless(seen.insert(name), &path, "is given twice");
    }
    for (i, name) in config.integrations.external_frameworks.iter().enumerate() {
        let path = format!("integrations.externalFrameworks[{i}]");
        problems.unless(kind_version_group(name), &path, "must be Kind.version.group");
        problems.unless(seen.insert(name), &path, "is given twice");
    }
}

fn kind_version_group(name: &str) -> bool {
    let parts: Vec<&str> = name.splitn(3, '.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty())
}

fn multi_kueue(config: &Configuration, problems: &mut Problems) {
    let multi_kueue = &config.multi_kueue;
    not_negative(multi_kueue.gc_interval, "multiKueue.gcInterval", problems);
    not_negative(multi_kueue.worker_lost_timeout, "multiKueue.workerLostTimeout", problems);
    let origin = label_value(&multi_kueue.origin);
    problems.unless(origin, "multiKueue.origin", "must be a label value");
    if let Some(incremental) = &multi_kueue.incremental_dispatcher_config {
        let path = "multiKueue.incrementalDispatcherConfig";
        // Only this dispatcher gets the block by default; with another one it is from the file.
        let ours = multi_kueue.dispatcher_name == INCREMENTAL;
        problems.unless(ours, path, "is only for the incremental dispatcher");
        problems.unless(
            incremental.step_size >= 1,
            &format!("{path}.stepSize"),
            "must be at least 1",
        );
    }
    let mut seen = BTreeSet::new();
    for (i, framework) in multi_kueue.external_frameworks.iter().enumerate() {
        let path = format!("multiKueue.externalFrameworks[{i}].name");
        problems.unless(kind_version_group(&framework.name), &path, "must be Kind.version.group");
        problems.unless(seen.insert(&framework.name), &path, "is given twice");
        // Two adapters of one kind would both create its copies on a worker.
        problems.unless(!built_in(&framework.name), &path, "is a built-in framework");
    }
    let Some(profile) = &multi_kueue.cluster_profile else {
        return;
    };
    let both = !profile.access_providers.is_empty() && !profile.credentials_providers.is_empty();
    let path = "multiKueue.clusterProfile";
    problems.unless(!both, path, "accessProviders and credentialsProviders exclude each other");
    providers(&profile.access_providers, &format!("{path}.accessProviders"), problems);
    providers(&profile.credentials_providers, &format!("{path}.credentialsProviders"), problems);
}

/// Whether `Kind.version.group` names a kind with an adapter of its own.
fn built_in(name: &str) -> bool {
    let mut parts = name.splitn(3, '.');
    // An adapter serves a kind in every version.
    let (kind, _, group) = (parts.next(), parts.next(), parts.next());
    let (Some(kind), Some(group)) = (kind, group) else {
        return false;
    };
    INTEGRATIONS.iter().any(|one| one.kind == kind && one.group == group)
}

fn providers(providers: &[AccessProvider], path: &str, problems: &mut Problems) {
    for (i, provider) in providers.iter().enumerate() {
        let path = format!("{path}[{i}]");
        let exec = &provider.exec_config;
        for (value, field) in [
            (&provider.name, "name"),
            (&exec.command, "execConfig.command"),
            (&exec.api_version, "execConfig.apiVersion"),
        ] {
            problems.unless(!value.is_empty(), &format!("{path}.{field}"), "is required");
        }
        for (j, variable) in exec.env.iter().enumerate() {
            let path = format!("{path}.execConfig.env[{j}].name");
            problems.unless(!variable.name.is_empty(), &path, "is required");
        }
    }
}

fn label_value(text: &str) -> bool {
    labels::value_problems(text).is_empty()
}

fn sharing(config: &Configuration, problems: &mut Problems) {
    use super::PreemptionStrategy::{LessThanInitialShare, LessThanOrEqualToFinalShare};
    if let Some(fair) = &config.fair_sharing {
        // The lists that the rules of preemption are defined for (docs/reference/kueue.md §4.10).
        let fine = matches!(
            fair.preemption_strategies.as_slice(),
            [LessThanOrEqualToFinalShare | LessThanInitialShare]
                | [LessThanOrEqualToFinalShare, LessThanInitialShare]
        );
        let problem = "must be one strategy, or LessThanOrEqualToFinalShare and LessThanInitialShare in this order";
        problems.unless(fine, "fairSharing.preemptionStrategies", problem);
    }
    let Some(fair) = &config.admission_fair_sharing else {
        return;
    };
    let path = "admissionFairSharing";
    not_negative(fair.usage_half_life_time, &format!("{path}.usageHalfLifeTime"), problems);
    // Unlike a half-life, an interval of zero has no meaning: it would sample without a pause.
    let sampled = fair.usage_sampling_interval > GoDuration::ZERO;
    problems.unless(sampled, &format!("{path}.usageSamplingInterval"), "must be greater than 0");
    for (resource, weight) in &fair.resource_weights {
        let path = format!("{path}.resourceWeights[{resource}]");
        // Not `< 0.0`, which a weight that is no number would pass.
        problems.unless(*weight >= 0.0, &path, "must not be negative");
    }
}

fn resources(config: &Configuration, problems: &mut Problems) {
    let resources = &config.resources;
    let mut inputs = BTreeSet::new();
    for (i, transformation) in resources.transformations.iter().enumerate() {
        let path = format!("resources.transformations[{i}]");
        let new = inputs.insert(&transformation.input);
        problems.unless(new, &format!("{path}.input"), "is given twice");
        for (name, amount) in transformation.amounts() {
            let path = format!("{path}.outputs[{name}]");
            problems.unless(amount.is_some(), &path, "must be a quantity");
        }
    }
    // IgnoreUndeclared leaves out every resource without quota, so prefixes would have no effect.
    let ignores = resources.quota_check_strategy == QuotaCheckStrategy::IgnoreUndeclared;
    let fine = !ignores || resources.exclude_resource_prefixes.is_empty();
    let problem = "must be empty when quotaCheckStrategy is IgnoreUndeclared";
    problems.unless(fine, "resources.excludeResourcePrefixes", problem);
    let path = "resources.deviceClassMappings";
    let mappings = &resources.device_class_mappings;
    problems.unless(mappings.len() <= 16, path, "must have at most 16 entries");
    for (i, mapping) in mappings.iter().enumerate() {
        let path = format!("{path}[{i}]");
        let few = mapping.device_class_names.len() <= 8;
        problems.unless(few, &format!("{path}.deviceClassNames"), "must have at most 8 entries");
        for (j, source) in mapping.sources.iter().enumerate() {
            let one = source.counter.is_some() != source.capacity.is_some();
            let problem = "must have exactly one of counter and capacity";
            problems.unless(one, &format!("{path}.sources[{j}]"), problem);
        }
    }
}

fn retention(config: &Configuration, problems: &mut Problems) {
    let policies = config.object_retention_policies.as_ref();
    let Some(workloads) = policies.and_then(|policies| policies.workloads.as_ref()) else {
        return;
    };
    for (value, field) in [
        (workloads.after_finished, "afterFinished"),
        (workloads.after_deactivated_by_kueue, "afterDeactivatedByKueue"),
    ] {
        let path = format!("objectRetentionPolicies.workloads.{field}");
        not_negative(value.unwrap_or_default(), &path, problems);
    }
}
