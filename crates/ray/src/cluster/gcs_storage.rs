//! The volume of the head's state, behind the gate `GCSFaultToleranceEmbeddedStorage`.
//!
//! Source: docs/reference/ray.md §3 "Other child objects", §7.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{context::ClusterContext, failure::Failure, resources::quantity};
use crate::{
    json::{items, list, name, text},
    names,
    pass::{OrderOutcome, Pass},
    step::{ObjectTarget, RayStep},
    v1::GcsStorage,
};

/// The name of the volume in the head.
pub(crate) const VOLUME: &str = "gcs-storage";

/// Where the head mounts it.
pub(crate) const PATH: &str = "/data/gcs";

fn storage(context: &ClusterContext<'_>) -> Option<GcsStorage> {
    let options = context.spec.gcs_fault_tolerance_options.as_ref();
    let options = options.filter(|_| context.has_embedded_storage())?;
    Some(options.storage.clone().unwrap_or_default())
}

fn claim_name(context: &ClusterContext<'_>, storage: &GcsStorage) -> String {
    match storage.claim_name.as_str() {
        "" => format!("{}-gcs-pvc", context.name()),
        given => given.to_owned(),
    }
}

/// Mounts the volume in the head.
pub(crate) fn mount(context: &ClusterContext<'_>, spec: &mut Value) {
    let Some(storage) = storage(context) else { return };
    let claim = claim_name(context, &storage);
    list(spec, "volumes")
        .push(json!({"name": VOLUME, "persistentVolumeClaim": {"claimName": claim}}));
    let mut mount = json!({"name": VOLUME, "mountPath": PATH});
    if !storage.sub_path.is_empty() {
        mount["subPath"] = json!(storage.sub_path);
    }
    if let Some(container) = list(spec, "containers").first_mut() {
        list(container, "volumeMounts").push(mount);
    }
}

/// The claim, if there is one.
pub(crate) fn claim_target(context: &ClusterContext<'_>) -> Option<ObjectTarget> {
    let storage = storage(context)?;
    Some(ObjectTarget::of(&claim(context, &storage, &claim_name(context, &storage))))
}

/// Makes the claim. A claim that the spec names belongs to the user.
pub(crate) fn reconcile_claim(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
) -> Result<(), Failure> {
    let Some(storage) = storage(context) else { return Ok(()) };
    let name = claim_name(context, &storage);
    if let Some(present) = context.child("PersistentVolumeClaim", &name) {
        // A claim of the user may have any size.
        if storage.claim_name.is_empty() {
            warn_of_difference(context, pass, (present, &claim(context, &storage, &name)));
        }
        return Ok(());
    }
    if !storage.claim_name.is_empty() {
        let message = format!(
            "GcsFaultToleranceOptions.Storage.ClaimName {name:?} not found in namespace {}; the head Pod will not start until it exists",
            context.namespace()
        );
        // No error: the pod is created, and starts once the claim exists.
        pass.warning("FailedToCreatePVC", message);
        return Ok(());
    }
    let path = context.path(&name);
    match pass.order(RayStep::Create(claim(context, &storage, &name))) {
        OrderOutcome::Pending => Ok(()),
        OrderOutcome::Done(_) => {
            pass.normal("CreatedPVC", format!("Created GCS storage PVC {path}"));
            Ok(())
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to create GCS storage PVC {path}, {}", refusal.message);
            pass.warning("FailedToCreatePVC", message);
            Err(Failure::plain(refusal.message.clone()))
        }
    }
}

/// Says that a claim is not as the spec has it now: its fields cannot be changed, and its data stays.
fn warn_of_difference(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
    (present, wanted): (&Value, &Value),
) {
    let (present, path) = (&present["spec"], context.path(name(present)));
    let wanted = &wanted["spec"];
    let size = |spec: &Value| quantity(&spec["resources"]["requests"]["storage"]);
    let modes = |spec: &Value| -> BTreeSet<String> {
        items(&spec["accessModes"]).iter().map(|mode| text(mode).to_owned()).collect()
    };
    // Without a class in the spec the cluster has chosen one.
    let class = &wanted["storageClassName"];
    let differs = [
        ("size", size(present) != size(wanted)),
        ("accessModes", modes(present) != modes(wanted)),
        ("storageClassName", !class.is_null() && present["storageClassName"] != *class),
    ];
    let fields: Vec<&str> = differs.iter().filter(|it| it.1).map(|it| it.0).collect();
    if !fields.is_empty() {
        let message = format!(
            "GCS storage PVC {path} has another {} than the spec and cannot be reconfigured in place",
            fields.join(", ")
        );
        pass.warning("FailedToCreatePVC", message);
    }
}

fn claim(context: &ClusterContext<'_>, storage: &GcsStorage, name: &str) -> Value {
    let modes = match storage.access_modes.as_slice() {
        // The head alone mounts the volume.
        [] => json!(["ReadWriteOnce"]),
        modes => json!(modes),
    };
    let size = storage.size.as_ref().map_or_else(|| "1Gi".to_owned(), ToString::to_string);
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": context.namespace(),
            "labels": {names::CLUSTER_LABEL: context.name()},
        },
        "spec": {"accessModes": modes, "resources": {"requests": {"storage": size}}},
    });
    if let Some(class) = &storage.storage_class_name {
        claim["spec"]["storageClassName"] = json!(class);
    }
    // Without an owner the claim outlives the cluster.
    if storage.deletion_policy != "Retain" {
        claim["metadata"]["ownerReferences"] = json!([context.owner_reference()]);
    }
    claim
}
