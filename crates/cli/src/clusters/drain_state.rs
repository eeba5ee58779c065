//! Which MultiKueueConfigs dispatch to a worker, and whether their policies or its annotations drain it
//! (docs/reference/dispatch.md §3).

use std::collections::BTreeMap;

use crds::{
    meta::{LabelSelector, LabelSelectorRequirement},
    names::annotations::POLICY,
    v1alpha1::DispatchPolicy,
    v1beta2::{MultiKueueCluster, MultiKueueConfig},
    worker_drain::{DrainWindow, WorkerDrain},
};
use jiff::Timestamp;
use serde::Serialize;

/// A drain of a worker.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainState {
    /// The policies that drain the worker.
    pub policies: Vec<String>,
    /// The earliest time at which running work is withdrawn; absent if it may run to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// The drain that annotations of the worker ask for, until its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotated: Option<AnnotatedDrain>,
}

/// A drain by annotations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnnotatedDrain {
    /// Whether it holds now.
    pub holds: bool,
    /// When it begins, if it has a beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// When it ends, if it has an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When running work is withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Why the annotations have no meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

impl AnnotatedDrain {
    fn of(cluster: &MultiKueueCluster, now: Timestamp) -> Option<Self> {
        let drain = match WorkerDrain::read(&cluster.metadata) {
            Ok(drain) => drain?,
            Err(failure) => {
                return Some(Self { invalid: Some(failure.to_string()), ..Self::default() });
            }
        };
        let WorkerDrain { window: DrainWindow { from, until }, deadline } = drain;
        let is_over = until.is_some_and(|until| until <= now);
        let holds = drain.window.holds(now);
        (!is_over).then_some(Self { holds, from, until, deadline, invalid: None })
    }
}

impl DrainState {
    /// The drain of a worker by its annotations, and by the policies of these configurations.
    pub(super) fn of(
        worker: &MultiKueueCluster,
        configs: &[&MultiKueueConfig],
        policies: &[DispatchPolicy],
        now: Timestamp,
    ) -> Option<Self> {
        let annotated = AnnotatedDrain::of(worker, now);
        let cluster = worker.metadata.name.as_deref().unwrap_or_default();
        let (mut names, mut deadlines) = (Vec::new(), Vec::new());
        for policy in configs.iter().filter_map(|config| policy_of(config, policies)) {
            let entry = policy.spec.clusters.iter().find(|one| one.name == cluster);
            let Some(drain) = entry.and_then(|one| one.drain.as_ref()) else { continue };
            names.extend(policy.metadata.name.clone());
            deadlines.push(drain.deadline.clone());
        }
        names.dedup();
        deadlines.retain(|deadline| !deadline.is_empty());
        let held = annotated.iter().filter(|one| one.holds).filter_map(|one| one.deadline);
        deadlines.extend(held.map(|time| time.to_string()));
        let drain = Self { policies: names, deadline: deadlines.into_iter().min(), annotated };
        (!drain.policies.is_empty() || drain.annotated.is_some()).then_some(drain)
    }

    /// When work is withdrawn, or what the annotations lack or wait for.
    pub(super) fn text(&self) -> String {
        let holds =
            !self.policies.is_empty() || self.annotated.as_ref().is_some_and(|one| one.holds);
        match &self.annotated {
            Some(annotated) if annotated.invalid.is_some() && !holds => "invalid".to_owned(),
            Some(AnnotatedDrain { from: Some(from), .. }) if !holds => format!("from {from}"),
            _ => self.deadline.clone().unwrap_or_else(|| "no deadline".to_owned()),
        }
    }
}

/// The policy that a configuration names, if it exists.
#[must_use]
pub fn policy_of<'a>(
    config: &MultiKueueConfig,
    policies: &'a [DispatchPolicy],
) -> Option<&'a DispatchPolicy> {
    let name = config.metadata.annotations.as_ref()?.get(POLICY)?;
    policies.iter().find(|policy| policy.metadata.name.as_ref() == Some(name))
}

/// Whether a configuration dispatches to a worker: by its list, or by the selector of its policy.
#[must_use]
pub fn serves(
    config: &MultiKueueConfig,
    policy: Option<&DispatchPolicy>,
    cluster: &MultiKueueCluster,
) -> bool {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let labels = cluster.metadata.labels.clone().unwrap_or_default();
    let selector = policy.and_then(|policy| policy.spec.cluster_selector.as_ref());
    config.spec.clusters.iter().any(|one| one == name)
        || selector.is_some_and(|selector| matches(selector, &labels))
}

/// Whether labels match a selector; an unknown operator matches nothing.
#[must_use]
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let named = selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
    named && selector.match_expressions.iter().all(|one| meets(one, labels))
}

fn meets(requirement: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let listed = value.is_some_and(|value| requirement.values.contains(value));
    match requirement.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}
