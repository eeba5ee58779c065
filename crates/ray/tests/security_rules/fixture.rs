//! RayClusters, settings, and what a decision asks for.

use jiff::Timestamp;
use ray::{
    PassInputs, cluster,
    security::{ClusterPlatform, SecurityConfig, SecurityFacts, SecuritySettings, mutate},
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
};
use serde_json::{Value, json};

pub(crate) fn config(oauth: bool, mtls: bool) -> SecurityConfig {
    SecurityConfig {
        oauth,
        mtls,
        ingress_domain: "example.com".to_owned(),
        cert_generator_image: "certs:1".to_owned(),
        oauth_proxy_image: "proxy:1".to_owned(),
    }
}

pub(crate) fn settings(oauth: bool, mtls: bool, platform: ClusterPlatform) -> OperatorSettings {
    let facts = SecurityFacts {
        platform,
        operator_namespaces: vec!["ray-system".to_owned()],
        agent_namespace: "kueue-system".to_owned(),
    };
    let security = SecuritySettings { config: config(oauth, mtls), facts };
    OperatorSettings { security: Some(security), ..OperatorSettings::default() }
}

pub(crate) fn template() -> Value {
    json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}})
}

/// A cluster that is new, with one group.
pub(crate) fn ray_cluster() -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
        "spec": {
            "headGroupSpec": {"template": template()},
            "workerGroupSpecs": [{
                "groupName": "g", "replicas": 1, "minReplicas": 0, "maxReplicas": 2, "numOfHosts": 1,
                "template": template(),
            }],
        },
    })
}

pub(crate) fn mutated(oauth: bool, mtls: bool) -> Value {
    let mut cluster = ray_cluster();
    mutate(&mut cluster, None, &config(oauth, mtls));
    cluster
}

/// A cluster that ran before it was to be secured, with bare names of its objects.
pub(crate) fn old_cluster() -> Value {
    let mut cluster = ray_cluster();
    cluster["status"] = json!({"state": "ready"});
    cluster
}

pub(crate) fn decide(
    cluster: &Value,
    children: &[Value],
    answers: &[RayAnswer],
    settings: &OperatorSettings,
) -> Vec<RayStep> {
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    cluster::decide(cluster, &children.iter().collect::<Vec<_>>(), answers, &inputs, settings)
}

/// The objects that secure a cluster, as `Kind/name`.
pub(crate) fn applied(steps: &[RayStep]) -> Vec<String> {
    let secured = |object: &Value| object.pointer("/metadata/labels").is_some_and(is_secured);
    let ids = steps.iter().filter_map(|step| match step {
        RayStep::Apply(object) | RayStep::CreateAuthority(object) | RayStep::Create(object) => {
            secured(object).then(|| id(object))
        }
        _ => None,
    });
    ids.collect()
}

pub(crate) fn is_secured(labels: &Value) -> bool {
    labels["ray.openshift.ai/cluster-name"] == "c"
}

pub(crate) fn id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

pub(crate) fn object(steps: &[RayStep], wanted: &str) -> Value {
    let found = steps.iter().find_map(|step| match step {
        RayStep::Apply(object) | RayStep::CreateAuthority(object) | RayStep::Create(object) => {
            (id(object) == wanted).then(|| object.clone())
        }
        _ => None,
    });
    found.expect(wanted)
}
