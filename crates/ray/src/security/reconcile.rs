//! Which objects a secured RayCluster needs next, and what is removed before it goes.
//!
//! An object is written where it is missing or differs, so that a cluster at rest costs no write.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    authority::authority,
    config::SecuritySettings,
    containers::{CERT_NAMES, CREATE_CERT, client_host},
    exposure::ways,
    mutation::{head_of, mutate},
    network_policies::policies,
    proxy_access,
    secured_cluster::SecuredCluster,
};
use crate::{
    finalizers::OF_SECURITY,
    json::{covers, is_terminating, items, label, merge_patch, name, named, text},
    names,
    pass::{OrderOutcome, Pass, SOON},
    step::{ObjectTarget, RayStep},
};

/// A cluster, and whether it has all that admission would have added.
pub(crate) struct PreparedCluster<'a> {
    pub(crate) cluster: Cow<'a, Value>,
    /// Why something is missing. No pod is made from such a cluster: it would lack its certificate.
    pub(crate) prepared: Result<(), String>,
}

impl<'a> PreparedCluster<'a> {
    pub(crate) fn unchanged(cluster: &'a Value) -> Self {
        Self { cluster: Cow::Borrowed(cluster), prepared: Ok(()) }
    }

    fn refused(cluster: &'a Value, why: String) -> Self {
        Self { cluster: Cow::Borrowed(cluster), prepared: Err(why) }
    }
}

/// Writes what admission would have added. `None` while that is being written, and when the cluster that was read is not the present one.
pub(crate) fn prepare<'a>(
    cluster: &'a Value,
    children: &[&Value],
    settings: &SecuritySettings,
    pass: &mut Pass<'_>,
) -> Option<PreparedCluster<'a>> {
    let mut wanted = cluster.clone();
    if cluster["metadata"]["deletionTimestamp"].is_null() {
        mutate(&mut wanted, Some(cluster), &settings.config);
        if settings.has_proxy() && !OF_SECURITY.is_on(cluster) {
            wanted["metadata"]["finalizers"] = OF_SECURITY.with(cluster).into();
        }
    } else if OF_SECURITY.is_on(cluster) {
        if let Err(why) = remove_bindings(cluster, children, pass) {
            return Some(PreparedCluster::refused(cluster, why));
        }
        wanted["metadata"]["finalizers"] = OF_SECURITY.without(cluster).into();
    }
    let Some(mut patch) = merge_patch(cluster, &wanted) else {
        return Some(PreparedCluster::unchanged(cluster));
    };
    // Lists are replaced as a whole, so the write carries the version that was read.
    patch["metadata"]["resourceVersion"] = cluster["metadata"]["resourceVersion"].clone();
    match pass.order(RayStep::Patch { target: ObjectTarget::of(cluster), patch }) {
        OrderOutcome::Pending => None,
        OrderOutcome::Done(stored) => {
            Some(PreparedCluster { cluster: Cow::Owned(stored.clone()), prepared: Ok(()) })
        }
        OrderOutcome::Refused(refusal) => {
            pass.requeue(SOON);
            // The cluster changed, or it is gone: there is another pass, or none.
            if refusal.is_conflict() || refusal.is_not_found() {
                return None;
            }
            let message = format!("cannot secure RayCluster: {}", refusal.message);
            pass.warning("FailedToSecureRayCluster", message.clone());
            Some(PreparedCluster::refused(cluster, message))
        }
    }
}

/// Removes the ClusterRoleBindings of a cluster: they cannot have an owner in a namespace. The error is about one that stays.
fn remove_bindings(
    cluster: &Value,
    children: &[&Value],
    pass: &mut Pass<'_>,
) -> Result<(), String> {
    let namespace = text(&cluster["metadata"]["namespace"]);
    let mut result = Ok(());
    // By labels: under a bare name may be the binding of a cluster in another namespace.
    for binding in children.iter().copied().filter(|child| {
        child["kind"] == "ClusterRoleBinding"
            && label(child, names::SECURED_CLUSTER_LABEL) == name(cluster)
            && label(child, names::SECURED_NAMESPACE_LABEL) == namespace
    }) {
        if let OrderOutcome::Refused(refusal) = pass.delete(binding) {
            let message =
                format!("cannot delete ClusterRoleBinding {}: {}", name(binding), refusal.message);
            pass.warning("FailedToDeleteClusterRoleBinding", message.clone());
            pass.requeue(SOON);
            result = Err(message);
        }
    }
    result
}

/// Writes what the cluster lacks. The error is about an object without which pods must not be made.
pub(crate) fn reconcile_security(
    cluster: &Value,
    children: &[&Value],
    (settings, salt): (&SecuritySettings, &[u8]),
    pass: &mut Pass<'_>,
) -> Result<(), String> {
    let cluster = SecuredCluster::new(cluster, children, settings);
    let mut result = Ok(());
    for policy in policies(&cluster) {
        result = result.and(apply(&cluster, pass, &policy));
    }
    if settings.config.mtls {
        result = result.and(create_once(&cluster, pass, authority(&cluster), true));
    }
    // As in CodeFlare a suspended cluster keeps what it has.
    if cluster.is_suspended() {
        return result;
    }
    if settings.has_proxy() {
        // A pod of an account that is not there is refused.
        result = result.and(apply(&cluster, pass, &proxy_access::account(&cluster)));
        let secret = proxy_access::secret(&cluster, salt);
        result = result.and(create_once(&cluster, pass, secret, false));
        renew_head(&cluster, pass);
        for object in [proxy_access::service(&cluster), proxy_access::binding(&cluster)] {
            // Without a way to its dashboard a cluster works, so it is made in any case.
            let _ = apply(&cluster, pass, &object);
        }
    }
    for way in ways(&cluster) {
        expose(&cluster, pass, &way);
        remove_former(&cluster, pass, &way);
    }
    result
}

