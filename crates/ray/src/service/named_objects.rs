//! What a decision about a RayService reads of its namespace, and the objects that it looks up by their names: Services of users count as
//! well, and routes bear no label of the RayService.
//!
//! Source: docs/reference/ray.md §9.

use serde_json::Value;

use super::{gateway, services::serve_service_name, state::clusters_of};
use crate::{
    json::{is_owned, is_run_elsewhere, is_terminating, label, name, text},
    names,
    settings::OperatorSettings,
    step::ObjectTarget,
};

/// The Service of the head, those of whatever serves, and what routes traffic step by step. Each name without an object costs a read per
/// pass.
#[must_use]
pub fn named_objects(service: &Value, settings: &OperatorSettings) -> Vec<ObjectTarget> {
    if is_terminating(service) || is_run_elsewhere(service) {
        return Vec::new();
    }
    let is_incremental = service["spec"]["upgradeStrategy"]["type"] == names::INCREMENTAL_UPGRADE;
    let head = names::head_service_name(name(service));
    let serve = if settings.gates.incremental_upgrade && is_incremental {
        serve_services_of_clusters(service).collect()
    } else {
        vec![serve_service_name(name(&service["spec"]["serveService"]), name(service))]
    };
    let wanted = std::iter::once(head).chain(serve);
    let services = wanted.map(|name| ObjectTarget::named("v1", "Service", name));
    // Also without the gate: a suspension removes what was made before the gate was set off.
    let routes = is_incremental.then(|| routes_of(name(service)));
    services.chain(routes.into_iter().flatten()).collect()
}

fn routes_of(service: &str) -> [ObjectTarget; 2] {
    [
        ObjectTarget::named(gateway::API, "Gateway", names::gateway_name(service)),
        ObjectTarget::named(gateway::API, "HTTPRoute", names::route_name(service)),
    ]
}

fn serve_services_of_clusters(service: &Value) -> impl Iterator<Item = String> {
    let clusters = clusters_of(service).into_iter().filter(|cluster| !cluster.is_empty());
    clusters.map(names::serve_service_name)
}

/// Returns whether the decision about a RayService reads an object of its namespace.
#[must_use]
pub fn reads(service: &Value, object: &Value) -> bool {
    is_owned(object, service)
        || match text(&object["kind"]) {
            "Pod" => {
                let cluster = label(object, names::CLUSTER_LABEL);
                !cluster.is_empty() && clusters_of(service).contains(&cluster)
            }
            // Also one of another owner, which is then left alone.
            "Service" => services_of(service).any(|it| it == name(object)),
            _ => false,
        }
}

/// The names of the Services that a RayService makes, before and after a change of its upgrades.
fn services_of(service: &Value) -> impl Iterator<Item = String> {
    let given = name(&service["spec"]["serveService"]);
    let own = name(service);
    let of_service = [
        names::head_service_name(own),
        names::serve_service_name(own),
        serve_service_name(given, own),
    ];
    of_service.into_iter().chain(serve_services_of_clusters(service))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names_of(fields: &Value, incremental_upgrade: bool) -> Vec<String> {
        let mut service = json!({
            "metadata": {"name": "s"},
            "status": {"activeServiceStatus": {"rayClusterName": "c"}},
        });
        json_patch::merge(&mut service, fields);
        let mut settings = OperatorSettings::default();
        settings.gates.incremental_upgrade = incremental_upgrade;
        named_objects(&service, &settings).into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn a_service_names_what_it_looks_up() {
        let incremental =
            json!({"spec": {"upgradeStrategy": {"type": names::INCREMENTAL_UPGRADE}}});
        let given = json!({"spec": {"serveService": {"metadata": {"name": "own"}}}});
        for (fields, gate, expected) in [
            (json!({}), true, vec!["s-head-svc", "s-serve-svc"]),
            (given, true, vec!["s-head-svc", "own"]),
            (
                incremental.clone(),
                true,
                vec!["s-head-svc", "c-serve-svc", "s-gateway", "s-httproute"],
            ),
            (incremental, false, vec!["s-head-svc", "s-serve-svc", "s-gateway", "s-httproute"]),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), true, vec![]),
            (json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}), true, vec![]),
        ] {
            assert_eq!(names_of(&fields, gate), expected, "{fields}");
        }
    }

    #[test]
    fn a_ray_service_reads_its_clusters_their_pods_and_services_of_its_names() {
        let service = json!({
            "metadata": {"name": "s", "uid": "u"},
            "status": {
                "activeServiceStatus": {"rayClusterName": "s-a"},
                "pendingServiceStatus": {"rayClusterName": "s-b"},
            },
        });
        let is_read = |object| reads(&service, &object);
        let pod = |cluster: &str| json!({"kind": "Pod", "metadata": {"labels": {"ray.io/cluster": cluster}}});
        let named = |kind: &str, name: &str| json!({"kind": kind, "metadata": {"name": name}});
        assert!(is_read(pod("s-a")) && is_read(pod("s-b")) && !is_read(pod("s-c")));
        assert!(is_read(named("Service", "s-head-svc")));
        assert!(is_read(named("Service", "s-b-serve-svc")));
        assert!(
            !is_read(named("Service", "s-c-serve-svc")) && !is_read(named("RayCluster", "s-a"))
        );
        let owned = json!({"kind": "RayCluster", "metadata": {"ownerReferences": [{"uid": "u"}]}});
        assert!(is_read(owned));
        let fresh = json!({"metadata": {"name": "s", "uid": "u"}});
        let unlabelled = json!({"kind": "Pod", "metadata": {"name": "p"}});
        assert!(!reads(&fresh, &unlabelled), "no cluster, no pods");
    }
}
