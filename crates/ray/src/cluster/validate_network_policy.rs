//! Rules for the NetworkPolicies of a cluster.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    json::{items, text},
    v1::RayClusterSpec,
};

/// What apimachinery says of a text that is no label of DNS.
const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// A mode that leaves traffic open has no rules for it, and groups must exist and have names that fit into that of a policy.
pub(crate) fn check_network_policy(spec: &RayClusterSpec, policy: &Value) -> Result<(), String> {
    let mode = &policy["mode"];
    ["head", "worker"].into_iter().try_for_each(|part| check_rules(mode, &policy[part], part))?;
    for group in &spec.worker_group_specs {
        check_group_name(&group.group_name)?;
    }
    let mut seen = BTreeSet::new();
    for group in items(&policy["workerGroups"]) {
        let wanted = text(&group["groupName"]);
        check_rules(mode, group, &format!("workerGroups[{wanted:?}]"))?;
        // A misspelt name would leave the group with the rules of all workers.
        if !spec.worker_group_specs.iter().any(|group| group.group_name == wanted) {
            return Err(format!(
                "networkPolicy.workerGroups[{wanted:?}] does not match any group name in workerGroupSpecs"
            ));
        }
        if !seen.insert(wanted) {
            return Err(format!("networkPolicy.workerGroups[{wanted:?}] is not unique"));
        }
    }
    Ok(())
}

/// The name of a group is part of the name of its policy.
fn check_group_name(name: &str) -> Result<(), String> {
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push("must be no more than 63 bytes");
    }
    if !is_dns_label(name) {
        // A name with dots is a valid one of another kind.
        problems.push(if !name.is_empty() && name.split('.').all(is_dns_label) {
            "must not contain dots"
        } else {
            DNS_LABEL
        });
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "worker group name {name:?} must be a valid DNS1123 label when networkPolicy is enabled (it is embedded in the NetworkPolicy name): [{}]",
            problems.join(" ")
        ))
    }
}

/// Whether a text has the form of a label of DNS (RFC 1123), of any length.
fn is_dns_label(text: &str) -> bool {
    let is_inner = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    !text.is_empty() && text.chars().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Rules about traffic that the mode does not restrict would suggest that it were.
fn check_rules(mode: &Value, part: &Value, place: &str) -> Result<(), String> {
    let unrestricted = match text(mode) {
        "DenyAllEgress" => "ingress",
        "DenyAllIngress" => "egress",
        _ => return Ok(()),
    };
    if items(&part[format!("{unrestricted}Rules")]).is_empty() {
        Ok(())
    } else {
        Err(format!(
            "networkPolicy.{place}.{unrestricted}Rules cannot be set when mode is {mode} ({unrestricted} is not restricted)"
        ))
    }
}