/// Removes the way that an earlier version of the operator made under a name with a hash, once the present one is there and clients accept
/// its certificate: they have one of the two at any time.
fn remove_former(cluster: &SecuredCluster<'_>, pass: &mut Pass<'_>, way: &Value) {
    let kind = text(&way["kind"]);
    let is_own = |object: &&Value| cluster.owns(object) && !is_terminating(object);
    let own = |name: &str| cluster.child(kind, name).filter(is_own);
    let Some(former_name) = cluster.names.former(name(way)) else { return };
    if own(name(way)).is_none() || (name(way) == cluster.names.client() && lacks_host(cluster)) {
        return;
    }
    if let Some(former) =
        own(&former_name).filter(|it| label(it, names::CLUSTER_LABEL) == cluster.names.cluster)
        && let OrderOutcome::Refused(refusal) = pass.delete(former)
    {
        let message = format!("cannot delete {kind} {former_name}: {}", refusal.message);
        // Without a requeue: both lead to the head.
        pass.warning("FailedToSecureRayCluster", message);
    }
}

/// Whether clients refuse the certificate of the head at the present host: the container that makes it stays as it was added, with the
/// host of the former way.
fn lacks_host(cluster: &SecuredCluster<'_>) -> bool {
    let host = format!("DNS:{}", client_host(&cluster.names, &cluster.settings.config));
    let create_cert = named(&head_of(cluster.cluster)["initContainers"], CREATE_CERT);
    create_cert.is_some_and(|container| {
        let hosts = named(&container["env"], CERT_NAMES).map_or("", |it| text(&it["value"]));
        !hosts.split(',').any(|it| it == host)
    })
}

/// Makes a way from outside, unless an object that is not of the cluster has its name: a forced apply would take that over.
fn expose(cluster: &SecuredCluster<'_>, pass: &mut Pass<'_>, way: &Value) {
    let (kind, name) = (text(&way["kind"]), name(way));
    if cluster.child(kind, name).is_some_and(|present| !cluster.owns(present)) {
        let message = format!("{kind} {name} already exists and is not owned by this RayCluster");
        // Without a requeue: the next resync finds the name free.
        pass.warning("FailedToSecureRayCluster", message);
        return;
    }
    // As above: a cluster works without.
    let _ = apply(cluster, pass, way);
}

fn apply(cluster: &SecuredCluster<'_>, pass: &mut Pass<'_>, wanted: &Value) -> Result<(), String> {
    let present = cluster.child(text(&wanted["kind"]), name(wanted));
    if present.is_some_and(|present| covers(present, wanted)) {
        return Ok(());
    }
    order(pass, RayStep::Apply(wanted.clone()), wanted)
}

/// Makes a Secret that is not there. One that is there stays: its content is not held, and certificates or cookies depend on it.
fn create_once(
    cluster: &SecuredCluster<'_>,
    pass: &mut Pass<'_>,
    wanted: Value,
    is_authority: bool,
) -> Result<(), String> {
    if cluster.child("Secret", name(&wanted)).is_some() {
        return Ok(());
    }
    let step = if is_authority {
        RayStep::CreateAuthority(wanted.clone())
    } else {
        RayStep::Create(wanted.clone())
    };
    match pass.order(step) {
        // One of CodeFlare lacks the label by which it would be seen.
        OrderOutcome::Refused(refusal) if refusal.is_conflict() => {
            let mut labelled = wanted;
            for content in ["type", "stringData"] {
                crate::json::object(&mut labelled).remove(content);
            }
            order(pass, RayStep::Apply(labelled.clone()), &labelled)
        }
        outcome => report(pass, &outcome, &wanted),
    }
}

fn order(pass: &mut Pass<'_>, step: RayStep, object: &Value) -> Result<(), String> {
    let outcome = pass.order(step);
    report(pass, &outcome, object)
}

fn report(pass: &mut Pass<'_>, outcome: &OrderOutcome<'_>, object: &Value) -> Result<(), String> {
    let OrderOutcome::Refused(refusal) = outcome else { return Ok(()) };
    let what = format!("{} {}", text(&object["kind"]), name(object));
    let message = format!("cannot write {what}: {}", refusal.message);
    pass.warning("FailedToSecureRayCluster", message.clone());
    pass.requeue(SOON);
    Err(message)
}

/// A head that was made before its account had secrets for images cannot get the image of the proxy. It is made again.
fn renew_head(cluster: &SecuredCluster<'_>, pass: &mut Pass<'_>) {
    let account = cluster.child("ServiceAccount", &cluster.names.proxy_account());
    let wanted = items(account.map_or(&Value::Null, |account| &account["imagePullSecrets"]));
    let uid = &cluster.cluster["metadata"]["uid"];
    let heads = cluster.children.iter().copied().filter(|pod| {
        pod["kind"] == "Pod"
            && label(pod, names::CLUSTER_LABEL) == cluster.names.cluster
            && label(pod, names::NODE_TYPE_LABEL) == "head"
            && pod["metadata"]["deletionTimestamp"].is_null()
            && pod["spec"]["serviceAccountName"] == cluster.names.proxy_account()
            && pod["metadata"]["ownerReferences"][0]["uid"] == *uid
    });
    for head in heads {
        let present = items(&head["spec"]["imagePullSecrets"]);
        if wanted.iter().any(|secret| !present.contains(secret)) {
            let _ = pass.delete(head);
        }
    }
}
