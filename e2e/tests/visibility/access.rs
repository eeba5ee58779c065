//! Users with and without rights, by the API server and at a manager itself.

use anyhow::{Context, Result, ensure};
use e2e::audit_log::{asked, forbidden, forbidden_to};
use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    api::{Patch, PatchParams},
    config::AuthInfo,
};
use serde_json::{Value, json};

use crate::fixture::{ApiResponse, BASE, VisibilityFixture, get, until, until_with};

/// What a front proxy says about a user without rights.
const JANE: &[(&str, &str)] = &[("X-Remote-User", "jane"), ("X-Remote-Group", "team")];

/// What it says about one with all rights.
const MASTER: &[(&str, &str)] = &[("X-Remote-User", "joe"), ("X-Remote-Group", "system:masters")];

fn message(response: &ApiResponse) -> &str {
    response.body["message"].as_str().unwrap_or_default()
}

/// The refusal of a user that may not read the pending Workloads of the ClusterQueue.
fn refusal(fixture: &VisibilityFixture, user: &str) -> String {
    let (queue, group) = (&fixture.namespace, "visibility.kueue.x-k8s.io");
    format!(
        "clusterqueues.{group} {queue:?} is forbidden: User {user:?} cannot get resource \
         \"clusterqueues/pendingworkloads\" in API group {group:?} at the cluster scope"
    )
}

fn assert_refused(response: &ApiResponse, fixture: &VisibilityFixture, user: &str) {
    assert_eq!(response.code, 403, "{response:?}");
    assert_eq!(message(response), refusal(fixture, user));
    assert_eq!(response.body["details"]["name"], fixture.namespace);
}

/// Lets a service account read the pending Workloads of LocalQueues, by the role of the manifests.
async fn allow_local_queues(fixture: &VisibilityFixture, account: &str) -> Result<()> {
    let namespace = &fixture.namespace;
    let role = "kueue-pending-workloads-lq-viewer-role";
    fixture
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": account},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }))
        .await
}

#[tokio::test]
async fn a_viewer_of_local_queues_reads_those_of_its_namespace() -> Result<()> {
    let fixture = VisibilityFixture::new("viewer").await?;
    let token = fixture.token("viewer").await?;
    let name = format!("system:serviceaccount:{}:viewer", fixture.namespace);
    let by_api_server = fixture.at_api_server(token.clone()).await?;
    let at_manager = fixture.at_manager(fixture.second_port(), token).await?;
    let local = fixture.of_local_queue("v1beta2", "queue");
    let whole = fixture.of_cluster_queue("v1beta2");
    for client in [&by_api_server, &at_manager] {
        assert_refused(&get(client, &whole, &[]).await?, &fixture, &name);
        assert_eq!(get(client, &local, &[]).await?.code, 403);
    }
    allow_local_queues(&fixture, "viewer").await?;
    // A denial is kept for ten seconds.
    for client in [&by_api_server, &at_manager] {
        until(client, &local, "is allowed", |response| response.code == 200).await?;
        assert_refused(&get(client, &whole, &[]).await?, &fixture, &name);
        let elsewhere = format!("{BASE}/v1beta2/namespaces/default/localqueues/q/pendingworkloads");
        assert_eq!(get(client, &elsewhere, &[]).await?.code, 403);
    }
    Ok(())
}

#[tokio::test]
async fn a_request_without_valid_credentials_is_refused() -> Result<()> {
    let fixture = VisibilityFixture::new("anonymous").await?;
    let path = fixture.of_cluster_queue("v1beta1");
    let anonymous = fixture.at_api_server(AuthInfo::default()).await?;
    assert_refused(&get(&anonymous, &path, &[]).await?, &fixture, "system:anonymous");
    let anonymous = fixture.at_manager(fixture.first_port(), AuthInfo::default()).await?;
    assert_refused(&get(&anonymous, &path, &[]).await?, &fixture, "system:anonymous");
    let forged = get(&anonymous, &path, &[("Authorization", "Bearer made-up")]).await?;
    assert_eq!((forged.code, message(&forged)), (401, "Unauthorized"));
    assert_eq!(get(&anonymous, "/readyz", &[]).await?.code, 200, "a probe");
    assert_eq!(get(&anonymous, "/metrics", &[]).await?.code, 403, "no path is without a review");
    Ok(())
}

