//! Validation of a configuration beyond its types. Finds all problems, each with the path of its field.

mod custom_labels;
mod device_classes;
pub(super) mod pods_ready;
pub(super) mod quota_check_strategy;
pub(super) mod reserved_resources;
mod servers;

use std::collections::{BTreeMap, BTreeSet};

use crds::validation::{FieldError, labels, selector};
use jobs::{Kinds, integrations::INTEGRATIONS};

use super::{
    ALWAYS_INTERACTIVE, AccessProvider, Configuration, ExecConfig, GoDuration, INCREMENTAL,
    Integrations,
};

/// When a command that prints credentials may use standard input.
const INTERACTIVE_MODES: [&str; 3] = ["Never", "IfAvailable", ALWAYS_INTERACTIVE];

/// One invalid field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct InvalidField {
    /// The path of the field.
    pub path: String,
    /// The problem.
    pub problem: String,
}

impl From<FieldError> for InvalidField {
    fn from(error: FieldError) -> Self {
        let text = error.to_string();
        // A path of this file has no blanks.
        let (path, problem) = text.split_once(": ").unwrap_or(("", &text));
        Self { path: path.to_owned(), problem: problem.to_owned() }
    }
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

    fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        self.0.extend(errors.into_iter().map(InvalidField::from));
    }
}

/// All problems of `config`.
pub(super) fn validate(config: &Configuration) -> Vec<InvalidField> {
    let mut problems = Problems::default();
    let leases = config.leader_election.resource_lock == "leases";
    problems.unless(leases, "leaderElection.resourceLock", "must be leases");
    servers::check(config, &mut problems);
    problems.extend(custom_labels::check(&config.metrics.custom_labels));
    namespaces(config, &mut problems);
    integrations(config, &mut problems);
    multi_kueue(config, &mut problems);
    sharing(config, &mut problems);
    resources(config, &mut problems);
    retention(config, &mut problems);
    problems.0
}

fn namespaces(config: &Configuration, problems: &mut Problems) {
    let selectors = [
        ("managedJobsNamespaceSelector", &config.managed_jobs_namespace_selector),
        (
            "localQueueDefaultingNamespaceSelector",
            &config.local_queue_defaulting_namespace_selector,
        ),
    ];
    for (path, selector) in selectors {
        let Some(selector) = selector else { continue };
        problems.extend(selector::check(path, &selector.to_api()));
        // Suspended jobs there could keep the control plane, or the manager itself, from starting.
        for namespace in ["kube-system", config.namespace()] {
            let labels = BTreeMap::from([(super::NAMESPACE_NAME.to_owned(), namespace.to_owned())]);
            let problem = format!("must not match namespace {namespace:?}");
            problems.unless(!selector.matches(&labels), path, &problem);
        }
    }
    if let Some(selector) = &config.metrics.local_queue_metrics.local_queue_selector {
        let path = "metrics.localQueueMetrics.localQueueSelector";
        problems.extend(selector::check(path, &selector.to_api()));
    }
}

fn not_negative(value: GoDuration, path: &str, problems: &mut Problems) {
    problems.unless(value >= GoDuration::ZERO, path, "must not be negative");
}

fn integrations(config: &Configuration, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (i, name) in config.integrations.frameworks.iter().enumerate() {
        let path = format!("integrations.frameworks[{i}]");
        let problem = format!("{name:?} is no known framework");
        let known = INTEGRATIONS.iter().any(|framework| framework.name == name);
        problems.unless(known, &path, &problem);
        problems.unless(seen.insert(name), &path, "is given twice");
    }
    external_frameworks(&config.integrations, problems);
}

/// A kind is either built in or external: both would manage its jobs.
fn external_frameworks(integrations: &Integrations, problems: &mut Problems) {
    let enabled = INTEGRATIONS
        .iter()
        .filter(|one| integrations.frameworks.iter().any(|name| name == one.name));
    let mut seen: BTreeSet<String> =
        enabled.map(|one| format!("{}.{}.{}", one.kind, one.version, one.group)).collect();
    for (i, name) in integrations.external_frameworks.iter().enumerate() {
        let path = format!("integrations.externalFrameworks[{i}]");
        problems.unless(kind_version_group(name), &path, "must be Kind.version.group");
        if !seen.insert(name.clone()) {
            problems.extend([FieldError::duplicate(path, name, "")]);
        }
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
        let adapted = has_adapter(&framework.name, &config.integrations);
        problems.unless(!adapted, &path, "is a built-in framework");
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

/// Whether `Kind.version.group` names a kind with copies of an enabled integration. Other integrations have no adapter.
fn has_adapter(name: &str, integrations: &Integrations) -> bool {
    let mut parts = name.splitn(3, '.');
    // An adapter serves a kind in every version.
    let (kind, _, group) = (parts.next(), parts.next(), parts.next());
    let copied = Kinds::built_in().with_workloads();
    copied.iter().any(|one| {
        let is_enabled = integrations.frameworks.iter().any(|name| name == one.framework());
        is_enabled && Some(one.name()) == kind && Some(one.group()) == group
    })
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
        problems.extend(check_interactive_mode(&format!("{path}.execConfig"), exec));
    }
}

/// Without a mode the command is never interactive.
fn check_interactive_mode(path: &str, exec: &ExecConfig) -> Option<FieldError> {
    let mode = exec.interactive_mode.as_str();
    let is_known = mode.is_empty() || INTERACTIVE_MODES.contains(&mode);
    let field = format!("{path}.interactiveMode");
    (!is_known).then(|| FieldError::not_supported(field, mode, INTERACTIVE_MODES))
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
    device_classes::check(&resources.device_class_mappings, problems);
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

#[cfg(test)]
mod tests;
