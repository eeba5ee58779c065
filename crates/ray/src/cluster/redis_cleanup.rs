//! The removal of a cluster's keys from Redis before the cluster goes.
//!
//! Source: docs/reference/ray.md §7.

use std::time::Duration;

use crds::{go_duration, names::gates};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    context::{ClusterContext, label_value},
    failure::Failure,
    head_pod::{has_fixed_name, head_pod},
    ray_container::shell,
};
use crate::{
    finalizers::OF_REDIS,
    json::{annotation, field, is_terminating, items, list, named, object, text},
    names,
    pass::{OrderOutcome, Pass},
    step::RayStep,
};

/// The time after which a cluster goes without a clean-up.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// Conditions of a Job that is over, or about to be.
const JOB_ENDS: &[&str] = &["Complete", "Failed", "FailureTarget"];

/// Removes the keys of one storage namespace. The exit code says whether that worked.
const SCRIPT: &str = r#"echo "Removes the keys of this cluster from Redis." && python -c "
import os, sys
from urllib.parse import urlparse
from ray._private.gcs_utils import cleanup_redis_storage
first = os.environ['RAY_REDIS_ADDRESS'].split(',')[0].strip()
url = urlparse(first if '://' in first else 'redis://' + first)
removed = cleanup_redis_storage(
    host=url.hostname,
    port=url.port,
    password=os.environ.get('REDIS_PASSWORD', url.password or ''),
    use_ssl=url.scheme == 'rediss',
    storage_namespace=os.environ['RAY_external_storage_namespace'],
)
sys.exit(0 if removed else 1)
"
"#;

/// The argument before which the name of a user of Redis is passed.
const AFTER_USERNAME: &str = "    use_ssl=";

/// A Redis with access lists knows a password only together with its user.
const USERNAME: &str = "    username=os.environ.get('REDIS_USERNAME', url.username),\n";

/// Adds the finalizer to a cluster that stores its state in Redis. The error is about pods: those of a cluster without the finalizer
/// would leave their keys behind. None while the write is on its way, and when the cluster that was read is not the present one.
pub(crate) fn add_finalizer(
    context: &ClusterContext<'_>,
    pass: &mut Pass<'_>,
) -> Option<Result<(), Failure>> {
    let wanted = context.settings.redis_cleanup
        && context.is_fault_tolerant()
        && !context.has_embedded_storage();
    if !wanted || OF_REDIS.is_on(context.cluster) {
        return Some(Ok(()));
    }
    OF_REDIS.add(context.cluster, pass).map(|written| written.map_err(Failure::plain))
}

/// What a deleted cluster needs before it may go: no head, then a clean-up Job that ended, or the end of the time for one.
pub(crate) fn finalize(context: &ClusterContext<'_>, pass: &mut Pass<'_>) {
    if !OF_REDIS.is_on(context.cluster) {
        return;
    }
    // The finalizer is from before the backend was set; the state is in the volume.
    if context.has_embedded_storage() {
        OF_REDIS.remove(context.cluster, pass);
        return;
    }
    let name = label_value(&format!("{}-redis-cleanup", context.name()));
    // A head that still runs would write keys again.
    for pod in context.heads().chain(context.workers()) {
        if !is_terminating(pod)
            && let OrderOutcome::Refused(refusal) = pass.delete(pod)
        {
            pass.warning("FailedToDeletePodCollection", refusal.message.clone());
        }
    }
    if context.heads().next().is_some() {
        pass.requeue(Duration::from_secs(10));
        return;
    }
    let timeout = timeout(context);
    // A Redis that is gone would otherwise keep the cluster, and its namespace, for ever.
    if is_overdue(context, timeout) {
        let message = format!(
            "Force-removed GCS FT finalizer after {} due to Redis cleanup timeout; Redis storage namespace {:?} may need manual cleanup",
            go_duration::format(timeout),
            context.storage_namespace()
        );
        pass.warning("ForceDeletedStuckCluster", message);
        OF_REDIS.remove(context.cluster, pass);
        return;
    }
    match context.child("Job", &name) {
        // A clean-up that failed lets the cluster go as well: the Job has no second attempt.
        Some(job) if has_ended(job) => OF_REDIS.remove(context.cluster, pass),
        Some(_) => pass.requeue(Duration::from_secs(2)),
        None => create_job(context, pass, &name),
    }
}

