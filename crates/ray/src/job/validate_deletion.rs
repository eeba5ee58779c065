//! Rules for what is removed after the end of a RayJob.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use std::collections::BTreeMap;

use super::validate::invalid;
use crate::{
    settings::OperatorSettings,
    v1::{DeletionCondition, DeletionRule, DeletionStrategy, RayJobSpec},
};

const WORKERS: &str = "DeleteWorkers";
const CLUSTER: &str = "DeleteCluster";

/// Checks the deletion strategy.
pub(super) fn check_deletion(spec: &RayJobSpec, settings: &OperatorSettings) -> Result<(), String> {
    let Some(strategy) = &spec.deletion_strategy else { return Ok(()) };
    if !settings.gates.deletion_policy {
        return Err(
            "RayJobDeletionPolicy feature gate must be enabled to use DeletionStrategy".to_owned()
        );
    }
    match &strategy.deletion_rules {
        Some(rules) => check_rules(spec, strategy, rules),
        None => check_policies(spec, strategy),
    }
}

/// The two old fields.
fn check_policies(spec: &RayJobSpec, strategy: &DeletionStrategy) -> Result<(), String> {
    for (name, policy) in [("onSuccess", &strategy.on_success), ("onFailure", &strategy.on_failure)]
    {
        let policy = policy.as_ref().and_then(|policy| policy.policy.as_deref());
        let Some(policy) = policy else {
            return Err(invalid(&format!("deletionStrategy.{name}.policy must be set")));
        };
        check_policy(spec, policy, name)?;
        if policy == "DeleteNone" && spec.shutdown_after_job_finishes {
            return Err(invalid(
                "shutdownAfterJobFinshes is set to 'true' while deletion policy is 'DeleteNone'",
            ));
        }
    }
    Ok(())
}

fn check_policy(spec: &RayJobSpec, policy: &str, place: &str) -> Result<(), String> {
    let not_supported =
        |why: &str| Err(format!("{place}: DeletionPolicyType '{policy}' not supported {why}"));
    // A selected cluster does not belong to the RayJob.
    if !spec.cluster_selector.is_empty() && [WORKERS, CLUSTER].contains(&policy) {
        return not_supported("when ClusterSelector is set");
    }
    let scales = spec.ray_cluster_spec.as_ref().and_then(|it| it.enable_in_tree_autoscaling);
    // Workers are deleted by suspending their groups, which is refused with autoscaling.
    if policy == WORKERS && scales == Some(true) {
        return not_supported("with autoscaling enabled");
    }
    Ok(())
}

fn check_rules(
    spec: &RayJobSpec,
    strategy: &DeletionStrategy,
    rules: &[DeletionRule],
) -> Result<(), String> {
    if spec.shutdown_after_job_finishes {
        return Err(invalid(
            "spec.shutdownAfterJobFinishes and spec.deletionStrategy.deletionRules are mutually exclusive",
        ));
    }
    if strategy.on_success.is_some() || strategy.on_failure.is_some() {
        return Err(invalid("legacy policies and deletionRules are mutually exclusive"));
    }
    let mut due: BTreeMap<String, BTreeMap<&str, i32>> = BTreeMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let place = format!("deletionRules[{index}]");
        check_policy(spec, &rule.policy, &place)?;
        let condition = condition(&rule.condition).ok_or_else(|| {
            format!("{place}: exactly one of JobStatus and JobDeploymentStatus must be set")
        })?;
        let of_condition = due.entry(condition.clone()).or_default();
        // The same removal would be due at two times.
        if of_condition.insert(&rule.policy, rule.condition.ttl_seconds).is_some() {
            return Err(format!(
                "{place}: duplicate rule for DeletionPolicyType '{}' and {condition}",
                rule.policy
            ));
        }
    }
    due.iter().try_for_each(|(condition, due)| check_order(condition, due))
}

fn condition(condition: &DeletionCondition) -> Option<String> {
    match (&condition.job_status, &condition.job_deployment_status) {
        (Some(status), None) => Some(format!("JobStatus '{status}'")),
        (None, Some(status)) => Some(format!("JobDeploymentStatus '{status}'")),
        _ => None,
    }
}

/// Workers go before their cluster, and the cluster before the RayJob.
fn check_order(condition: &str, due: &BTreeMap<&str, i32>) -> Result<(), String> {
    let present = [WORKERS, CLUSTER, "DeleteSelf"].into_iter();
    let present: Vec<(&str, i32)> =
        present.filter_map(|policy| Some((policy, *due.get(policy)?))).collect();
    for (before, after) in present.iter().zip(present.iter().skip(1)) {
        if after.1 < before.1 {
            return Err(format!(
                "for {condition}: {} TTL ({}) must be >= {} TTL ({})",
                after.0, after.1, before.0, before.1
            ));
        }
    }
    Ok(())
}
