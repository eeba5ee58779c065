//! The API server lets an operator grant only what it has itself, so the role of the agent must cover the roles that a decision makes.

use std::path::Path;

use jiff::Timestamp;
use ray::{PassInputs, cluster, settings::OperatorSettings, step::RayStep};
use serde_json::{Value, json};

/// The rules of the roles of a file below `config/worker`.
fn rules(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/worker").join(file);
    let text = std::fs::read_to_string(path).expect("the manifest is there");
    let documents = text.split("\n---\n");
    let documents = documents.map(|text| serde_saphyr::from_str(text).expect("it decodes"));
    documents.flat_map(|document: Value| items(&document, "rules")).collect()
}

/// The rules of the role that operators add.
fn rules_of_agent() -> Vec<Value> {
    rules("operators/roles.yaml")
}

/// The rules of the role that an autoscaler gets.
fn rules_of_autoscaler() -> Vec<Value> {
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    let cluster = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
        "spec": {"enableInTreeAutoscaling": true, "headGroupSpec": {"template": template}},
    });
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    let steps = cluster::decide(&cluster, &[], &[], &inputs, &OperatorSettings::default());
    let role = steps.into_iter().find_map(|step| match step {
        RayStep::Create(object) if object["kind"] == "Role" => Some(object),
        _ => None,
    });
    role.expect("a role")["rules"].as_array().expect("rules").clone()
}

fn has(list: &Value, wanted: &Value) -> bool {
    list.as_array().is_some_and(|list| list.contains(wanted))
}

fn items(rule: &Value, field: &str) -> Vec<Value> {
    rule[field].as_array().cloned().unwrap_or_default()
}

#[test]
fn the_agent_has_every_right_that_it_grants_to_an_autoscaler() {
    let agent = rules_of_agent();
    let mut n_checked = 0;
    for rule in rules_of_autoscaler() {
        for group in items(&rule, "apiGroups") {
            for resource in items(&rule, "resources") {
                for verb in items(&rule, "verbs") {
                    let covers = |own: &Value| {
                        has(&own["apiGroups"], &group)
                            && has(&own["resources"], &resource)
                            && has(&own["verbs"], &verb)
                            && own["resourceNames"].is_null()
                    };
                    assert!(agent.iter().any(covers), "{verb} {resource} of {group}");
                    n_checked += 1;
                }
            }
        }
    }
    assert_eq!(n_checked, 7, "four verbs for pods, one for their size, two for the RayCluster");
}

#[test]
fn an_agent_with_operators_makes_components_of_all_kinds_that_it_starts() {
    let (jobs, operators) = (rules("agent/job-kinds.yaml"), rules_of_agent());
    let components = rules("operators/component-kinds.yaml");
    let mut n_checked = 0;
    // The kinds that the agent starts are those that it may change.
    for started in jobs.iter().filter(|rule| has(&rule["verbs"], &json!("patch"))) {
        let (group, resource) = (&started["apiGroups"][0], &started["resources"][0]);
        if resource.as_str().is_some_and(|resource| resource.contains('/')) {
            continue;
        }
        for verb in ["create", "delete", "get"].map(|verb| json!(verb)) {
            let covers = |own: &Value| {
                has(&own["apiGroups"], group)
                    && has(&own["resources"], resource)
                    && has(&own["verbs"], &verb)
            };
            let all = components.iter().chain(&operators);
            assert!(all.clone().any(covers), "{verb} {resource} of {group}");
            n_checked += 1;
        }
    }
    // The pods of a Deployment are jobs, it is none itself, and so the agent starts none; an AppWrapper may contain it.
    let makes_deployments = |own: &Value| {
        has(&own["resources"], &json!("deployments")) && has(&own["verbs"], &json!("create"))
    };
    assert!(components.iter().any(makes_deployments));
    assert!(n_checked >= 3 * 15, "{n_checked}");
}

#[test]
fn an_agent_without_operators_makes_only_reports_and_reads_no_secret() {
    let [agent, jobs] = ["agent/roles.yaml", "agent/job-kinds.yaml"].map(rules);
    assert!(!agent.is_empty() && !jobs.is_empty());
    let mut made = Vec::new();
    for rule in agent.iter().chain(&jobs) {
        assert!(!has(&rule["resources"], &json!("*")) && !has(&rule["verbs"], &json!("*")));
        for resource in ["secrets", "roles", "rolebindings", "serviceaccounts", "ingresses"] {
            assert!(!has(&rule["resources"], &json!(resource)), "{rule}");
        }
        if has(&rule["verbs"], &json!("create")) {
            made.extend(items(rule, "resources"));
        }
    }
    assert_eq!(made, ["clustercapacities", "events", "leases"]);
    // The rights to make what a RayCluster needs come with the operators.
    let operators = rules_of_agent();
    let makes = |rule: &Value| has(&rule["verbs"], &json!("create"));
    assert!(operators.iter().any(|rule| makes(rule) && has(&rule["resources"], &json!("secrets"))));
}