/// The time for a clean-up. A value that is no positive number of seconds counts as none.
fn timeout(context: &ClusterContext<'_>) -> Duration {
    let seconds = annotation(context.cluster, names::FT_DELETION_TIMEOUT).parse::<u64>();
    seconds.ok().filter(|seconds| *seconds > 0).map_or(DEFAULT_TIMEOUT, Duration::from_secs)
}

fn is_overdue(context: &ClusterContext<'_>, timeout: Duration) -> bool {
    let since = text(&context.cluster["metadata"]["deletionTimestamp"]).parse::<Timestamp>();
    let timeout = SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX);
    since.is_ok_and(|since| context.inputs.now.duration_since(since) >= timeout)
}

fn has_ended(job: &Value) -> bool {
    let conditions = items(&job["status"]["conditions"]);
    conditions.iter().any(|condition| {
        condition["status"] == "True" && JOB_ENDS.contains(&text(&condition["type"]))
    })
}

fn create_job(context: &ClusterContext<'_>, pass: &mut Pass<'_>, name: &str) {
    let path = context.path(name);
    match pass.order(RayStep::Create(cleanup_job(context, name))) {
        OrderOutcome::Pending => {}
        OrderOutcome::Done(_) => {
            pass.normal("CreatedRedisCleanupJob", format!("Created Redis cleanup Job {path}"));
            pass.requeue(Duration::from_secs(2));
        }
        OrderOutcome::Refused(refusal) => {
            let message = format!("Failed to create Redis cleanup Job {path}, {}", refusal.message);
            pass.warning("FailedToCreateRedisCleanupJob", message);
            pass.requeue(Duration::from_secs(2));
        }
    }
}

fn cleanup_job(context: &ClusterContext<'_>, name: &str) -> Value {
    let pod = head_pod(context);
    let mut metadata = pod["metadata"].clone();
    // The Job names its pods.
    if !has_fixed_name(context) {
        object(&mut metadata).remove("name");
    }
    // With the label of a head the Service of the head would select the pod.
    *field(field(&mut metadata, "labels"), names::NODE_TYPE_LABEL) = json!("redis-cleanup");
    for key in [names::RECREATE_HASH, names::OPERATOR_VERSION] {
        object(field(&mut metadata, "annotations")).remove(key);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": context.namespace(),
            "labels": metadata["labels"],
            "annotations": metadata["annotations"],
            "ownerReferences": [context.owner_reference()],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": 300,
            "template": {"metadata": metadata, "spec": cleanup_pod(context, &pod["spec"])},
        },
    })
}

/// The gates that Kueue removes from the pods of an admitted RayCluster, but not from those of one that is being deleted.
const ADMISSION_GATES: [&str; 2] = [gates::ELASTIC_JOB, gates::TOPOLOGY];

/// The pod of the head with its Ray container only.
fn cleanup_pod(context: &ClusterContext<'_>, head: &Value) -> Value {
    let mut spec = head.clone();
    remove_admission_gates(&mut spec);
    list(&mut spec, "containers").truncate(1);
    if let Some(container) = list(&mut spec, "containers").first_mut() {
        let ray = object(container);
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            ray.remove(probe);
        }
        ray.insert("command".into(), shell(context));
        ray.insert("args".into(), json!([script(ray)]));
        let resources = json!({"cpu": "200m", "memory": "256Mi"});
        ray.insert("resources".into(), json!({"limits": resources, "requests": resources}));
        let env = list(container, "env");
        env.push(json!({"name": "RAY_redis_db_connect_retries", "value": "120"}));
        env.push(json!({"name": "RAY_redis_db_connect_wait_milliseconds", "value": "500"}));
    }
    *field(&mut spec, "restartPolicy") = json!("Never");
    spec
}

fn remove_admission_gates(spec: &mut Value) {
    let remain = |gate: &&Value| !ADMISSION_GATES.contains(&text(&gate["name"]));
    let others: Vec<Value> =
        items(&spec["schedulingGates"]).iter().filter(remain).cloned().collect();
    if others.is_empty() {
        object(spec).remove("schedulingGates");
    } else {
        *field(spec, "schedulingGates") = json!(others);
    }
}

/// The script for a container. An older Ray has no parameter for the user, so a container without one does not pass it.
fn script(container: &Map<String, Value>) -> String {
    let env = container.get("env").unwrap_or(&Value::Null);
    match named(env, "REDIS_USERNAME") {
        Some(_) => SCRIPT.replacen(AFTER_USERNAME, &format!("{USERNAME}{AFTER_USERNAME}"), 1),
        None => SCRIPT.to_owned(),
    }
}
