//! The token of the manager's account.

use std::time::Duration;

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Secret, ServiceAccount},
};
use kube::{Api, Client, api::PostParams, runtime::wait::await_condition};
use tokio::time::timeout;

use super::{
    HubAccount, JoinFailure, JoinRequest, TokenRequestKind,
    apply::ensure,
    worker_objects::{HubIdentity, token_secret, token_secret_name},
};
use crate::requests::RequestFailure;

/// From the creation of a Secret until the API server has filled it.
const FILLED: Duration = Duration::from_secs(30);

/// A token. It is never printed: the type has no debug format.
pub(super) struct AccountToken {
    /// The text.
    pub(super) text: String,
    /// When it expires.
    pub(super) expires: Option<String>,
}

/// Gets a token for an account.
///
/// # Errors
/// If the API server refuses it, or does not fill the Secret.
pub(super) async fn token_of(
    client: &Client,
    request: &JoinRequest,
    hub: &HubIdentity,
) -> Result<AccountToken, JoinFailure> {
    match request.token {
        TokenRequestKind::Expiring(duration) => expiring(client, &request.account, duration).await,
        TokenRequestKind::Permanent => permanent(client, request, hub).await,
    }
}

fn no_token(account: &HubAccount, reason: &str) -> JoinFailure {
    let account = format!("{}/{}", account.namespace, account.name);
    JoinFailure::NoToken { account, reason: reason.to_owned() }
}

async fn expiring(
    client: &Client,
    account: &HubAccount,
    duration: Duration,
) -> Result<AccountToken, JoinFailure> {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let spec =
        TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &account.namespace);
    let object = format!("a token of ServiceAccount {}/{}", account.namespace, account.name);
    let failed = RequestFailure::of("create", object);
    let answer = accounts
        .create_token_request(&account.name, &PostParams::default(), &request)
        .await
        .map_err(failed)?;
    let status = answer.status.unwrap_or_default();
    let text = status.token.filter(|token| !token.is_empty());
    let text = text.ok_or_else(|| no_token(account, "the answer has none"))?;
    Ok(AccountToken { text, expires: status.expiration_timestamp.map(|time| time.0.to_string()) })
}

async fn permanent(
    client: &Client,
    request: &JoinRequest,
    hub: &HubIdentity,
) -> Result<AccountToken, JoinFailure> {
    let account = &request.account;
    ensure(client, &token_secret(account, hub), request.other_hub).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &account.namespace);
    let name = token_secret_name(account);
    let filled = |secret: Option<&Secret>| secret.and_then(token_in).is_some();
    let waited = timeout(FILLED, await_condition(secrets, &name, filled)).await;
    let secret = match waited {
        Ok(Ok(secret)) => secret,
        // The error of a watch may hold an object.
        Ok(Err(_)) => return Err(no_token(account, &format!("cannot watch Secret {name}"))),
        Err(_) => {
            let reason = format!(
                "the API server has not filled Secret {name} within {} s",
                FILLED.as_secs()
            );
            return Err(no_token(account, &reason));
        }
    };
    let text = secret.as_ref().and_then(token_in);
    let text = text.ok_or_else(|| no_token(account, &format!("Secret {name} is gone")))?;
    Ok(AccountToken { text, expires: None })
}

fn token_in(secret: &Secret) -> Option<String> {
    let token = secret.data.as_ref()?.get("token")?;
    String::from_utf8(token.0.clone()).ok().filter(|token| !token.is_empty())
}
