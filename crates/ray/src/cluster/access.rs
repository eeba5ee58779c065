//! The account of the autoscaler with its rights, and the Secret with the token of the cluster.
//!
//! Source: docs/reference/ray.md §3 "Other child objects".

use serde_json::{Value, json};

use super::{
    context::{ClusterContext, object_name},
    failure::Failure,
};
use crate::{
    json::{base64, text},
    names,
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The account of the autoscaler: that of the template, or one of its own.
pub(crate) fn service_account_name(context: &ClusterContext<'_>) -> String {
    match given_account(context) {
        "" => object_name(context.name()),
        given => given.to_owned(),
    }
}

fn given_account<'a>(context: &ClusterContext<'a>) -> &'a str {
    text(&context.spec.head_group_spec.template["spec"]["serviceAccountName"])
}

/// The objects here that are looked up by name: account, rights and token.
pub(crate) fn access_objects(context: &ClusterContext<'_>) -> Vec<ObjectTarget> {
    let mut objects = Vec::new();
    if context.is_autoscaling() {
        let (account, rights) = (service_account_name(context), object_name(context.name()));
        objects.push(object(context, "v1", "ServiceAccount", &account));
        objects.push(role(context, &rights));
        objects.push(role_binding(context, &rights, &account));
    }
    objects.extend(token_name(context).map(|name| object(context, "v1", "Secret", &name)));
    objects.iter().map(ObjectTarget::of).collect()
}

/// Makes what the autoscaler needs to change the cluster.
pub(crate) fn reconcile_access(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
) -> Result<(), Failure> {
    if !context.is_autoscaling() {
        return Ok(());
    }
    let account = service_account_name(context);
    if context.child("ServiceAccount", &account).is_none() {
        // An account that the template names belongs to the user, so it is not made here.
        if !given_account(context).is_empty() {
            let message = format!(
                "Failed to reconcile RayCluster {}. If users specify ServiceAccountName for the head Pod, they need to create a ServiceAccount themselves. However, ServiceAccount {account} is not found. Please create one. See the PR description of https://github.com/ray-project/kuberay/pull/1128 for more details.",
                context.path(context.name())
            );
            pass.warning("AutoscalerServiceAccountNotFound", message.clone());
            return Err(Failure::plain(message));
        }
        let object = object(context, "v1", "ServiceAccount", &account);
        create(context, pass, object, &SERVICE_ACCOUNT)?;
    }
    // Role and binding are made for an account of the user as well, which may have no rights yet.
    let role = object_name(context.name());
    if context.child("Role", &role).is_none() {
        create(context, pass, self::role(context, &role), &ROLE)?;
    }
    if context.child("RoleBinding", &role).is_none() {
        create(context, pass, role_binding(context, &role, &account), &ROLE_BINDING)?;
    }
    Ok(())
}

/// How events call a kind.
struct EventNames {
    created: &'static str,
    failed: &'static str,
    noun: &'static str,
}

const SERVICE_ACCOUNT: EventNames = EventNames {
    created: "CreatedServiceAccount",
    failed: "FailedToCreateServiceAccount",
    noun: "service account",
};
const ROLE: EventNames =
    EventNames { created: "CreatedRole", failed: "FailedToCreateRole", noun: "role" };
const ROLE_BINDING: EventNames = EventNames {
    created: "CreatedRoleBinding",
    failed: "FailedToCreateRoleBinding",
    noun: "role binding",
};

fn create(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    object: Value,
    names: &EventNames,
) -> Result<(), Failure> {
    let path = context.path(text(&object["metadata"]["name"]));
    match pass.order(RayStep::Create(object)) {
        OrderOutcome::Pending => {}
        OrderOutcome::Done(_) => {
            pass.normal(names.created, format!("Created {} {path}", names.noun));
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed creating {} {path}, {}", names.noun, refusal.message);
            pass.warning(names.failed, message);
            return Err(Failure::plain(refusal.message.clone()));
        }
    }
    Ok(())
}

fn object(context: &ClusterContext<'_>, api_version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": context.namespace(),
            "labels": {
                names::CLUSTER_LABEL: context.name(),
                names::APP_NAME_LABEL: names::APPLICATION,
                names::CREATED_BY_LABEL: names::CREATED_BY,
            },
            "ownerReferences": [context.owner_reference()],
        },
    })
}

fn role(context: &ClusterContext<'_>, name: &str) -> Value {
    let mut role = object(context, "rbac.authorization.k8s.io/v1", "Role", name);
    role["rules"] = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
        {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get", "patch"]},
    ]);
    role
}

fn role_binding(context: &ClusterContext<'_>, name: &str, account: &str) -> Value {
    let mut binding = object(context, "rbac.authorization.k8s.io/v1", "RoleBinding", name);
    binding["subjects"] =
        json!([{"kind": "ServiceAccount", "name": account, "namespace": context.namespace()}]);
    binding["roleRef"] = json!({"apiGroup": RBAC, "kind": "Role", "name": name});
    binding
}

/// The name of the Secret that is made; none if the spec names one, or tokens of Kubernetes are used.
fn token_name(context: &ClusterContext<'_>) -> Option<String> {
    let options = context.spec.auth_options.as_ref().filter(|options| options.mode == "token")?;
    // A Secret that the spec names belongs to the user.
    let is_given = options.secret_name.as_ref().is_some_and(|name| !name.is_empty());
    let is_made = options.enable_k8s_token_auth != Some(true) && !is_given;
    is_made.then(|| object_name(context.name()))
}

/// Makes the Secret with the token, unless the spec names one or tokens of Kubernetes are used.
pub(crate) fn reconcile_token(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
) -> Result<(), Failure> {
    // A token that exists is never replaced.
    let Some(name) = token_name(context).filter(|name| context.child("Secret", name).is_none())
    else {
        return Ok(());
    };
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": context.namespace(),
            "labels": {names::CLUSTER_LABEL: context.name()},
            "ownerReferences": [context.owner_reference()],
        },
        "type": "Opaque",
        "stringData": {"auth_token": base64(&context.inputs.seed)},
    });
    match pass.order(RayStep::Create(secret)) {
        OrderOutcome::Refused(refusal) => Err(Failure::plain(refusal.message.clone())),
        OrderOutcome::Pending | OrderOutcome::Done(_) => Ok(()),
    }
}
