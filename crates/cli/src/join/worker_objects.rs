//! The objects on the worker: the account of the manager and its rights. Pure.
//!
//! The rights are those of `config/worker/hub`: its roles, that of logs if it is wanted, and the generated role and policy of the kinds
//! of jobs that the manager handles.

use crds::names::{HUB_LEASE_PREFIX, SLUICECTL, annotations::JOINED_HUB, labels::MANAGED_BY};
use jobs::{Kinds, manifests};
use serde_json::{Value, json};

use super::HubAccount;

/// Account, role and binding without the kinds of jobs.
const CORE: &str = include_str!("../../../../config/worker/hub/roles.yaml");

/// Role and binding for pods and their logs.
const LOGS: &str = include_str!("../../../../config/worker/hub/logs.yaml");

/// The name of the account in the manifests.
const MODEL: &str = "sluice-hub";

/// Its user, as conditions of the policy name it.
const MODEL_USER: &str = "system:serviceaccount:kueue-system:sluice-hub";

/// The Lease of the default origin.
const MODEL_LEASE: &str = "sluice-hub-multikueue";

/// The role of `config/worker/ray-api`, which is optional.
pub(super) const RAY_API_ROLE: &str = "sluice-hub-ray-api";

/// The annotation by which the API server fills a Secret with a token.
const ACCOUNT_OF_TOKEN: &str = "kubernetes.io/service-account.name";

/// What the objects of a worker say about the manager.
#[derive(Clone, Debug)]
pub(super) struct HubIdentity {
    /// The uid of its cluster.
    pub(super) uid: String,
    /// Its origin.
    pub(super) origin: String,
    /// Its namespace, which is also that of its Leases on workers.
    pub(super) namespace: String,
}

/// All objects in the order in which they are made, without the token.
///
/// # Errors
/// If the manifests of this build are no YAML.
pub(super) fn account_objects(
    account: &HubAccount,
    kinds: &Kinds,
    logs: bool,
    hub: &HubIdentity,
) -> Result<Vec<Value>, serde_saphyr::Error> {
    let logs = if logs { LOGS } else { "" };
    let text = format!("{CORE}---\n{logs}---\n{}", manifests::of_hub_account(kinds));
    // The verb of a role is a word, whatever it looks like.
    let options = serde_saphyr::options! { strict_booleans: true };
    let roles: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)?;
    let roles = roles.into_iter().filter(has_content).map(|object| renamed(object, account, hub));
    let objects = namespaces(account, hub).into_iter().chain(roles);
    let objects = with_lease(objects.collect(), account, hub);
    Ok(objects.into_iter().map(|object| marked(object, &hub.uid)).collect())
}

/// The namespace of the account, and that of the Leases if it is another one.
fn namespaces(account: &HubAccount, hub: &HubIdentity) -> Vec<Value> {
    let of_leases = (account.namespace != hub.namespace).then_some(hub.namespace.as_str());
    let names = std::iter::once(account.namespace.as_str()).chain(of_leases);
    let named = |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    names.map(named).collect()
}

/// Binds [`RAY_API_ROLE`] to the account; `None` for the account of the manifests, which bind it themselves. The name has the namespace,
/// because an account of the same name may be bound already.
pub(super) fn ray_api_binding(account: &HubAccount, hub: &HubIdentity) -> Option<Value> {
    let HubAccount { namespace, name } = account;
    if user_of(account) == MODEL_USER {
        return None;
    }
    let api = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{name}-{namespace}-ray-api")},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": RAY_API_ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    Some(marked(binding, &hub.uid))
}

/// The Secret that the API server fills with a token without an expiry.
pub(super) fn token_secret(account: &HubAccount, hub: &HubIdentity) -> Value {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": token_secret_name(account), "namespace": account.namespace,
            "annotations": {ACCOUNT_OF_TOKEN: account.name},
        },
    });
    marked(secret, &hub.uid)
}

/// Its name.
pub(super) fn token_secret_name(account: &HubAccount) -> String {
    format!("{}-token", account.name)
}

