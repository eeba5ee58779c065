//! Steps in which the official operator of Ray does what ours does not.

use ray::names::WAIT_CONTAINER;
use serde_json::Value;

use crate::verdict::Moment;

/// The ports of a head that names none.
const DEFAULT_PORTS: [&str; 5] = ["client", "gcs-server", "dashboard", "metrics", "serve"];

pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The names of the ports of the head of a cluster's spec. None if it has no ports.
fn head_ports(spec: &Value) -> Vec<&str> {
    let containers = &spec["headGroupSpec"]["template"]["spec"]["containers"];
    items(containers)
        .take(1)
        .flat_map(|it| items(&it["ports"]))
        .map(|port| text(&port["name"]))
        .collect()
}

/// Whether the API server refused the Service of a head because one of its ports stands in it twice, so that there are no pods.
pub(super) fn is_without_the_service_of_its_head(moment: &Moment<'_>) -> bool {
    let has_port_twice = |spec: &Value| {
        let named = head_ports(spec);
        let present = if named.is_empty() { DEFAULT_PORTS.to_vec() } else { named };
        let given = items(&spec["headGroupSpec"]["headService"]["spec"]["ports"]);
        given.into_iter().any(|port| present.contains(&text(&port["name"])))
    };
    moment.shows(&has_port_twice) && moment.objects("Pod").next().is_none()
}

/// Whether a cluster has a Service of its head and no pods, because it asks for a Service for Serve without a port for it.
pub(super) fn is_without_pods_for_want_of_a_serve_port(moment: &Moment<'_>) -> bool {
    let asks_in_vain = |cluster: &Value| {
        let ports = head_ports(&cluster["spec"]);
        cluster["metadata"]["annotations"]["ray.io/enable-serve-service"] == "true"
            && !ports.is_empty()
            && !ports.iter().any(|port| *port == "serve" || port.starts_with("serve-"))
    };
    moment.shows(&asks_in_vain) && moment.objects("Pod").next().is_none()
}

/// Whether a cluster has a head and no workers of a group: the official operator adds the waiting container, and
/// their template has one.
pub(super) fn is_without_workers_that_wait_by_themselves(moment: &Moment<'_>) -> bool {
    let waits = |group: &Value| {
        let containers = &group["template"]["spec"]["initContainers"];
        let wanted = ["replicas", "minReplicas"]
            .iter()
            .any(|it| group[it].as_i64().is_some_and(|it| it > 0));
        wanted && items(containers).any(|it| it["name"] == WAIT_CONTAINER)
    };
    moment.objects("RayCluster").any(|cluster| {
        let has_pod = |group: &Value| {
            moment.objects("Pod").any(|pod| {
                let labels = &pod["metadata"]["labels"];
                labels["ray.io/cluster"] == cluster["metadata"]["name"]
                    && labels["ray.io/group"] == *group
            })
        };
        let mut groups = items(&cluster["spec"]["workerGroupSpecs"]);
        has_pod(&Value::from("headgroup"))
            && groups.any(|group| waits(group) && !has_pod(&group["groupName"]))
    })
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let condition = items(&object["status"]["conditions"]).find(|it| it["type"] == kind);
    condition.map_or("", |it| text(&it["status"]))
}

/// Whether a cluster became provisioned, or stays so, although its head was never ready.
pub(super) fn is_provisioned_without_a_head(moment: &Moment<'_>) -> bool {
    moment.objects("RayCluster").any(|cluster| {
        let before =
            moment.before.get(&format!("RayCluster/{}", text(&cluster["metadata"]["name"])));
        let was_ready = before.is_some_and(|before| {
            condition(before, "HeadPodReady") == "True"
                || !before["status"]["stateTransitionTimes"]["ready"].is_null()
        });
        condition(cluster, "RayClusterProvisioned") == "True"
            && condition(cluster, "HeadPodReady") != "True"
            && cluster["status"]["stateTransitionTimes"]["ready"].is_null()
            && !was_ready
    })
}

/// Whether two groups have one name.
pub(super) fn has_groups_of_one_name(spec: &Value) -> bool {
    let names = || items(&spec["workerGroupSpecs"]).map(|group| text(&group["groupName"]));
    names().enumerate().any(|(index, name)| names().skip(index + 1).any(|other| other == name))
}

/// Whether a RayJob was suspended and goes on waiting for the id of its job.
pub(super) fn has_suspended_while_waiting(moment: &Moment<'_>) -> bool {
    moment.objects("RayJob").any(|job| {
        job["spec"]["suspend"] == true && job["status"]["jobDeploymentStatus"] == "Waiting"
    })
}

/// Whether the Job that submits was taken from a RayJob, which goes on running.
pub(super) fn runs_without_its_submitter(moment: &Moment<'_>) -> bool {
    moment.objects("RayJob").any(|job| {
        let submitter = format!("Job/{}", text(&job["metadata"]["name"]));
        job["spec"]["submissionMode"] == "K8sJobMode"
            && job["status"]["jobDeploymentStatus"] == "Running"
            && !moment.after.contains_key(&submitter)
    })
}

