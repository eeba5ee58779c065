//! What happens to an object that exists already. Pure.
//!
//! An object that `join` made is updated. Any other object is used if it gives what is needed, and is never changed.

use std::collections::BTreeSet;

use crds::names::{SLUICECTL, annotations::JOINED_HUB, labels::MANAGED_BY};
use serde_json::Value;

use super::apply::identity;

/// An object of another owner is in the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnershipConflict {
    /// It does not give what is needed.
    #[error(
        "{object} exists, was not made by join and {lacks}: delete it, or choose another name ({flag})"
    )]
    Insufficient {
        /// Kind and name.
        object: String,
        /// What it lacks.
        lacks: String,
        /// The flag that chooses another name.
        flag: &'static str,
    },
    /// It belongs to another manager.
    #[error(
        "{object} was made by join for another manager cluster: choose another account (--service-account), or add --take-over if that cluster is lost"
    )]
    OfOtherHub {
        /// Kind and name.
        object: String,
    },
}

/// What happens to an object that `join` made for another manager cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherHub {
    /// It is in the way.
    Refuse,
    /// It is used by this manager cluster from now on: the other one is lost.
    TakeOver,
}

/// What to do about a wanted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectAction {
    /// It is made, or made equal to what is wanted.
    Apply,
    /// It is used as it is.
    Keep,
}

/// Decides about a wanted object.
///
/// # Errors
/// If an object of another owner is in the way.
pub(super) fn action(
    wanted: &Value,
    existing: Option<&Value>,
    other_hub: OtherHub,
) -> Result<ObjectAction, OwnershipConflict> {
    let Some(existing) = existing else {
        return Ok(ObjectAction::Apply);
    };
    if !is_joined(existing) {
        return match first_missing_field(wanted, existing) {
            None => Ok(ObjectAction::Keep),
            Some(lacks) => {
                let flag = flag_of(wanted);
                Err(OwnershipConflict::Insufficient { object: identity(wanted), lacks, flag })
            }
        };
    }
    let hub = |object: &Value| object["metadata"]["annotations"][JOINED_HUB].clone();
    match other_hub {
        _ if hub(existing) == hub(wanted) => Ok(ObjectAction::Apply),
        OtherHub::TakeOver => Ok(ObjectAction::Apply),
        // Several managers may use one namespace.
        OtherHub::Refuse if wanted["kind"] == "Namespace" => Ok(ObjectAction::Keep),
        OtherHub::Refuse => Err(OwnershipConflict::OfOtherHub { object: identity(wanted) }),
    }
}

/// Whether `join` made an object.
#[must_use]
pub fn is_joined(object: &Value) -> bool {
    object["metadata"]["labels"][MANAGED_BY] == SLUICECTL
}

fn flag_of(wanted: &Value) -> &'static str {
    match wanted["kind"].as_str() {
        Some("Secret" | "MultiKueueCluster") => "NAME of the worker",
        _ => "--service-account",
    }
}

/// What an object of another owner does not give; `None` if it suffices.
fn first_missing_field(wanted: &Value, existing: &Value) -> Option<String> {
    match wanted["kind"].as_str() {
        Some("Namespace" | "ServiceAccount") => None,
        Some("ClusterRole" | "Role") => missing_rule(&wanted["rules"], &existing["rules"])
            .map(|(verb, resource)| format!("does not allow to {verb} {resource}")),
        Some("ClusterRoleBinding" | "RoleBinding") => {
            let same_role = wanted["roleRef"]["name"] == existing["roleRef"]["name"];
            let subjects = existing["subjects"].as_array();
            let bound = wanted["subjects"].as_array().into_iter().flatten().all(|subject| {
                subjects.is_some_and(|all| all.iter().any(|one| is_same_subject(one, subject)))
            });
            (!(same_role && bound)).then(|| "does not bind the account".to_owned())
        }
        Some("ValidatingAdmissionPolicy") => {
            let of = "/spec/matchConditions/0/expression";
            let same = wanted.pointer(of) == existing.pointer(of);
            (!same).then(|| "is about another account".to_owned())
        }
        Some("ValidatingAdmissionPolicyBinding") => {
            let same = wanted["spec"]["policyName"] == existing["spec"]["policyName"];
            (!same).then(|| "binds another policy".to_owned())
        }
        Some("MultiKueueCluster") => {
            let place = "/spec/clusterSource/kubeConfig/location";
            let same = wanted.pointer(place) == existing.pointer(place);
            (!same).then(|| "has another source".to_owned())
        }
        _ => Some("cannot be replaced".to_owned()),
    }
}

fn is_same_subject(one: &Value, other: &Value) -> bool {
    ["kind", "name", "namespace"].iter().all(|field| one[field] == other[field])
}

/// The first wanted right that no rule gives, as verb and resource.
fn missing_rule(wanted: &Value, existing: &Value) -> Option<(String, String)> {
    let given: Vec<RuleSets<'_>> =
        existing.as_array().into_iter().flatten().map(RuleSets::of).collect();
    let wanted = wanted.as_array().into_iter().flatten().map(RuleSets::of);
    let rights = wanted.flat_map(|rule| rule.rights());
    rights
        .filter(|right| !given.iter().any(|rule| rule.gives(right)))
        .map(|right| (right.verb.to_owned(), right.resource.to_owned()))
        .next()
}

