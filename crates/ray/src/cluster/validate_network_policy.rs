//! Rules for the NetworkPolicies of a cluster.
//!
//! Source: docs/reference/ray.md §5 "Controller-side rules".

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    json::{items, text},
    v1::RayClusterSpec,
};

/// Groups must exist and have names that fit into that of a policy, and a mode that leaves traffic open has no rules for it.
pub(crate) fn check_network_policy(spec: &RayClusterSpec, policy: &Value) -> Result<(), String> {
    for group in &spec.worker_group_specs {
        if !is_dns_label(&group.group_name) {
            return Err(format!(
                "worker group name {:?} must be a DNS-1123 label, because it is part of the name of a NetworkPolicy",
                group.group_name
            ));
        }
    }
    let mut seen = BTreeSet::new();
    for group in items(&policy["workerGroups"]) {
        let wanted = text(&group["groupName"]);
        // A misspelt name would leave the group with the rules of all workers.
        if !spec.worker_group_specs.iter().any(|group| group.group_name == wanted) {
            return Err(format!(
                "networkPolicy.workerGroups[{wanted:?}] does not match any group name in workerGroupSpecs"
            ));
        }
        if !seen.insert(wanted) {
            return Err(format!("networkPolicy.workerGroups[{wanted:?}] is not unique"));
        }
        check_rules(&policy["mode"], group, &format!("workerGroups[{wanted:?}]"))?;
    }
    ["head", "worker"]
        .into_iter()
        .try_for_each(|part| check_rules(&policy["mode"], &policy[part], part))
}

/// Whether a text is a label of DNS (RFC 1123).
fn is_dns_label(text: &str) -> bool {
    let is_inner = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Rules about traffic that the mode does not restrict would suggest that it were.
fn check_rules(mode: &Value, part: &Value, place: &str) -> Result<(), String> {
    let unrestricted = match text(mode) {
        "DenyAllEgress" => "ingress",
        "DenyAllIngress" => "egress",
        _ => return Ok(()),
    };
    match items(&part[format!("{unrestricted}Rules")]).is_empty() {
        true => Ok(()),
        false => Err(format!(
            "networkPolicy.{place}.{unrestricted}Rules must not be set with the mode {}, which restricts no {unrestricted}",
            text(mode)
        )),
    }
}