#[tokio::test]
async fn headers_name_the_user_of_a_front_proxy_only() -> Result<()> {
    let fixture = VisibilityFixture::new("headers").await?;
    let path = fixture.of_cluster_queue("v1beta2");
    let port = fixture.second_port();
    let proxy = fixture.at_manager(port, fixture.front_proxy()).await?;
    assert_refused(&get(&proxy, &path, JANE).await?, &fixture, "jane");
    assert_eq!(get(&proxy, &path, MASTER).await?.code, 200);
    let unnamed = get(&proxy, &path, &[]).await?;
    assert_eq!(unnamed.code, 401, "its own name is that of no user: {unnamed:?}");

    let anonymous = fixture.at_manager(port, AuthInfo::default()).await?;
    assert_refused(&get(&anonymous, &path, MASTER).await?, &fixture, "system:anonymous");
    let account = fixture.at_manager(port, fixture.token("forger").await?).await?;
    let name = format!("system:serviceaccount:{}:forger", fixture.namespace);
    assert_refused(&get(&account, &path, MASTER).await?, &fixture, &name);
    let administrator = fixture.at_manager(port, fixture.administrator()?).await?;
    assert_eq!(get(&administrator, &path, JANE).await?.code, 200, "no front proxy");
    Ok(())
}

#[tokio::test]
async fn new_authorities_of_front_proxies_count_without_a_restart() -> Result<()> {
    let fixture = VisibilityFixture::alone("authorities").await?;
    let path = fixture.of_cluster_queue("v1beta2");
    let port = fixture.second_port();
    let client = fixture.at_manager(port, fixture.administrator()?).await?;
    let code = |expected: StatusCode| move |response: &ApiResponse| response.code == expected;
    let before = set_front_proxies(&fixture, |data| {
        let users = data["client-ca-file"].as_str().unwrap_or_default().to_owned();
        let proxies = data["requestheader-client-ca-file"].as_str().unwrap_or_default();
        json!({
            "requestheader-client-ca-file": format!("{proxies}{users}"),
            "requestheader-allowed-names": "[\"front-proxy\",\"admin\"]",
        })
    })
    .await?;
    until_with(&client, &path, JANE, "is one of jane", code(StatusCode::FORBIDDEN)).await?;
    set_front_proxies(&fixture, |_| before).await?;
    until_with(&client, &path, JANE, "is one of the administrator", code(StatusCode::OK)).await?;
    assert_eq!(fixture.get(&path).await?.code, 200, "the API server is still a front proxy");
    Ok(())
}

/// Changes the ConfigMap of front proxies. Returns its data before.
async fn set_front_proxies(
    fixture: &VisibilityFixture,
    change: impl FnOnce(&Value) -> Value,
) -> Result<Value> {
    let api = fixture.config_maps("kube-system");
    let name = "extension-apiserver-authentication";
    let object: ConfigMap = api.get(name).await?;
    let before = serde_json::to_value(object.data.context("data")?)?;
    let patch = Patch::Merge(json!({"data": change(&before)}));
    api.patch(name, &PatchParams::default(), &patch).await?;
    Ok(before)
}

#[tokio::test]
async fn the_managers_ask_for_nothing_that_their_roles_forbid() -> Result<()> {
    let fixture = VisibilityFixture::new("rights").await?;
    let token = fixture.token("reviewed").await?;
    let clients = [
        fixture.at_manager(fixture.first_port(), token.clone()).await?,
        fixture.at_api_server(token).await?,
    ];
    for client in &clients {
        assert_eq!(get(client, &fixture.of_cluster_queue("v1beta2"), &[]).await?.code, 403);
    }
    let hub = &fixture.installation.hub;
    let reviewed = format!("system:serviceaccount:{}:reviewed", fixture.namespace);
    assert_eq!(forbidden_to(hub, &reviewed)?.len(), 1, "the log has what a role does not allow");
    let own = asked(hub, "sluice-manager", None)?;
    for resource in ["/tokenreviews", "/subjectaccessreviews", "/apiservices/"] {
        let found = own.iter().any(|request| request.contains(resource));
        ensure!(found, "{resource} was not asked for: {own:#?}");
    }
    let refused = forbidden(hub, "sluice-manager")?;
    ensure!(refused.is_empty(), "{refused:#?}");
    Ok(())
}
