//! The ValidatingAdmissionPolicy on workers about the account of a manager: what its rights allow, and nothing but copies.
//!
//! A role knows kinds and verbs only. The policy knows objects: the account makes suspended copies with an origin, starts none of them,
//! and neither changes nor deletes an object without an origin. Of the status of a copy it writes the preemption gates: another program
//! admits.

use std::collections::BTreeMap;

use crds::names::{gates::ADMISSION, labels::MULTI_KUEUE_ORIGIN};

use crate::{Kind, Kinds, leader_worker_set, pods, pointer::Pointer};

/// The name of the policy and of its binding.
const NAME: &str = "sluice-hub-job-kinds";

/// The user of the account in the manifests.
const USER: &str = "system:serviceaccount:kueue-system:sluice-hub";

/// Policy and binding for these kinds, and for Workloads.
pub(super) fn of(kinds: &Kinds) -> String {
    let rules: String =
        resources(kinds).iter().map(|(group, plurals)| resource_rule(group, plurals)).collect();
    let (before, after) = (origin("oldObject"), origin("object"));
    format!(
        "# The account of the manager makes suspended copies and starts none of them. Objects without its origin are not its own.\n\
         {policy}spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
{rules}  matchConditions:
  - name: account
    expression: \"request.userInfo.username == '{USER}'\"
  variables:
  - name: before
    expression: \"request.operation == 'CREATE' ? '' : {before}\"
  - name: after
    expression: \"request.operation == 'DELETE' ? '' : {after}\"
  - name: kind
    expression: \"request.kind.group + '/' + request.kind.kind\"
  # Whether nothing of it runs, before and after the request.
  - name: held
    expression: |-
      [oldObject, object].map(one, one == null ? true :
{held}      true)
  validations:
  - expression: \"request.operation == 'CREATE' || variables.before != ''\"
    message: \"a manager changes and deletes only objects with the label {MULTI_KUEUE_ORIGIN}\"
  - expression: \"request.operation != 'CREATE' || variables.after != ''\"
    message: \"a manager makes only objects with the label {MULTI_KUEUE_ORIGIN}\"
  - expression: \"request.operation != 'UPDATE' || variables.before == '' || variables.after == variables.before\"
    message: \"the label {MULTI_KUEUE_ORIGIN} cannot change\"
  - expression: \"request.operation != 'CREATE' || variables.held[1]\"
    message: \"a manager makes only suspended jobs and gated pods\"
  - expression: \"request.operation != 'UPDATE' || variables.held[1] || !variables.held[0]\"
    message: \"a manager starts no job: the agent does\"
  - expression: \"request.?subResource.orValue('') != 'status' || {same_status}\"
    message: \"a manager opens preemption gates and admits no Workload\"
---
{binding}spec:
  policyName: {NAME}
  validationActions:
  - Deny
",
        policy = head("ValidatingAdmissionPolicy"),
        binding = head("ValidatingAdmissionPolicyBinding"),
        held = held(kinds),
        same_status = same_status(),
    )
}

fn head(kind: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {NAME}\n"
    )
}

/// Resources by group.
fn resources(kinds: &Kinds) -> BTreeMap<&str, Vec<&str>> {
    let mut resources = BTreeMap::from([("kueue.x-k8s.io", vec!["workloads", "workloads/status"])]);
    for kind in kinds.iter() {
        resources.entry(kind.group()).or_default().push(kind.plural());
    }
    resources
}

/// Every version: a request may name one that is converted.
fn resource_rule(group: &str, plurals: &[&str]) -> String {
    let group = if group.is_empty() { "\"\"" } else { group };
    let plurals: String = plurals.iter().map(|plural| format!("      - {plural}\n")).collect();
    format!(
        "    - apiGroups:\n      - {group}\n      apiVersions:\n      - \"*\"\n      operations:\n      - CREATE\n      - UPDATE\n      \
         - DELETE\n      resources:\n{plurals}"
    )
}

fn origin(object: &str) -> String {
    format!("dyn({object}).metadata.?labels[?'{MULTI_KUEUE_ORIGIN}'].orValue('')")
}

/// Whether the fields of a status that let a Workload run stay as they are.
fn same_status() -> String {
    let of = |object: &str| format!("dyn({object})[?'status'][?field].orValue(null)");
    let fields = "['admission', 'admissionChecks', 'conditions']";
    format!("{fields}.all(field, {} == {})", of("object"), of("oldObject"))
}

/// The lines of the choice by kind. A Workload runs nothing.
fn held(kinds: &Kinds) -> String {
    // Objects of several kinds are checked; without `dyn` the API server would warn about fields that one of them does not have.
    let object = "dyn(one)";
    let mut choices: Vec<(String, Vec<String>)> = Vec::new();
    for kind in kinds.iter() {
        let (held, name) = (held_kind(kind, object), format!("'{}/{}'", kind.group(), kind.name()));
        match choices.iter_mut().find(|(known, _)| *known == held) {
            Some((_, names)) => names.push(name),
            None => choices.push((held, vec![name])),
        }
    }
    let line = |(held, names): &(String, Vec<String>)| {
        format!("      variables.kind in [{}] ? {held} :\n", names.join(", "))
    };
    choices.iter().map(line).collect()
}

/// Whether nothing of an object of this kind runs.
fn held_kind(kind: &Kind, object: &str) -> String {
    if let Some(suspend) = kind.suspend() {
        return format!("{object}{}.orValue(false) == true", optional(suspend));
    }
    if kind == pods::kind() {
        return gated(object, &Pointer::of(&["spec"]));
    }
    if kind == leader_worker_set::kind() {
        let templates = Pointer::of(&["spec", "leaderWorkerTemplate"]);
        let leader = templates.join(&Pointer::of(&["leaderTemplate"]));
        let worker = templates.join(&Pointer::of(&["workerTemplate", "spec"]));
        let of_leader = gated(object, &leader.join(&Pointer::of(&["spec"])));
        // The leader has the template of the workers if it has none.
        let no_leader = format!("!{object}{}.hasValue()", optional(&leader));
        return format!("({no_leader} || {of_leader}) && {}", gated(object, &worker));
    }
    let templates = kind.pods().map(|pods| pods.template.join(&Pointer::of(&["spec"])));
    templates.map_or_else(|| "true".to_owned(), |template| gated(object, &template))
}

/// Whether the pod spec there has the gate of pods that wait for their admission.
fn gated(object: &str, spec: &Pointer) -> String {
    let gates = spec.join(&Pointer::of(&["schedulingGates"]));
    format!("{object}{}.orValue([]).exists(gate, gate.name == '{ADMISSION}')", optional(&gates))
}

/// The selection of a field that may be absent. Names of fields may be no identifiers.
fn optional(pointer: &Pointer) -> String {
    pointer.steps().map(|step| format!("[?'{step}']")).collect()
}
