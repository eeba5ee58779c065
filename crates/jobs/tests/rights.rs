//! Rights of the manager's account: those that Kueue's has, and those that `rights/additional.tsv` lists with a reason. Verbs of the
//! roles for users.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

/// One verb on one resource. `named` limits it to objects with names that the role lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    scope: String,
    named: bool,
    group: String,
    resource: String,
    verb: String,
}

const ACCOUNT: &str = "sluice-manager";
const UPSTREAM: &str = include_str!("rights/upstream.tsv");
const ADDITIONAL: &str = include_str!("rights/additional.tsv");

fn words(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The objects in the files of a folder.
fn objects(folder: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config").join(folder);
    let files = fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    let files = files.map(|file| file.path()).filter(|path| path.is_file());
    let texts = files.map(|path| fs::read_to_string(path).expect("a file"));
    texts.flat_map(|text| serde_saphyr::from_multiple::<Value>(&text).expect("YAML")).collect()
}

fn rights_of_rule(scope: &str, rule: &Value) -> Vec<Right> {
    let mut rights = Vec::new();
    for group in words(&rule["apiGroups"]) {
        for resource in words(&rule["resources"]) {
            rights.extend(words(&rule["verbs"]).map(|verb| Right {
                scope: scope.to_owned(),
                named: rule["resourceNames"].is_array(),
                group: group.to_owned(),
                resource: resource.to_owned(),
                verb: verb.to_owned(),
            }));
        }
    }
    rights
}

/// What bindings to the account grant, and the names of bound roles that Kubernetes has itself.
fn granted(objects: &[Value]) -> (BTreeSet<Right>, BTreeSet<String>) {
    let (mut rights, mut of_kubernetes) = (BTreeSet::new(), BTreeSet::new());
    let of_account = |object: &&Value| {
        let mut subjects = object["subjects"].as_array().into_iter().flatten();
        subjects.any(|subject| subject["name"] == ACCOUNT)
    };
    for reference in objects.iter().filter(of_account).map(|binding| &binding["roleRef"]) {
        let is_role = |object: &&Value| {
            object["kind"] == reference["kind"] && object["metadata"]["name"] == reference["name"]
        };
        let scope = if reference["kind"] == "Role" { "namespace" } else { "cluster" };
        match objects.iter().find(is_role) {
            Some(role) => {
                let rules = role["rules"].as_array().into_iter().flatten();
                rights.extend(rules.flat_map(|rule| rights_of_rule(scope, rule)));
            }
            None => drop(of_kubernetes.insert(reference["name"].to_string())),
        }
    }
    (rights, of_kubernetes)
}

/// The rights in a table, each with the reason of its row.
fn listed(table: &str) -> BTreeMap<Right, &str> {
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let mut listed = BTreeMap::new();
    for row in rows {
        let mut columns = row.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let (scope, group, resources, verbs, reason) = (next(), next(), next(), next(), next());
        for resource in resources.split(' ') {
            listed.extend(verbs.split(' ').map(|verb| {
                let right = Right {
                    scope: scope.trim_end_matches(" named").to_owned(),
                    named: scope.ends_with(" named"),
                    group: group.to_owned(),
                    resource: resource.to_owned(),
                    verb: verb.to_owned(),
                };
                (right, reason)
            }));
        }
    }
    listed
}

/// Whether a table has a right, or one that contains it.
fn covers(table: &BTreeMap<Right, &str>, right: &Right) -> bool {
    let scopes = ["cluster", right.scope.as_str()];
    scopes.into_iter().any(|scope| {
        [false, right.named].into_iter().any(|named| {
            table.contains_key(&Right { scope: scope.to_owned(), named, ..right.clone() })
        })
    })
}

/// docs/reference/kueue.md §6.8.
#[test]
fn every_right_is_kueues_or_listed_with_a_reason() {
    let (granted, of_kubernetes) = granted(&objects("rbac"));
    let (upstream, additional) = (listed(UPSTREAM), listed(ADDITIONAL));
    assert!(granted.len() > 200, "{}", granted.len());
    let unlisted: Vec<&Right> = granted
        .iter()
        .filter(|right| !covers(&upstream, right) && !covers(&additional, right))
        .collect();
    assert_eq!(
        unlisted,
        [] as [&Right; 0],
        "beyond Kueue's rights, and not in rights/additional.tsv"
    );
    let stale: Vec<&Right> = additional
        .keys()
        .filter(|right| !granted.contains(right) || covers(&upstream, right))
        .collect();
    assert_eq!(stale, [] as [&Right; 0], "not granted, or Kueue's");
    assert!(additional.values().all(|reason| !reason.is_empty()), "a reason each");
    let expected = ["\"extension-apiserver-authentication-reader\"", "\"system:auth-delegator\""];
    assert_eq!(of_kubernetes, expected.map(str::to_owned).into());
}

#[test]
fn a_wider_right_than_a_listed_one_is_found() {
    let table = listed("cluster named\tg\ta b\tget patch\tfor x\nnamespace\tg\tc\tget\tfor y\n");
    let right = |scope: &str, named, resource: &str| Right {
        scope: scope.to_owned(),
        named,
        group: "g".to_owned(),
        resource: resource.to_owned(),
        verb: "get".to_owned(),
    };
    for narrow in [right("cluster", true, "a"), right("namespace", true, "b")] {
        assert!(covers(&table, &narrow), "{narrow:?}");
    }
    assert!(covers(&table, &right("namespace", true, "c")));
    for wide in [right("cluster", false, "a"), right("cluster", false, "c")] {
        assert!(!covers(&table, &wide), "{wide:?}");
    }
}

/// docs/reference/kueue.md §6.8.
#[test]
fn editors_write_specs_and_viewers_only_read() {
    let roles = objects("rbac/users");
    let mut kinds = 0;
    for role in roles.iter().filter(|object| object["kind"] == "ClusterRole") {
        let name = role["metadata"]["name"].as_str().expect("a name");
        let whole: &[&str] = match name {
            name if name.ends_with("-editor-role") => {
                &["create", "delete", "get", "list", "patch", "update", "watch"]
            }
            name if name.contains("pending-workloads") || name.contains("workload-logs") => {
                &["get"]
            }
            name if name.ends_with("-viewer-role") => &["get", "list", "watch"],
            _ => continue,
        };
        kinds += 1;
        for rule in role["rules"].as_array().into_iter().flatten() {
            let of_status = words(&rule["resources"]).all(|name| name.ends_with("/status"));
            let expected = if of_status { &["get"] } else { whole };
            assert!(words(&rule["verbs"]).eq(expected.iter().copied()), "{name}: {rule}");
        }
    }
    assert!(kinds > 40, "{kinds}");
}