/// The name of the account as a user.
fn user_of(account: &HubAccount) -> String {
    format!("system:serviceaccount:{}:{}", account.namespace, account.name)
}

/// A kind without jobs has a role without rules.
fn has_content(object: &Value) -> bool {
    !object.is_null()
}

/// The object for another account: names that begin like the model's. Rights of one namespace are those to Leases.
fn renamed(mut object: Value, account: &HubAccount, hub: &HubIdentity) -> Value {
    let rename = |name: &mut Value| {
        let suffix = name.as_str().and_then(|name| name.strip_prefix(MODEL)).map(str::to_owned);
        if let Some(suffix) = suffix {
            *name = json!(format!("{}{suffix}", account.name));
        }
    };
    rename(&mut object["metadata"]["name"]);
    if object["metadata"]["namespace"].is_string() {
        let of_leases = object["kind"] == "Role" || object["kind"] == "RoleBinding";
        let namespace = if of_leases { &hub.namespace } else { &account.namespace };
        object["metadata"]["namespace"] = json!(namespace);
    }
    if object["roleRef"].is_object() {
        rename(&mut object["roleRef"]["name"]);
    }
    if object["spec"]["policyName"].is_string() {
        rename(&mut object["spec"]["policyName"]);
    }
    let user = user_of(account);
    let conditions = object.pointer_mut("/spec/matchConditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let of_user = condition["expression"].as_str().map(|text| text.replace(MODEL_USER, &user));
        condition["expression"] = json!(of_user);
    }
    for subject in object["subjects"].as_array_mut().into_iter().flatten() {
        rename(&mut subject["name"]);
        subject["namespace"] = json!(account.namespace);
    }
    // Reading an absent field by index has made it null.
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| !value.is_null());
    }
    object
}

/// The objects with the right to the Lease of this origin. The role of the manifests, which an administrator may have applied, has the
/// Lease of the default origin; another one has a role of its own.
fn with_lease(mut objects: Vec<Value>, account: &HubAccount, hub: &HubIdentity) -> Vec<Value> {
    let lease = format!("{HUB_LEASE_PREFIX}{}", hub.origin);
    if lease == MODEL_LEASE {
        return objects;
    }
    let mut of_lease = Vec::new();
    for object in &mut objects {
        if let Some(rules) = object.get_mut("rules").and_then(Value::as_array_mut) {
            let (lease, others) =
                rules.drain(..).partition(|rule| rule["resourceNames"] == json!([MODEL_LEASE]));
            *rules = others;
            let lease: Vec<Value> = lease;
            of_lease.extend(lease);
        }
    }
    of_lease.iter_mut().for_each(|rule| rule["resourceNames"] = json!([lease]));
    let name = format!("{}-lease", account.name);
    let metadata = json!({"name": name, "namespace": hub.namespace});
    let api = "rbac.authorization.k8s.io";
    objects.push(json!({
        "apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": metadata, "rules": of_lease,
    }));
    objects.push(json!({
        "apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": api, "kind": "Role", "name": name},
        "subjects": [
            {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace},
        ],
    }));
    objects
}

fn marked(mut object: Value, hub_uid: &str) -> Value {
    object["metadata"]["labels"][MANAGED_BY] = json!(SLUICECTL);
    object["metadata"]["annotations"][JOINED_HUB] = json!(hub_uid);
    object
}

#[cfg(test)]
mod tests {
    use jobs::integrations::ManagedKinds;

    use super::{
        super::ownership::{ObjectAction, OtherHub, action},
        *,
    };

    fn objects(account: &str, namespace: &str) -> Vec<Value> {
        objects_with((account, namespace), false)
    }

    fn objects_with(account: (&str, &str), logs: bool) -> Vec<Value> {
        objects_of(account, logs, "berlin")
    }

    fn objects_of(account: (&str, &str), logs: bool, origin: &str) -> Vec<Value> {
        objects_in(account, logs, (origin, "kueue-system"))
    }

