//! Whether the API server checks that a submitter may create the components of an AppWrapper.
//!
//! Components are made with the rights of the agent. Without `config/appwrapper-rights` a user that may create AppWrappers has all of
//! them, in every namespace of theirs.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::{Api, Client};
use runtime::error_chain;

/// The name of the policy and of its binding.
const NAME: &str = "sluice-appwrapper-rights";

/// Why rights of submitters may not be checked.
#[derive(Debug, thiserror::Error)]
enum UncheckedRights {
    #[error("the ValidatingAdmissionPolicy {NAME} is not installed")]
    NoPolicy,
    #[error("the ValidatingAdmissionPolicyBinding {NAME} is not installed")]
    NoBinding,
    #[error("the ValidatingAdmissionPolicyBinding {NAME} binds another policy, or does not deny")]
    DeniesNothing,
    #[error("cannot read {0}")]
    Unreadable(&'static str, #[source] kube::Error),
}

impl UncheckedRights {
    /// What an administrator can do about it.
    fn remedy(&self) -> &'static str {
        match self {
            Self::Unreadable(_, kube::Error::Api(status)) if status.code == 403 => {
                "give the role of the agent `get` of both: install config/worker/operators"
            }
            Self::Unreadable(..) => "they are read again when the operators start again",
            Self::NoPolicy | Self::NoBinding | Self::DeniesNothing => {
                "install config/appwrapper-rights"
            }
        }
    }
}

/// Says so if users get rights of the agent by way of AppWrappers. The AppWrappers of a cluster for one user need no check, so they are
/// operated all the same.
pub(super) async fn report_unchecked_rights(client: Client) {
    if let Err(why) = check_rights_policy(&client).await {
        let (error, remedy) = (error_chain::describe(&why), why.remedy());
        tracing::warn!(
            error,
            remedy,
            "AppWrappers may contain what their submitters may not create"
        );
    }
}

/// Looks whether the policy is there, and denies.
async fn check_rights_policy(client: &Client) -> Result<(), UncheckedRights> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let policy = policies.get_metadata_opt(NAME).await;
    let policy = policy.map_err(|error| UncheckedRights::Unreadable("the policy", error))?;
    policy.ok_or(UncheckedRights::NoPolicy)?;
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let binding = bindings.get_opt(NAME).await;
    let binding = binding.map_err(|error| UncheckedRights::Unreadable("the binding", error))?;
    let spec = binding.ok_or(UncheckedRights::NoBinding)?.spec;
    let actions = spec.validation_actions;
    let denies = actions.iter().any(|action| action == "Deny");
    if spec.policy_name == NAME && denies { Ok(()) } else { Err(UncheckedRights::DeniesNothing) }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hyper::{Response, StatusCode};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// An API server that answers like this about the policy and about its binding.
    fn client(policy: (StatusCode, Value), binding: (StatusCode, Value)) -> Client {
        let service = tower::service_fn(move |request: hyper::Request<Body>| {
            let is_policy = request.uri().path().contains("/validatingadmissionpolicies/");
            let (code, body) = if is_policy { policy.clone() } else { binding.clone() };
            async move {
                let body = Body::from(body.to_string().into_bytes());
                let mut response = Response::new(body);
                *response.status_mut() = code;
                Ok::<_, Infallible>(response)
            }
        });
        Client::new(service, "default")
    }

    fn policy() -> (StatusCode, Value) {
        let metadata = json!({"name": NAME});
        let object = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
        (StatusCode::OK, object)
    }

    fn binding(policy: &str, action: &str) -> (StatusCode, Value) {
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": NAME},
            "spec": {"policyName": policy, "validationActions": [action]},
        });
        (StatusCode::OK, object)
    }

    fn refusal(code: StatusCode, reason: &str) -> (StatusCode, Value) {
        let code_number = code.as_u16();
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason,
            "message": reason, "code": code_number,
        });
        (code, status)
    }

    #[tokio::test]
    async fn rights_are_checked_by_a_policy_that_is_bound_and_denies() {
        let absent = || refusal(StatusCode::NOT_FOUND, "NotFound");
        let found = |policy, binding| async move {
            let found = check_rights_policy(&client(policy, binding)).await;
            found.err().map(|why| why.to_string()).unwrap_or_default()
        };
        assert_eq!(found(policy(), binding(NAME, "Deny")).await, "");
        let text = found(absent(), absent()).await;
        assert_eq!(text, "the ValidatingAdmissionPolicy sluice-appwrapper-rights is not installed");
        let text = found(policy(), absent()).await;
        assert!(text.starts_with("the ValidatingAdmissionPolicyBinding"), "{text}");
        for binding in [binding(NAME, "Audit"), binding("other", "Deny")] {
            let text = found(policy(), binding).await;
            assert!(text.ends_with("or does not deny"), "{text}");
        }
        let text = found(refusal(StatusCode::FORBIDDEN, "Forbidden"), absent()).await;
        assert_eq!(text, "cannot read the policy");
    }

    #[tokio::test]
    async fn only_a_policy_that_was_read_is_to_be_installed() {
        let remedy = |policy| async move {
            let absent = refusal(StatusCode::NOT_FOUND, "NotFound");
            let found = check_rights_policy(&client(policy, absent)).await;
            found.expect_err("not checked").remedy()
        };
        let refused = |code, reason| remedy(refusal(code, reason));
        let absent = refused(StatusCode::NOT_FOUND, "NotFound").await;
        assert!(absent.contains("config/appwrapper-rights"), "{absent}");
        let forbidden = refused(StatusCode::FORBIDDEN, "Forbidden").await;
        assert!(forbidden.contains("role of the agent"), "{forbidden}");
        let broken = refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalError").await;
        assert!(!broken.contains("config/"), "{broken}");
    }
}
