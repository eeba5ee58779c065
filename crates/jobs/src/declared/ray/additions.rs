//! What Workloads count beside the templates: containers that the operator adds to the head, and the requests of the Job that
//! clears Redis after the cluster.

use std::collections::BTreeMap;

use crds::{
    decode::from_value,
    pod::{Container, PodSpec, ResourceRequirements},
    quantity::{Format, Quantity},
    v1beta2::PodSet,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::{AUTOSCALING, HEAD, RaySpec, submitter};

/// Annotation that asks for a head that survives its failure; a RayJob and a RayService pass it on to their RayCluster.
const FAULT_TOLERANCE: &str = "ray.io/ft-enabled";

impl RaySpec {
    /// Adds to the pod set of the head what the operator adds to its pod.
    pub(in crate::declared) fn count_additions(
        &self,
        metadata: &ObjectMeta,
        object: &Value,
        sets: &mut [PodSet],
    ) {
        let Some(head) = head_of(sets) else { return };
        let Some(cluster) = self.cluster.get(object) else { return };
        if is_fault_tolerant(metadata, cluster) {
            hold_room_for_redis(head);
        }
        if cluster[AUTOSCALING] == true {
            head.containers.push(autoscaler(cluster));
        }
        if self.is_submitted_by_head(object) {
            // The image has no part in the quota. Upstream's Workloads have none here, and a clone with one would not match there.
            head.containers.push(submitter::container(None));
        }
    }

    /// Gives the head of a RayJob that it submits the form of a former version, in which the submitter had the image of the head.
    pub(in crate::declared) fn restore_former_head(sets: &mut [PodSet]) {
        let Some(head) = head_of(sets) else { return };
        let image = head_image(head);
        // The submitter is the container that was added last.
        if let Some(submitter) = head.containers.last_mut() {
            *submitter = submitter::container(image.as_ref());
        }
    }
}

fn head_of(sets: &mut [PodSet]) -> Option<&mut PodSpec> {
    sets.iter_mut().find(|set| set.name == HEAD)?.template.spec.as_deref_mut()
}

impl RaySpec {
    /// Whether the operator may still clear Redis after a deleted job. The Job that does it is a child of the job, so it starts only
    /// while the job has quota.
    pub(in crate::declared) fn awaits_redis_cleanup(
        &self,
        metadata: &ObjectMeta,
        object: &Value,
    ) -> bool {
        let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
        let is_held = self.operator_finalizer.as_ref().is_some_and(|one| finalizers.contains(one));
        let cluster = self.cluster.get(object);
        is_held && cluster.is_some_and(|cluster| is_fault_tolerant(metadata, cluster))
    }
}

/// Requests or limits: thousandths of a CPU, and MiB of memory.
pub(super) fn amounts(milli_cpu: i64, mebibytes: i64) -> BTreeMap<String, Quantity> {
    let nanos = i128::from(mebibytes) * 1024 * 1024 * 1_000_000_000;
    BTreeMap::from([
        ("cpu".to_owned(), Quantity::from_milli(milli_cpu)),
        ("memory".to_owned(), Quantity::from_nanos(nanos, Format::BinarySi)),
    ])
}

/// The image of the Ray container, which is always the first.
pub(super) fn head_image(head: &PodSpec) -> Option<Value> {
    head.containers.first()?.rest.get("image").cloned()
}

fn is_fault_tolerant(metadata: &ObjectMeta, cluster: &Value) -> bool {
    let annotation = metadata.annotations.as_ref().and_then(|all| all.get(FAULT_TOLERANCE));
    cluster["gcsFaultToleranceOptions"].is_object()
        || annotation.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// The Job that clears Redis runs when the pods are gone, in the quota of the head.
fn hold_room_for_redis(head: &mut PodSpec) {
    let Some(ray) = head.containers.first_mut() else { return };
    let resources = ray.resources.get_or_insert_default();
    for (name, least) in amounts(200, 256) {
        // A limit without a request is the request.
        let requested = resources.requests.get(&name).or_else(|| resources.limits.get(&name));
        if requested.is_none_or(|requested| *requested < least) {
            resources.requests.insert(name, least);
        }
    }
}

fn autoscaler(cluster: &Value) -> Container {
    let own = &cluster["autoscalerOptions"]["resources"];
    let own = from_value(own).ok().filter(|_| own.is_object());
    let usual = || {
        let (limits, requests) = (amounts(500, 512), amounts(500, 512));
        ResourceRequirements { limits, requests, ..ResourceRequirements::default() }.into()
    };
    Container {
        name: "autoscaler".to_owned(),
        resources: Some(own.unwrap_or_else(usual)),
        ..Container::default()
    }
}