/// The parts of a rule of a role.
struct RuleSets<'a> {
    groups: BTreeSet<&'a str>,
    resources: BTreeSet<&'a str>,
    names: BTreeSet<&'a str>,
    verbs: BTreeSet<&'a str>,
}

/// One verb for one resource.
struct ResourceRight<'a> {
    group: &'a str,
    resource: &'a str,
    verb: &'a str,
    names: BTreeSet<&'a str>,
}

impl<'a> RuleSets<'a> {
    fn of(rule: &'a Value) -> Self {
        let set = |field: &str| {
            rule.get(field)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect()
        };
        Self {
            groups: set("apiGroups"),
            resources: set("resources"),
            names: set("resourceNames"),
            verbs: set("verbs"),
        }
    }

    fn rights(&self) -> Vec<ResourceRight<'a>> {
        let mut rights = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    rights.push(ResourceRight { group, resource, verb, names: self.names.clone() });
                }
            }
        }
        rights
    }

    fn gives(&self, right: &ResourceRight<'_>) -> bool {
        let has = |set: &BTreeSet<&str>, item: &str| set.contains(item) || set.contains("*");
        // A rule without names holds for all of them.
        let named = self.names.is_empty()
            || (!right.names.is_empty() && right.names.is_subset(&self.names));
        has(&self.groups, right.group)
            && has(&self.resources, right.resource)
            && has(&self.verbs, right.verb)
            && named
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn action(wanted: &Value, existing: Option<&Value>) -> Result<ObjectAction, OwnershipConflict> {
        super::action(wanted, existing, OtherHub::Refuse)
    }

    fn role(verbs: &[&str], names: &[&str], joined_by: Option<&str>) -> Value {
        let mut rule = json!({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": verbs});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        let mut role = json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [rule]});
        if let Some(hub) = joined_by {
            role["metadata"]["labels"] = json!({MANAGED_BY: "sluicectl"});
            role["metadata"]["annotations"] = json!({JOINED_HUB: hub});
        }
        role
    }

    #[test]
    fn an_object_of_join_is_applied_unless_another_manager_has_it() {
        let wanted = role(&["get"], &[], Some("a"));
        assert_eq!(action(&wanted, None), Ok(ObjectAction::Apply));
        assert_eq!(
            action(&wanted, Some(&role(&["list"], &[], Some("a")))),
            Ok(ObjectAction::Apply)
        );
        let other = action(&wanted, Some(&role(&["get"], &[], Some("b"))));
        assert_eq!(
            other,
            Err(OwnershipConflict::OfOtherHub { object: "ClusterRole r".to_owned() })
        );
        let lost =
            super::action(&wanted, Some(&role(&["get"], &[], Some("b"))), OtherHub::TakeOver);
        assert_eq!(lost, Ok(ObjectAction::Apply));
        let by_hand = super::action(&wanted, Some(&role(&[], &[], None)), OtherHub::TakeOver);
        assert!(matches!(by_hand, Err(OwnershipConflict::Insufficient { .. })), "{by_hand:?}");
        let namespace = |hub: &str| {
            json!({"kind": "Namespace", "metadata": {"name": "n",
            "labels": {MANAGED_BY: "sluicectl"}, "annotations": {JOINED_HUB: hub}}})
        };
        assert_eq!(action(&namespace("a"), Some(&namespace("b"))), Ok(ObjectAction::Keep));
    }

    #[test]
    fn a_role_of_another_owner_is_used_if_it_allows_enough() {
        let wanted = role(&["get", "list"], &[], Some("a"));
        for verbs in [&["get", "list", "watch"][..], &["*"]] {
            assert_eq!(action(&wanted, Some(&role(verbs, &[], None))), Ok(ObjectAction::Keep));
        }
        for (verbs, names) in [(&["get"][..], &[][..]), (&["get", "list"], &["one"])] {
            let refused = action(&wanted, Some(&role(verbs, names, None)));
            assert!(matches!(refused, Err(OwnershipConflict::Insufficient { .. })), "{refused:?}");
        }
        let refused =
            action(&wanted, Some(&role(&["get"], &[], None))).expect_err("list is missing");
        assert!(refused.to_string().contains("does not allow to list jobs"), "{refused}");
        let named = role(&["get"], &["one"], Some("a"));
        assert_eq!(
            action(&named, Some(&role(&["get"], &["one", "two"], None))),
            Ok(ObjectAction::Keep)
        );
        assert!(action(&named, Some(&role(&["get"], &["two"], None))).is_err());
    }

    #[test]
    fn a_secret_of_another_owner_is_never_replaced() {
        let secret = json!({"kind": "Secret", "metadata": {"name": "w", "namespace": "n"}});
        let refused = action(&secret, Some(&secret)).expect_err("in use");
        assert!(refused.to_string().starts_with("Secret n/w exists"), "{refused}");
    }

    #[test]
    fn a_binding_of_another_owner_must_bind_the_account() {
        let binding = |account: &str| {
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "b"},
            "roleRef": {"name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "n"}]})
        };
        assert_eq!(action(&binding("a"), Some(&binding("a"))), Ok(ObjectAction::Keep));
        assert!(action(&binding("a"), Some(&binding("b"))).is_err());
    }
}
