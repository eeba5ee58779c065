//! Services that a decision looks up by their names, so that also those of users count, which have no label of the RayService.
//!
//! Source: docs/reference/ray.md §9.

use serde_json::Value;

use super::services::serve_service_name;
use crate::{
    json::{is_run_elsewhere, is_terminating, name, text},
    names,
    settings::OperatorSettings,
    step::RayTarget,
};

/// The Service of the head, and those of whatever serves. Each name that has no Service costs a read per pass.
#[must_use]
pub fn named_objects(service: &Value, settings: &OperatorSettings) -> Vec<RayTarget> {
    if is_terminating(service) || is_run_elsewhere(service) {
        return Vec::new();
    }
    let strategy = &service["spec"]["upgradeStrategy"]["type"];
    let head = format!("{}-head-svc", name(service));
    let serve = if settings.gates.incremental_upgrade && *strategy == names::INCREMENTAL_UPGRADE {
        let clusters = ["activeServiceStatus", "pendingServiceStatus"]
            .map(|part| text(&service["status"][part]["rayClusterName"]));
        let clusters = clusters.into_iter().filter(|cluster| !cluster.is_empty());
        clusters.map(|cluster| serve_service_name("", cluster)).collect()
    } else {
        vec![serve_service_name(name(&service["spec"]["serveService"]), name(service))]
    };
    let wanted = std::iter::once(head).chain(serve);
    wanted.map(|name| RayTarget::named("v1", "Service", name)).collect()
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
            (incremental.clone(), true, vec!["s-head-svc", "c-serve-svc"]),
            (incremental, false, vec!["s-head-svc", "s-serve-svc"]),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), true, vec![]),
            (json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}), true, vec![]),
        ] {
            assert_eq!(names_of(&fields, gate), expected, "{fields}");
        }
    }
}
