//! Reads what the security of RayClusters needs to know of the cluster, once whenever the operators start.

use std::{collections::BTreeSet, time::Duration};

use crds::json::text;
use kube::Client;
use ray::security::{
    ClusterPlatform, SecurityConfig, SecurityConfigError, SecurityFacts, SecuritySettings,
};
use runtime::json_object;
use serde_json::Value;
use tokio::time;

/// The group version that makes a cluster OpenShift.
const ROUTES: &str = "/apis/route.openshift.io/v1";

/// The object with the domain of OpenShift's own Routes.
const INGRESS: &str = "/apis/config.openshift.io/v1/ingresses/cluster";

/// The object that names the namespace of the official operator on OpenShift.
const INSTALLATION: &str =
    "/apis/dscinitialization.opendatahub.io/v1/dscinitializations/default-dsci";

/// The pods of the official operator.
const OPERATOR_PODS: &str =
    "/api/v1/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dkuberay-operator";

/// The namespace of the official operator of Ray, unless its pods are elsewhere.
const OPERATOR_NAMESPACE: &str = "ray-system";

/// The namespaces of the official operators on OpenShift, unless the installation says otherwise.
const OPENSHIFT_NAMESPACES: [&str; 2] = ["opendatahub", "redhat-ods-applications"];

/// How long the cluster may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Why RayClusters cannot be secured.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecurityFactsError {
    #[error("cannot read {path}: {source}")]
    Read {
        path: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("what it needs of the cluster was not read within {} s", DEADLINE.as_secs())]
    TooLate,
    #[error("the settings of the security of RayClusters: {0}")]
    Settings(#[from] SecurityConfigError),
}

/// The settings together with what the cluster says.
pub(super) async fn security_settings(
    client: &Client,
    config: &SecurityConfig,
    agent_namespace: &str,
) -> Result<SecuritySettings, SecurityFactsError> {
    let settings = read_settings(client, config, agent_namespace);
    time::timeout(DEADLINE, settings).await.unwrap_or(Err(SecurityFactsError::TooLate))
}

async fn read_settings(
    client: &Client,
    config: &SecurityConfig,
    agent_namespace: &str,
) -> Result<SecuritySettings, SecurityFactsError> {
    let platform = match read(client, ROUTES).await? {
        Value::Null => ClusterPlatform::Kubernetes,
        _ => ClusterPlatform::OpenShift,
    };
    let is_openshift = platform == ClusterPlatform::OpenShift;
    let (ingress, installation, pods) = if is_openshift {
        (read(client, INGRESS).await?, read(client, INSTALLATION).await?, Value::Null)
    } else {
        (Value::Null, Value::Null, read(client, OPERATOR_PODS).await?)
    };
    let config = config.clone().or_domain(text(&ingress["spec"]["domain"])).complete()?;
    if config.oauth && !is_openshift {
        tracing::warn!(
            "rayDashboardOAuthEnabled needs OpenShift: heads of RayClusters wait for a certificate that is not made here"
        );
    }
    let operator_namespaces =
        if is_openshift { openshift_namespaces(&installation) } else { namespaces_of(&pods) };
    let agent_namespace = agent_namespace.to_owned();
    let facts = SecurityFacts { platform, operator_namespaces, agent_namespace };
    Ok(SecuritySettings { config, facts })
}

fn openshift_namespaces(installation: &Value) -> Vec<String> {
    match text(&installation["spec"]["applicationsNamespace"]) {
        "" => OPENSHIFT_NAMESPACES.map(str::to_owned).into(),
        given => vec![given.to_owned()],
    }
}

fn namespaces_of(pods: &Value) -> Vec<String> {
    let pods = pods["items"].as_array().into_iter().flatten();
    let namespaces: BTreeSet<&str> =
        pods.filter_map(|pod| pod["metadata"]["namespace"].as_str()).collect();
    if namespaces.is_empty() {
        vec![OPERATOR_NAMESPACE.to_owned()]
    } else {
        namespaces.into_iter().map(str::to_owned).collect()
    }
}

/// An answer of the API server; null where it is 404, also because the kind is not served.
async fn read(client: &Client, path: &'static str) -> Result<Value, SecurityFactsError> {
    let answer = json_object::get(client, path).await;
    let unreadable = |source| SecurityFactsError::Read { path, source: Box::new(source) };
    Ok(answer.map_err(unreadable)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operators_are_where_their_pods_are() {
        assert_eq!(namespaces_of(&Value::Null), ["ray-system"]);
        let pod = |namespace: &str| json!({"metadata": {"namespace": namespace}});
        let pods = json!({"items": [pod("b"), pod("a"), pod("b")]});
        assert_eq!(namespaces_of(&pods), ["a", "b"]);
    }

    #[test]
    fn the_installation_of_openshift_names_the_namespace() {
        let given = json!({"spec": {"applicationsNamespace": "apps"}});
        assert_eq!(openshift_namespaces(&given), ["apps"]);
        assert_eq!(openshift_namespaces(&Value::Null), OPENSHIFT_NAMESPACES);
    }
}