    fn objects_in(
        (account, namespace): (&str, &str),
        logs: bool,
        (origin, hub_namespace): (&str, &str),
    ) -> Vec<Value> {
        let account = HubAccount { namespace: namespace.to_owned(), name: account.to_owned() };
        let managed = ManagedKinds::new(&["batch/job".to_owned()], &[]);
        let kinds = Kinds::built_in().enabled(&managed);
        let hub = HubIdentity {
            uid: "uid-1".to_owned(),
            origin: origin.to_owned(),
            namespace: hub_namespace.to_owned(),
        };
        account_objects(&account, &kinds, logs, &hub).expect("objects")
    }

    #[test]
    fn the_account_has_the_roles_of_the_manifests_for_the_enabled_kinds_only() {
        let objects = objects("sluice-hub", "kueue-system");
        let names: Vec<String> = objects
            .iter()
            .map(|one| format!("{} {}", one["kind"], one["metadata"]["name"]).replace('"', ""))
            .collect();
        let expected = [
            "Namespace kueue-system",
            "ServiceAccount sluice-hub",
            "ClusterRole sluice-hub",
            "ClusterRoleBinding sluice-hub",
            "Role sluice-hub",
            "RoleBinding sluice-hub",
            "ClusterRole sluice-hub-job-kinds",
            "ClusterRoleBinding sluice-hub-job-kinds",
            "ValidatingAdmissionPolicy sluice-hub-job-kinds",
            "ValidatingAdmissionPolicyBinding sluice-hub-job-kinds",
            "Role sluice-hub-lease",
            "RoleBinding sluice-hub-lease",
        ];
        assert_eq!(names, expected);
        let resources: Vec<&Value> = objects[6]["rules"]
            .as_array()
            .expect("rules")
            .iter()
            .map(|rule| &rule["resources"])
            .collect();
        assert_eq!(resources, [&json!(["jobs"])]);
        for object in &objects {
            assert_eq!(object["metadata"]["labels"][MANAGED_BY], "sluicectl");
            assert_eq!(object["metadata"]["annotations"][JOINED_HUB], "uid-1");
        }
    }

    #[test]
    fn the_lease_is_that_of_the_origin() {
        let names = |origin: &str| -> Vec<(Value, Value)> {
            let objects = objects_of(("hub-b", "remote"), false, origin);
            let roles = objects.iter().filter(|one| one["kind"] == "Role");
            let rules = roles.flat_map(|role| {
                let rules = role["rules"].as_array().expect("rules").iter();
                rules.map(|rule| (role["metadata"]["name"].clone(), rule["resourceNames"].clone()))
            });
            rules.filter(|(_, names)| names.is_array()).collect()
        };
        assert_eq!(names("multikueue"), [(json!("hub-b"), json!(["sluice-hub-multikueue"]))]);
        assert_eq!(names("berlin"), [(json!("hub-b-lease"), json!(["sluice-hub-berlin"]))]);
    }

    /// The manager has its Leases on a worker in a namespace of the name of its own, wherever its account is.
    #[test]
    fn rights_to_leases_are_in_the_namespace_of_the_manager() {
        for (account, hub) in [("remote", "kueue-system"), ("kueue-system", "sluice")] {
            let objects = objects_in(("hub-b", account), false, ("berlin", hub));
            let namespaces: Vec<&Value> = objects
                .iter()
                .filter(|one| one["kind"] == "Namespace")
                .map(|one| &one["metadata"]["name"])
                .collect();
            assert_eq!(namespaces, [account, hub]);
            let of_leases: Vec<&Value> = objects
                .iter()
                .filter(|one| one["kind"] == "Role" || one["kind"] == "RoleBinding")
                .collect();
            assert_eq!(of_leases.len(), 4);
            for object in of_leases {
                assert_eq!(object["metadata"]["namespace"], hub, "{object}");
                let subjects = object["subjects"].as_array().into_iter().flatten();
                for subject in subjects {
                    assert_eq!(subject["namespace"], account, "{object}");
                }
            }
        }
    }

