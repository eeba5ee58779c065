//! NetworkPolicies of the pods of a cluster, behind the gate `RayClusterNetworkPolicy`.
//!
//! Source: docs/reference/ray.md §6.

use serde_json::{Value, json};

use super::{context::ClusterContext, ray_container::set_default, services::dashboard_port};
use crate::{
    json::{items, label, list_if_any, merge_patch, name, text, texts},
    names,
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
};

/// The policies that the spec asks for.
pub(crate) fn policy_targets(context: &ClusterContext<'_>) -> Vec<ObjectTarget> {
    wanted_policies(context).iter().map(ObjectTarget::of).collect()
}

fn wanted_policies(context: &ClusterContext<'_>) -> Vec<Value> {
    let options = context.spec.network_policy.as_ref();
    let options = options.filter(|_| context.settings.gates.network_policy);
    options.map_or_else(Vec::new, |options| policies(context, options))
}

/// How many refusals of a sort a pass takes: more than most clusters have groups, because the policies after them wait, and each costs
/// another decision.
const MOST_REFUSALS: usize = 16;

/// Why a policy is not as the spec asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyProblem {
    /// An object of another owner has the name.
    Collision,
    /// The API server refused a write.
    Refusal,
}

/// Makes, corrects and removes the policies of the head and of each group. One that cannot be written must not leave the pods of the others
/// open, so the first problem is returned at the end.
pub(crate) fn reconcile_policies(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
) -> Result<(), PolicyProblem> {
    if !context.settings.gates.network_policy {
        return Ok(());
    }
    // Policies of a field that was removed are deleted below.
    let wanted = wanted_policies(context);
    let (mut result, mut n_refused) = (Ok(()), 0);
    for policy in &wanted {
        let written = apply(context, pass, policy);
        n_refused += usize::from(written == Err(PolicyProblem::Refusal));
        result = result.and(written);
        if n_refused == MOST_REFUSALS {
            break;
        }
    }
    // Also after refusals: a policy that goes may be what a quota has no room for.
    remove_others(context, pass, &wanted);
    result
}

/// Deletes the policies of the cluster that its spec does not ask for.
fn remove_others(context: &ClusterContext<'_>, pass: &mut Pass<'_>, wanted: &[Value]) {
    let mut n_refused = 0;
    let present = context.of_kind("NetworkPolicy").filter(|policy| context.owns(policy));
    for policy in present.filter(|one| !wanted.iter().any(|wanted| name(wanted) == name(one))) {
        match pass.delete(policy) {
            OrderOutcome::Pending => {}
            OrderOutcome::Done(_) => {
                let message = format!("Deleted NetworkPolicy {}", context.path(name(policy)));
                pass.normal("DeletedNetworkPolicy", message);
            }
            OrderOutcome::Refused(_) => n_refused += 1,
        }
        if n_refused == MOST_REFUSALS {
            break;
        }
    }
}

/// What the events about a write say.
struct PolicyWrite {
    done: &'static str,
    failed: &'static str,
    past: &'static str,
    verb: &'static str,
}

const CREATION: PolicyWrite = PolicyWrite {
    done: "CreatedNetworkPolicy",
    failed: "FailedToCreateNetworkPolicy",
    past: "Created",
    verb: "create",
};

const UPDATE: PolicyWrite = PolicyWrite {
    done: "UpdatedNetworkPolicy",
    failed: "FailedToUpdateNetworkPolicy",
    past: "Updated",
    verb: "update",
};

fn apply(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    wanted: &Value,
) -> Result<(), PolicyProblem> {
    let path = context.path(name(wanted));
    match context.child("NetworkPolicy", name(wanted)) {
        None => write(pass, RayStep::Create(wanted.clone()), &CREATION, &path),
        Some(present) if !context.owns(present) => {
            let problem =
                format!("NetworkPolicy {path} already exists and is not owned by this RayCluster");
            let message = format!(
                "{problem}, network isolation will not be applied. Rename the existing NetworkPolicy or use a different RayCluster name to avoid the collision"
            );
            pass.warning("NetworkPolicyNameCollision", message);
            Err(PolicyProblem::Collision)
        }
        Some(present) => match correction(present, wanted) {
            Some(patch) => {
                let step = RayStep::Patch { target: ObjectTarget::of(present), patch };
                write(pass, step, &UPDATE, &path)
            }
            None => Ok(()),
        },
    }
}

/// What turns the spec and the labels of a policy into those that are wanted.
fn correction(present: &Value, wanted: &Value) -> Option<Value> {
    let labels = |policy: &Value| json!(texts(&policy["metadata"]["labels"]));
    let labels = merge_patch(&labels(present), &labels(wanted));
    if present["spec"] == wanted["spec"] && labels.is_none() {
        return None;
    }
    // A merge patch keeps what it does not name, so fields that go are set to null.
    let part = |name: &str| wanted["spec"].get(name).cloned().unwrap_or(Value::Null);
    let mut patch = json!({"spec": {
        "podSelector": part("podSelector"),
        "ingress": part("ingress"),
        "egress": part("egress"),
        "policyTypes": part("policyTypes"),
    }});
    if let Some(labels) = labels {
        patch["metadata"] = json!({"labels": labels});
    }
    Some(patch)
}

