//! Consistency of the manifests in `config`: the account that webhooks exclude is the manager's, and webhooks are registered as Kueue's.

use jobs::{Kinds, integrations::INTEGRATIONS};
use serde_json::{Value, json};

const ACCOUNT: &str = include_str!("../../../config/rbac/service-account.yaml");
const WEBHOOKS: [&str; 2] = [
    include_str!("../../../config/webhook/mutating.yaml"),
    include_str!("../../../config/webhook/validating.yaml"),
];

#[test]
fn webhooks_exclude_the_managers_own_account() {
    let account: Value = serde_saphyr::from_str(ACCOUNT).expect("YAML");
    let part = |name: &str| account["metadata"][name].as_str().expect("a name").to_owned();
    let user = format!("system:serviceaccount:{}:{}", part("namespace"), part("name"));
    let mut spared = Vec::new();
    for file in WEBHOOKS {
        let configuration: Value = serde_saphyr::from_str(file).expect("YAML");
        for webhook in configuration["webhooks"].as_array().expect("webhooks") {
            let name = webhook["name"].as_str().expect("a name").to_owned();
            for condition in webhook["matchConditions"].as_array().into_iter().flatten() {
                let expected = format!("request.userInfo.username != '{user}'");
                assert_eq!(condition["expression"], expected.as_str(), "{name}");
                spared.push(name.clone());
            }
        }
    }
    let validated =
        Kinds::built_in().into_iter().map(|kind| format!("v{}.kb.io", kind.name().to_lowercase()));
    let mut expected: Vec<String> = validated.collect();
    expected.extend(["mworkload.kb.io", "vworkload.kb.io"].map(str::to_owned));
    expected.sort();
    assert_eq!(spared, expected);
}

/// The words of a list.
fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A registered webhook.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RegisteredWebhook {
    name: String,
    /// Group and version.
    version: String,
    resources: String,
    operations: String,
}

/// The webhooks of a configuration.
fn registered(file: &str) -> Vec<RegisteredWebhook> {
    let configuration: Value = serde_saphyr::from_str(file).expect("YAML");
    let webhooks = configuration["webhooks"].as_array().expect("webhooks").iter();
    let one = |webhook: &Value| {
        let rules = webhook["rules"].as_array().expect("rules");
        assert_eq!(rules.len(), 1, "{webhook}");
        let list = |name: &str| words(&rules[0][name]).join(" ");
        RegisteredWebhook {
            name: webhook["name"].as_str().expect("a name").to_owned(),
            version: format!("{}/{}", list("apiGroups"), list("apiVersions")),
            resources: list("resources"),
            operations: list("operations"),
        }
    };
    webhooks.map(one).collect()
}

/// The table of docs/reference/kueue.md §5.1, for kinds of jobs from their list. A name is that of upstream: the letter of the
/// configuration and the kind.
fn expected(mutating: bool) -> Vec<RegisteredWebhook> {
    const CREATE: &str = "CREATE";
    const BOTH: &str = "CREATE UPDATE";
    let own = [
        ("ClusterQueue", "clusterqueues", CREATE, BOTH),
        ("Cohort", "cohorts", "", BOTH),
        ("ResourceFlavor", "resourceflavors", CREATE, BOTH),
        (
            "Workload",
            if mutating { "workloads" } else { "workloads workloads/status" },
            CREATE,
            BOTH,
        ),
    ];
    let own = own.map(|one| ("kueue.x-k8s.io/v1beta2".to_owned(), one));
    let jobs = INTEGRATIONS.iter().map(|one| {
        let of_sets = ["deployments", "statefulsets", "leaderworkersets"].contains(&one.plural);
        let mutate = if of_sets { BOTH } else { CREATE };
        (format!("{}/{}", one.group, one.version), (one.kind, one.plural, mutate, BOTH))
    });
    let letter = if mutating { 'm' } else { 'v' };
    let all = own.into_iter().chain(jobs).map(|(version, (kind, resources, mutate, validate))| {
        RegisteredWebhook {
            name: format!("{letter}{}.kb.io", kind.to_lowercase()),
            version,
            resources: resources.to_owned(),
            operations: if mutating { mutate } else { validate }.to_owned(),
        }
    });
    let mut all: Vec<_> = all.filter(|one| !one.operations.is_empty()).collect();
    all.sort();
    all
}

#[test]
fn webhooks_have_the_names_versions_and_operations_of_kueues() {
    for (file, mutating) in WEBHOOKS.iter().zip([true, false]) {
        let mut registered = registered(file);
        registered.sort();
        assert_eq!(registered, expected(mutating), "mutating: {mutating}");
    }
}

/// docs/reference/kueue.md §5.1.
#[test]
fn webhooks_fail_closed_have_no_side_effects_and_spare_system_namespaces() {
    let excluded = json!({"matchExpressions": [{
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", "kueue-system"],
    }]});
    for file in WEBHOOKS {
        let configuration: Value = serde_saphyr::from_str(file).expect("YAML");
        for webhook in configuration["webhooks"].as_array().expect("webhooks") {
            let name = &webhook["name"];
            assert_eq!(webhook["failurePolicy"], "Fail", "{name}");
            assert_eq!(webhook["sideEffects"], "None", "{name}");
            assert_eq!(webhook["admissionReviewVersions"], json!(["v1"]), "{name}");
            // Without a value the API server waits for 10 s.
            assert_eq!(webhook["timeoutSeconds"], Value::Null, "{name}");
            assert_eq!(webhook["objectSelector"], Value::Null, "{name}");
            let of_kueue = words(&webhook["rules"][0]["apiGroups"]) == ["kueue.x-k8s.io"];
            let namespaces = if of_kueue { Value::Null } else { excluded.clone() };
            assert_eq!(webhook["namespaceSelector"], namespaces, "{name}");
        }
    }
}