    #[test]
    fn another_account_is_bound_to_the_role_of_the_api_of_ray_clusters() {
        let text = include_str!("../../../../config/worker/ray-api/roles.yaml");
        let manifests: Vec<Value> = serde_saphyr::from_multiple(text).expect("the manifests");
        let hub = HubIdentity {
            uid: "uid-1".to_owned(),
            origin: "berlin".to_owned(),
            namespace: "kueue-system".to_owned(),
        };
        let binding = |namespace: &str, name: &str| {
            let account = HubAccount { namespace: namespace.to_owned(), name: name.to_owned() };
            ray_api_binding(&account, &hub)
        };
        assert_eq!(manifests[0]["metadata"]["name"], RAY_API_ROLE);
        assert_eq!(manifests[1]["subjects"][0]["name"], MODEL);
        assert_eq!(binding("kueue-system", MODEL), None);
        for (namespace, name) in [("remote", MODEL), ("kueue-system", "hub-b")] {
            let bound = binding(namespace, name).expect("a binding");
            assert_eq!(bound["roleRef"], manifests[1]["roleRef"]);
            assert_ne!(bound["metadata"]["name"], manifests[1]["metadata"]["name"]);
            let subject = json!([{"kind": "ServiceAccount", "name": name, "namespace": namespace}]);
            assert_eq!(bound["subjects"], subject);
            assert_eq!(bound["metadata"]["annotations"][JOINED_HUB], "uid-1");
        }
    }

    /// The roles of the manifests are applied before `join`, without knowledge of the origin.
    #[test]
    fn applied_roles_suffice_for_any_origin() {
        let applied = objects_of(("sluice-hub", "kueue-system"), false, "multikueue");
        for wanted in objects_of(("sluice-hub", "kueue-system"), false, "berlin") {
            let place = |one: &Value| (one["kind"].clone(), one["metadata"]["name"].clone());
            let existing = applied.iter().find(|one| place(one) == place(&wanted)).cloned();
            let existing = existing.map(|mut one| {
                one["metadata"]["labels"] = json!({});
                one
            });
            let expected = match existing {
                Some(_) => ObjectAction::Keep,
                None => ObjectAction::Apply,
            };
            assert_eq!(action(&wanted, existing.as_ref(), OtherHub::Refuse), Ok(expected));
        }
    }

    #[test]
    fn logs_need_a_role_that_can_be_left_out() {
        let all = objects_with(("hub-b", "remote"), true);
        let of_logs: Vec<&Value> = all
            .iter()
            .filter(|one| one["metadata"]["name"] == "hub-b-logs")
            .map(|one| &one["kind"])
            .collect();
        assert_eq!(of_logs, ["ClusterRole", "ClusterRoleBinding"]);
        let rules = |objects: &[Value]| {
            let rules = objects.iter().filter_map(|one| one["rules"].as_array()).flatten();
            rules.filter(|rule| rule["resources"] == json!(["pods/log"])).count()
        };
        assert_eq!(rules(&all), 1);
        assert_eq!(rules(&objects("hub-b", "remote")), 0);
    }

    #[test]
    fn another_account_has_roles_of_its_own() {
        let objects = objects("hub-b", "remote");
        assert_eq!(
            objects[0]["metadata"],
            json!({"name": "remote",
            "labels": {MANAGED_BY: "sluicectl"}, "annotations": {JOINED_HUB: "uid-1"}})
        );
        assert_eq!(objects[2]["metadata"]["namespace"], "remote");
        assert_eq!(objects[8]["metadata"]["name"], "hub-b-job-kinds");
        assert_eq!(objects[8]["roleRef"]["name"], "hub-b-job-kinds");
        let subject = json!([{"kind": "ServiceAccount", "name": "hub-b", "namespace": "remote"}]);
        assert_eq!(objects[8]["subjects"], subject);
        assert_eq!(objects[4]["subjects"], subject);
        let condition = "request.userInfo.username == 'system:serviceaccount:remote:hub-b'";
        assert_eq!(objects[9]["spec"]["matchConditions"][0]["expression"], condition);
        assert_eq!(objects[10]["metadata"]["name"], "hub-b-job-kinds");
        assert_eq!(objects[10]["spec"]["policyName"], "hub-b-job-kinds");
    }
}
