//! Kinds that are mirrored and nothing else (docs/reference/multikueue.md §2.7, external GVK).
//!
//! A program of its own makes and starts the jobs of such a kind, and their Workloads. Their pods are unknown here; what is known is
//! the field with the controller of a job, which must name MultiKueue, and that a status is one field.

use crds::plural::guessed_plural;

use crate::{
    Kind,
    kind::{KindDefinition, ManagedBy},
    pointer::Pointer,
};

/// The field that every such kind has.
const MANAGED_BY: &str = "/spec/managedBy";

/// The kind that `Kind.version.group` names. The name of its resource is guessed.
#[must_use]
pub fn kind(name: &str) -> Option<Kind> {
    named(name, None)
}

/// The same kind with this name of its resource.
#[must_use]
pub fn with_plural(kind: &Kind, plural: &str) -> Option<Kind> {
    named(kind.framework(), Some(plural))
}

fn named(name: &str, resource: Option<&str>) -> Option<Kind> {
    let mut parts = name.splitn(3, '.').map(str::to_owned);
    let (kind, version, group) = (parts.next()?, parts.next()?, parts.next()?);
    let at: Pointer = serde_json::from_value(serde_json::json!(MANAGED_BY)).ok()?;
    Some(Kind::of_code(KindDefinition {
        framework: name.to_owned(),
        // The configuration does not name resources.
        plural: resource.map_or_else(|| guessed_plural(&kind), str::to_owned),
        group,
        version,
        kind,
        prebuilt: true,
        elastic: false,
        suspend: None,
        managed_by: Some(ManagedBy { at, controller: String::new() }),
        selector: None,
        members: None,
        lookups: Vec::new(),
        pods: None,
        fields: None,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        GenericJob, JobGates, JobObject,
        dispatch::remote_objects::{RemoteIdentity, remote_job},
        reconcile::{ReconcileContext, pods_ready, reconcile},
        start::admitted_infos::{AssignedFlavors, FlavorsByName},
    };

    fn recipe(managed_by: &Value, status: &Value) -> JobObject {
        let kind = kind("Recipe.v1.kitchen.example.com").expect("a kind");
        let object = json!({
            "metadata": { "name": "soup", "namespace": "ns", "uid": "u", "resourceVersion": "5" },
            "spec": { "managedBy": managed_by, "serves": 4 }, "status": status,
        });
        kind.decode(object).expect("it decodes")
    }

    #[test]
    fn a_name_stands_for_a_kind() {
        let plural = |name: &str| kind(name).map(|kind| kind.plural().to_owned());
        assert_eq!(plural("Recipe.v1.kitchen.example.com").as_deref(), Some("recipes"));
        assert_eq!(plural("Policy.v1.example.com").as_deref(), Some("policies"));
        assert_eq!(plural("Glass.v1.example.com").as_deref(), Some("glasses"));
        assert_eq!(plural("Recipe"), None);
        let dish = kind("Dish.v1.kitchen.example.com").expect("a kind");
        let dish = with_plural(&dish, "dishes").expect("a kind");
        assert_eq!(
            (dish.plural(), dish.name(), dish.group()),
            ("dishes", "Dish", "kitchen.example.com")
        );
    }

    #[test]
    fn a_copy_has_the_spec_without_its_controller_and_gives_its_status_back() {
        let hub = recipe(&json!("kueue.x-k8s.io/multikueue"), &json!({ "phase": "Waiting" }));
        assert_eq!(hub.managed_by(), Some("kueue.x-k8s.io/multikueue"));
        let workload = serde_json::from_value(json!({ "metadata": { "name": "w" } }));
        let workload = workload.expect("a Workload decodes");
        let identity =
            RemoteIdentity { origin: "hub", epoch: 1, incarnation: 1, term: 1, lease: None };
        let copy = remote_job(&hub, &workload, identity, JobGates::default());
        let object = copy.to_create();
        assert_eq!(object["spec"], json!({ "serves": 4 }));
        assert_eq!(object.get("status"), None);
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(annotations["kueue.x-k8s.io/prebuilt-workload-name"], "w");
        let done = recipe(&json!(null), &json!({ "phase": "Served" }));
        assert!(!hub.has_status_of(&done));
        assert_eq!(hub.with_remote_status(&done).status(), json!({ "phase": "Served" }));
        let silent = recipe(&json!(null), &json!(null));
        assert_eq!(hub.with_remote_status(&silent).status(), json!({ "phase": "Waiting" }));
        assert!(hub.has_status_of(&silent), "there is nothing to copy");
        let empty = recipe(&json!(null), &json!({}));
        assert!(!hub.has_status_of(&empty), "an empty status is one");
    }

    #[test]
    fn nothing_is_decided_about_its_jobs() {
        let job = recipe(&json!(null), &json!({}));
        let context = ReconcileContext {
            workloads: &[],
            previous_workload: None,
            prebuilt: false,
            flavors: AssignedFlavors::Own(&FlavorsByName::new()),
            gates: JobGates::default(),
            now: "2026-01-01T00:00:00Z".parse().expect("a time"),
        };
        assert_eq!(reconcile(&job, context), []);
        assert_eq!(pods_ready(&job, &Default::default(), JobGates::default()), None);
    }
}