/// Whether the head of a RayService names ports, and none for Serve.
pub(super) fn is_service_without_a_serve_port(service: &Value) -> bool {
    let ports = head_ports(&service["spec"]["rayClusterConfig"]);
    service["kind"] == "RayService" && !ports.is_empty() && !ports.contains(&"serve")
}

/// Whether a RayService has a new cluster beside its active one, of which the spec is the same.
pub(super) fn makes_a_third_cluster(moment: &Moment<'_>) -> bool {
    moment.objects("RayService").any(|service| {
        let cluster = |part: &str| {
            let name = text(&service["status"][part]["rayClusterName"]);
            moment.after.get(&format!("RayCluster/{name}")).map(|cluster| &cluster["spec"])
        };
        let (active, pending) = (cluster("activeServiceStatus"), cluster("pendingServiceStatus"));
        active.is_some() && active == pending
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wanted::rules_tests::at;

    fn cluster(head: &Value, status: &Value) -> Value {
        let metadata = json!({"name": "c", "annotations": {"ray.io/enable-serve-service": "true"}});
        let spec = json!({"headGroupSpec": head});
        json!({"kind": "RayCluster", "metadata": metadata, "spec": spec, "status": status})
    }

    fn head(ports: &[&str], given: &[&str]) -> Value {
        let named = |names: &[&str]| names.iter().map(|it| json!({"name": it})).collect::<Value>();
        let containers = json!([{"ports": named(ports)}]);
        json!({
            "template": {"spec": {"containers": containers}},
            "headService": {"spec": {"ports": named(given)}},
        })
    }

    #[test]
    fn a_head_is_without_its_service_if_a_port_stands_in_it_twice() {
        let found = |ports: &[&str], given: &[&str], pods: bool| {
            let pod = pods.then(|| json!({"kind": "Pod", "metadata": {"name": "p"}}));
            let objects = [cluster(&head(ports, given), &Value::Null)];
            at(
                &[],
                &objects.into_iter().chain(pod).collect::<Vec<_>>(),
                is_without_the_service_of_its_head,
            )
        };
        assert!(found(&[], &["extra", "dashboard"], false));
        assert!(!found(&[], &["extra", "dashboard"], true), "the Service was made");
        assert!(!found(&[], &["extra"], false));
        assert!(!found(&["mine"], &["dashboard"], false));
    }

    #[test]
    fn a_cluster_waits_in_vain_for_a_port_for_serve() {
        let found = |ports: &[&str]| {
            let cluster = cluster(&head(ports, &[]), &Value::Null);
            at(&[], &[cluster], is_without_pods_for_want_of_a_serve_port)
        };
        assert!(found(&["dashboard"]));
        assert!(!found(&[]) && !found(&["serve"]) && !found(&["serve-a"]));
    }

    #[test]
    fn a_cluster_is_provisioned_without_a_head_until_it_was_ready_once() {
        let status = |head: &str, ready: Value| {
            let of = |kind: &str, status: &str| json!({"type": kind, "status": status});
            json!({
                "conditions": [of("HeadPodReady", head), of("RayClusterProvisioned", "True")],
                "stateTransitionTimes": {"ready": ready},
            })
        };
        let found = |before: Value, after: Value| {
            let objects = |status| [cluster(&Value::Null, &status)];
            at(&objects(before), &objects(after), is_provisioned_without_a_head)
        };
        assert!(found(Value::Null, status("False", Value::Null)));
        assert!(!found(Value::Null, status("True", Value::Null)));
        assert!(!found(status("True", Value::Null), status("False", Value::Null)));
        assert!(!found(status("True", Value::Null), status("False", json!("t"))));
    }

    #[test]
    fn a_running_job_without_its_submitter_is_recognised() {
        let job = |mode: &str| {
            json!({
                "kind": "RayJob", "metadata": {"name": "j"}, "spec": {"submissionMode": mode},
                "status": {"jobDeploymentStatus": "Running"},
            })
        };
        let submitter = json!({"kind": "Job", "metadata": {"name": "j"}});
        let found = |objects: &[Value]| at(&[], objects, runs_without_its_submitter);
        assert!(found(&[job("K8sJobMode")]));
        assert!(!found(&[job("HTTPMode")]) && !found(&[job("K8sJobMode"), submitter]));
    }

    #[test]
    fn a_third_cluster_has_the_spec_of_the_active_one() {
        let found = |active: &str, pending: &str| {
            let slot = |name: &str| json!({"rayClusterName": name});
            let of = |name: &str, spec: &str| json!({"kind": "RayCluster", "metadata": {"name": name}, "spec": {"rayVersion": spec}});
            let status =
                json!({"activeServiceStatus": slot("a"), "pendingServiceStatus": slot("b")});
            let service =
                json!({"kind": "RayService", "metadata": {"name": "s"}, "status": status});
            let objects = [service, of("a", active), of("b", pending)];
            at(&[], &objects, makes_a_third_cluster)
        };
        assert!(found("1", "1"));
        assert!(!found("1", "2"));
    }
}
