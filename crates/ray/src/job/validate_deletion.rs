//! Rules for what is removed after the end of a RayJob.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use std::collections::BTreeMap;

use super::validate::invalid;
use crate::{
    settings::OperatorSettings,
    v1::{DeletionCondition, DeletionPolicy, DeletionRule, DeletionStrategy, RayJobSpec},
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
    if let Some(rules) = strategy.rules() {
        check_no_other_fields(spec, strategy)?;
        return check_rules(spec, rules);
    }
    match (&strategy.on_success, &strategy.on_failure) {
        (None, None) => Err(invalid(
            "DeletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field (cannot be empty)",
        )),
        (Some(success), Some(failure)) => check_policies(spec, success, failure),
        _ => Err("both DeletionStrategy.OnSuccess and DeletionStrategy.OnFailure must be set when using the legacy deletion policy fields of DeletionStrategy".to_owned()),
    }
}

/// Rules replace the older fields.
fn check_no_other_fields(spec: &RayJobSpec, strategy: &DeletionStrategy) -> Result<(), String> {
    if spec.shutdown_after_job_finishes {
        return Err(invalid(
            "spec.shutdownAfterJobFinishes and spec.deletionStrategy.deletionRules are mutually exclusive",
        ));
    }
    if strategy.on_success.is_some() || strategy.on_failure.is_some() {
        Err(invalid(
            "Cannot use both legacy onSuccess/onFailure fields and deletionRules simultaneously",
        ))
    } else {
        Ok(())
    }
}

/// The two old fields.
fn check_policies(
    spec: &RayJobSpec,
    success: &DeletionPolicy,
    failure: &DeletionPolicy,
) -> Result<(), String> {
    let policy = |field: &str, policy: &DeletionPolicy| {
        policy.policy.clone().ok_or_else(|| {
            format!(
                "the DeletionPolicyType field of DeletionStrategy.{field} cannot be unset when DeletionStrategy is enabled"
            )
        })
    };
    let policies =
        [(policy("OnSuccess", success)?, "success"), (policy("OnFailure", failure)?, "failure")];
    let of_selected = policies.iter().find(|(policy, _)| touches_selected(spec, policy));
    if let Some((policy, end)) = of_selected {
        return Err(format!(
            "the ClusterSelector mode doesn't support DeletionStrategy={policy} on {end}"
        ));
    }
    if policies.iter().any(|(policy, _)| touches_scaled(spec, policy)) {
        return Err("DeletionStrategy=DeleteWorkers currently does not support RayCluster with autoscaling enabled".to_owned());
    }
    let is_kept = policies.iter().any(|(policy, _)| policy == "DeleteNone");
    if spec.shutdown_after_job_finishes && is_kept {
        Err(invalid(
            "shutdownAfterJobFinshes is set to 'true' while deletion policy is 'DeleteNone'",
        ))
    } else {
        Ok(())
    }
}

/// Whether a policy removes parts of a selected cluster, which does not belong to the RayJob.
fn touches_selected(spec: &RayJobSpec, policy: &str) -> bool {
    !spec.cluster_selector.is_empty() && [WORKERS, CLUSTER].contains(&policy)
}

/// Whether a policy suspends groups of an autoscaled cluster, which is refused.
fn touches_scaled(spec: &RayJobSpec, policy: &str) -> bool {
    let scales = spec.ray_cluster_spec.as_ref().and_then(|it| it.enable_in_tree_autoscaling);
    policy == WORKERS && scales == Some(true)
}

/// All faults are reported together: those of single rules, and then those of their order.
fn check_rules(spec: &RayJobSpec, rules: &[DeletionRule]) -> Result<(), String> {
    // By the condition; those about the job come before those about the deployment.
    let mut due: BTreeMap<(&str, &str), BTreeMap<&str, i32>> = BTreeMap::new();
    let mut faults = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        if let Err(why) = check_rule(spec, rule, &mut due) {
            faults.push(format!("deletionRules[{index}]: {why}"));
        }
    }
    let order = due.iter().rev().flat_map(|(condition, due)| order_faults(*condition, due));
    faults.extend(order);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn check_rule<'a>(
    spec: &RayJobSpec,
    rule: &'a DeletionRule,
    due: &mut BTreeMap<(&'a str, &'a str), BTreeMap<&'a str, i32>>,
) -> Result<(), String> {
    let condition = condition(&rule.condition)?;
    let policy = rule.policy.as_str();
    if touches_selected(spec, policy) {
        return Err(format!(
            "DeletionPolicyType '{policy}' not supported when ClusterSelector is set"
        ));
    }
    if touches_scaled(spec, policy) {
        return Err(format!(
            "DeletionPolicyType '{policy}' not supported with autoscaling enabled"
        ));
    }
    let of_condition = due.entry(condition).or_default();
    // The same removal would be due at two times. The first one counts.
    if of_condition.contains_key(policy) {
        let (kind, value) = condition;
        return Err(format!(
            "duplicate rule for DeletionPolicyType '{policy}' and {kind} '{value}'"
        ));
    }
    of_condition.insert(policy, rule.condition.ttl_seconds);
    Ok(())
}

/// The field and the value of a condition.
fn condition(condition: &DeletionCondition) -> Result<(&str, &str), String> {
    let found = match (&condition.job_status, &condition.job_deployment_status) {
        (Some(status), None) => ("JobStatus", status.as_str()),
        (None, Some(status)) => ("JobDeploymentStatus", status.as_str()),
        (Some(_), Some(_)) => {
            return Err(
                "cannot set both JobStatus and JobDeploymentStatus at the same time".to_owned()
            );
        }
        (None, None) => {
            return Err("exactly one of JobStatus and JobDeploymentStatus must be set".to_owned());
        }
    };
    if condition.ttl_seconds < 0 {
        Err("TTLSeconds must be non-negative".to_owned())
    } else {
        Ok(found)
    }
}

/// Workers go before their cluster, and the cluster before the RayJob.
fn order_faults((kind, value): (&str, &str), due: &BTreeMap<&str, i32>) -> Vec<String> {
    let present = [WORKERS, CLUSTER, "DeleteSelf"].into_iter();
    let present: Vec<(&str, i32)> =
        present.filter_map(|policy| Some((policy, *due.get(policy)?))).collect();
    let pairs = present.iter().zip(present.iter().skip(1));
    let wrong = pairs.filter(|(before, after)| after.1 < before.1);
    let fault = |(before, after): (&(&str, i32), &(&str, i32))| {
        format!(
            "for {kind} '{value}': {} TTL ({}) must be >= {} TTL ({})",
            after.0, after.1, before.0, before.1
        )
    };
    wrong.map(fault).collect()
}
