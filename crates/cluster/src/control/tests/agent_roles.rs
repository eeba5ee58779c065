//! The rights of an agent on its cluster: what it observes and reads.

use std::{fs, path::Path};

use ::jobs::integrations::INTEGRATIONS;
use kube::core::{ApiResource, GroupVersionKind};

use super::{super::listing::AGENT_KINDS, *};

/// The rules of all roles of an agent.
fn rules() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/worker/agent");
    let objects = ["roles.yaml", "job-kinds.yaml"].into_iter().flat_map(|file| {
        let text = fs::read_to_string(folder.join(file)).expect("the roles");
        serde_saphyr::from_multiple::<Value>(&text).expect("YAML")
    });
    objects.flat_map(|one| one["rules"].as_array().cloned().unwrap_or_default()).collect()
}

fn may(rules: &[Value], verb: &str, plural: &str) -> bool {
    let has = |list: &Value, wanted: &str| {
        list.as_array().is_some_and(|all| all.iter().any(|one| one == wanted))
    };
    rules.iter().any(|rule| has(&rule["resources"], plural) && has(&rule["verbs"], verb))
}

#[test]
fn an_agent_may_watch_what_it_observes() {
    let rules = rules();
    for kind in AGENT_KINDS {
        let plural = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind)).plural;
        for verb in ["list", "watch"] {
            assert!(may(&rules, verb, &plural), "{verb} {plural}");
        }
    }
}

/// An AppWrapper may have an object of each of these kinds, and its pods may be refused.
#[test]
fn an_agent_may_read_every_owner_between_refused_pods_and_a_job() {
    let rules = rules();
    let plurals = INTEGRATIONS.iter().map(|one| one.plural).chain(["replicasets"]);
    for plural in plurals {
        assert!(may(&rules, "list", plural), "{plural}");
    }
}
