//! What a decision about a RayCluster reads of its namespace, and the objects that it looks up by their names, so that also those of users
//! count, which have no label of the cluster.
//!
//! Source: docs/reference/ray.md §3 "Other child objects".

use serde_json::Value;

use super::{
    access::access_objects, cluster_children::ClusterChildren, context::ClusterContext,
    context::PassInputs, decide::run_spec, gcs_storage::claim_target, ingress::ingress_target,
    network_policy::policy_targets, services::serve_service_target,
};
use crate::{
    json::{is_owned, is_terminating, label, name},
    names,
    pass::Pass,
    security::exposure_targets,
    settings::OperatorSettings,
    step::ObjectTarget,
};

/// The objects that the features of a RayCluster look up by name. None of a cluster that another controller runs, or that goes.
#[must_use]
pub fn named_objects(
    cluster: &Value,
    inputs: &PassInputs,
    settings: &OperatorSettings,
) -> Vec<ObjectTarget> {
    let spec = (!is_terminating(cluster)).then(|| run_spec(cluster, &mut Pass::new(&[]))).flatten();
    let Some(spec) = &spec else { return Vec::new() };
    let children = &ClusterChildren::default();
    let context = ClusterContext { cluster, spec, children, settings, inputs };
    let mut targets = access_objects(&context);
    targets.extend(ingress_target(&context));
    targets.extend(serve_service_target(&context));
    targets.extend(claim_target(&context));
    targets.extend(policy_targets(&context));
    if let Some(security) = &settings.security {
        targets.extend(exposure_targets(cluster, security));
    }
    targets
}

/// Returns whether the decision about a RayCluster reads an object of its namespace.
#[must_use]
pub fn reads(cluster: &Value, object: &Value) -> bool {
    object["kind"] != "RayCluster"
        && (label(object, names::CLUSTER_LABEL) == name(cluster) || is_owned(object, cluster))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn names_of(fields: &Value) -> Vec<String> {
        let template = json!({"spec": {"containers": [{"name": "head", "image": "ray"}]}});
        let mut cluster = json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
            "spec": {"headGroupSpec": {"template": template}},
        });
        json_patch::merge(&mut cluster, fields);
        let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [0; 32] };
        let settings = OperatorSettings::default().with_all_gates();
        let targets = named_objects(&cluster, &inputs, &settings);
        targets.into_iter().map(|it| format!("{}/{}", it.kind, it.name)).collect()
    }

    #[test]
    fn each_feature_names_its_objects() {
        assert_eq!(names_of(&json!({})), Vec::<String>::new());
        let all = json!({
            "metadata": {"annotations": {"ray.io/enable-serve-service": "true"}},
            "spec": {
                "enableInTreeAutoscaling": true,
                "headGroupSpec": {"enableIngress": true},
                "authOptions": {"mode": "token"},
                "gcsFaultToleranceOptions": {"backend": "rocksdb", "storage": {"claimName": "mine"}},
                "networkPolicy": {},
                "workerGroupSpecs": [
                    {"groupName": "g", "template": {"spec": {"containers": [{"name": "w"}]}}},
                ],
            },
        });
        let expected = [
            "ServiceAccount/c",
            "Role/c",
            "RoleBinding/c",
            "Secret/c",
            "Ingress/c-head-ingress",
            "Service/c-serve-svc",
            "PersistentVolumeClaim/mine",
            "NetworkPolicy/c-head",
            "NetworkPolicy/c-workers-g",
        ];
        assert_eq!(names_of(&all), expected);
        let mut gone = all.clone();
        gone["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(names_of(&gone), Vec::<String>::new());
        let mut foreign = all;
        foreign["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
        assert_eq!(names_of(&foreign), Vec::<String>::new());
    }

    #[test]
    fn what_the_spec_names_stands_for_what_is_made() {
        let template = json!({"spec": {"serviceAccountName": "mine"}});
        let given = json!({"spec": {
            "enableInTreeAutoscaling": true, "headGroupSpec": {"template": template},
            "authOptions": {"mode": "token", "secretName": "token"},
        }});
        assert_eq!(names_of(&given), ["ServiceAccount/mine", "Role/c", "RoleBinding/c"]);
    }

    #[test]
    fn a_cluster_reads_what_is_its_own_and_no_other_cluster() {
        let cluster = json!({"metadata": {"name": "c", "uid": "u"}});
        let labelled =
            |of: &str| json!({"kind": "Pod", "metadata": {"labels": {"ray.io/cluster": of}}});
        let owned =
            |kind: &str| json!({"kind": kind, "metadata": {"ownerReferences": [{"uid": "u"}]}});
        assert!(reads(&cluster, &labelled("c")) && !reads(&cluster, &labelled("d")));
        assert!(reads(&cluster, &owned("Job")) && !reads(&cluster, &owned("RayCluster")));
    }
}