fn write(
    pass: &mut Pass<'_>,
    step: RayStep,
    events: &PolicyWrite,
    path: &str,
) -> Result<(), PolicyProblem> {
    match pass.order(step) {
        OrderOutcome::Pending => Ok(()),
        OrderOutcome::Done(_) => {
            pass.normal(events.done, format!("{} NetworkPolicy {path}", events.past));
            Ok(())
        }
        OrderOutcome::Refused(refusal) => {
            let (verb, why) = (events.verb, &refusal.message);
            pass.warning(events.failed, format!("Failed to {verb} NetworkPolicy {path}: {why}"));
            Err(PolicyProblem::Refusal)
        }
    }
}

fn policies(context: &ClusterContext<'_>, options: &Value) -> Vec<Value> {
    let cluster = context.name();
    let head = json!({names::CLUSTER_LABEL: cluster, names::NODE_TYPE_LABEL: "head"});
    let mut head_rules = options["head"].clone();
    if let Some(rule) = submitter_rule(context) {
        // The submitter is no pod of the cluster, so the base rule does not admit it.
        crate::json::list(&mut head_rules, "ingressRules").insert(0, rule);
    }
    let head_name = format!("{cluster}-head");
    let mut policies =
        vec![policy(context, options, &head_name, names::HEAD_GROUP, &head, &head_rules)];
    for group in &context.spec.worker_group_specs {
        let group = &group.group_name;
        let selector = json!({
            names::CLUSTER_LABEL: cluster,
            names::GROUP_LABEL: group,
            names::NODE_TYPE_LABEL: "worker",
        });
        let of_group = items(&options["workerGroups"]).iter().find(|it| it["groupName"] == *group);
        let rules = of_group.unwrap_or(&options["worker"]);
        let name = format!("{cluster}-workers-{group}");
        policies.push(policy(context, options, &name, group, &selector, rules));
    }
    policies
}

/// Admits the submitter of the RayJob that owns the cluster to the dashboard. Labels do not say so: any cluster may have them.
fn submitter_rule(context: &ClusterContext<'_>) -> Option<Value> {
    if label(context.cluster, names::SUBMISSION_MODE_LABEL) != "K8sJobMode" {
        return None;
    }
    let mut owners = items(&context.cluster["metadata"]["ownerReferences"]).iter();
    let owner = owners.find(|owner| owner["controller"] == true && is_ray_job(owner))?;
    Some(json!({
        "from": [{"podSelector": {"matchLabels": {
            names::ORIGIN_NAME_LABEL: owner["name"],
            names::ORIGIN_KIND_LABEL: "RayJob",
        }}}],
        "ports": [{"protocol": "TCP", "port": dashboard_port(context)}],
    }))
}

fn is_ray_job(owner: &Value) -> bool {
    owner["kind"] == "RayJob" && text(&owner["apiVersion"]).starts_with("ray.io/")
}

/// A rule of the spec as the API server stores it, so that it is not taken for one that has drifted: without empty lists, and with
/// protocols.
fn as_stored(rule: &Value) -> Value {
    let mut rule = without_empty_parts(rule);
    for port in list_if_any(&mut rule, "ports") {
        set_default(port, "protocol", json!("TCP"));
    }
    rule
}

fn without_empty_parts(value: &Value) -> Value {
    match value {
        // An empty selector stays: it selects everything.
        Value::Object(fields) => {
            let is_kept = |(key, value): &(&String, &Value)| {
                !value.is_null()
                    && *value != &json!([])
                    && !(*key == "matchLabels" && *value == &json!({}))
            };
            let kept = fields.iter().filter(is_kept);
            kept.map(|(key, value)| (key.clone(), without_empty_parts(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_empty_parts).collect(),
        value => value.clone(),
    }
}

fn policy(
    context: &ClusterContext<'_>,
    options: &Value,
    name: &str,
    group: &str,
    selector: &Value,
    rules: &Value,
) -> Value {
    let peers = json!([{"podSelector": {"matchLabels": {names::CLUSTER_LABEL: context.name()}}}]);
    let mode = text(&options["mode"]);
    let mut spec = json!({"podSelector": {"matchLabels": selector}});
    let mut types = Vec::new();
    for (kind, only, rule, direction, more) in [
        ("Ingress", "DenyAllIngress", "ingress", "from", "ingressRules"),
        ("Egress", "DenyAllEgress", "egress", "to", "egressRules"),
    ] {
        if !["", "DenyAll", only].contains(&mode) {
            continue;
        }
        // Pods of the cluster always reach each other; rules of the spec are added to that.
        let mut list = vec![json!({direction: peers})];
        list.extend(items(&rules[more]).iter().map(as_stored));
        spec[rule] = list.into();
        types.push(kind);
    }
    spec["policyTypes"] = json!(types);
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": name,
            "namespace": context.namespace(),
            "labels": {
                names::CLUSTER_LABEL: context.name(),
                names::GROUP_LABEL: group,
                names::APP_NAME_LABEL: names::APPLICATION,
                names::CREATED_BY_LABEL: names::CREATED_BY,
            },
            "ownerReferences": [context.owner_reference()],
        },
        "spec": spec,
    })
}
