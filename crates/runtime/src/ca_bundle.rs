//! Injects a CA into `caBundle` of webhook configurations, of conversion webhooks in CRDs, and of APIServices.
//!
//! Only `caBundle` is written, and only where it differs; `service` and `url` stay. The patch tests the resourceVersion that
//! was read, so that an object that is being replaced is not damaged. A missing object is an outcome and not an error, because
//! manifests and process may be installed in any order.

use json_patch::Patch as JsonPatch;
use k8s_openapi::ByteString;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::failpoint::{CA_BUNDLE, with_failpoints};

/// Why the CA could not be injected.
#[derive(Debug, thiserror::Error)]
pub enum CaBundleError {
    /// A request failed.
    #[error("cannot {operation} {kind} {name}: {source}")]
    Request {
        /// `read` or `patch`.
        operation: &'static str,
        /// The kind of the object.
        kind: &'static str,
        /// The name of the object.
        name: String,
        /// What is wrong.
        source: Box<kube::Error>,
    },
    /// The patch is not valid JSON Patch.
    #[error("cannot build the patch of {name}: {source}")]
    Patch {
        /// The name of the object.
        name: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// Kinds of objects with a `caBundle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedKind {
    /// A CRD with a conversion webhook.
    CustomResourceDefinition,
    /// All webhooks of the configuration.
    MutatingWebhookConfiguration,
    /// All webhooks of the configuration.
    ValidatingWebhookConfiguration,
    /// An aggregated API.
    ApiService,
}

impl InjectedKind {
    fn name(self) -> &'static str {
        match self {
            Self::CustomResourceDefinition => "CustomResourceDefinition",
            Self::MutatingWebhookConfiguration => "MutatingWebhookConfiguration",
            Self::ValidatingWebhookConfiguration => "ValidatingWebhookConfiguration",
            Self::ApiService => "APIService",
        }
    }

    fn resource(self) -> ApiResource {
        let group = match self {
            Self::CustomResourceDefinition => "apiextensions.k8s.io",
            Self::ApiService => "apiregistration.k8s.io",
            Self::MutatingWebhookConfiguration | Self::ValidatingWebhookConfiguration => {
                "admissionregistration.k8s.io"
            }
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", self.name()))
    }

    /// JSON pointers to the client configurations of an object.
    fn client_configs(self, object: &Value) -> Vec<String> {
        match self {
            Self::CustomResourceDefinition => {
                let pointer = "/spec/conversion/webhook/clientConfig";
                // The API server refuses a client configuration under any other strategy.
                let converts = object["spec"]["conversion"]["strategy"] == "Webhook"
                    && object.pointer(pointer).is_some();
                converts.then(|| pointer.to_owned()).into_iter().collect()
            }
            Self::ApiService => {
                // The API server refuses a CA beside `insecureSkipTLSVerify`, which upstream's manifests may set.
                let insecure = object["spec"]["insecureSkipTLSVerify"] == true;
                (!insecure).then(|| "/spec".to_owned()).into_iter().collect()
            }
            Self::MutatingWebhookConfiguration | Self::ValidatingWebhookConfiguration => {
                let webhooks = object["webhooks"].as_array().map_or(0, Vec::len);
                (0..webhooks).map(|at| format!("/webhooks/{at}/clientConfig")).collect()
            }
        }
    }
}

/// An object to inject the CA into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectionTarget {
    /// The kind of the object.
    pub kind: InjectedKind,
    /// The name of the object.
    pub name: String,
}

/// The outcome of an injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// The object already trusted the CA.
    Unchanged,
    /// The object was patched.
    Injected,
    /// The object does not exist.
    Missing,
    /// The object changed between read and write; try again.
    Stale,
}

/// The JSON patch that makes `object` trust `ca_pem`; none if it already does.
#[must_use]
pub fn patch(kind: InjectedKind, object: &Value, ca_pem: &str) -> Option<Value> {
    let bundle = json!(ByteString(ca_pem.as_bytes().to_vec()));
    let differs =
        |pointer: &String| object.pointer(&format!("{pointer}/caBundle")) != Some(&bundle);
    let pointers: Vec<String> = kind.client_configs(object).into_iter().filter(differs).collect();
    if pointers.is_empty() {
        return None;
    }
    // Webhooks are addressed by their position, which is valid for the version that was read only.
    let version = &object["metadata"]["resourceVersion"];
    let mut operations =
        vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
    operations.extend(pointers.iter().map(
        // `add` replaces a value as well, and succeeds where `caBundle` is absent.
        |pointer| json!({"op": "add", "path": format!("{pointer}/caBundle"), "value": bundle}),
    ));
    Some(Value::Array(operations))
}

/// Makes one object trust `ca_pem`.
///
/// # Errors
/// If a request fails, except for a missing or changed object.
pub async fn inject(
    client: &Client,
    target: &InjectionTarget,
    ca_pem: &str,
) -> Result<Injection, CaBundleError> {
    let InjectionTarget { kind, name } = target;
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
    let failed = |operation, source| CaBundleError::Request {
        operation,
        kind: kind.name(),
        name: name.clone(),
        source: Box::new(source),
    };
    let invalid = |source| CaBundleError::Patch { name: name.clone(), source };
    let Some(object) = api.get_opt(name).await.map_err(|error| failed("read", error))? else {
        return Ok(Injection::Missing);
    };
    let object = serde_json::to_value(object).map_err(invalid)?;
    let Some(operations) = patch(*kind, &object, ca_pem) else {
        return Ok(Injection::Unchanged);
    };
    let operations: JsonPatch = serde_json::from_value(operations).map_err(invalid)?;
    let patch = Patch::Json::<()>(operations);
    match with_failpoints(CA_BUNDLE, api.patch(name, &PatchParams::default(), &patch)).await {
        Ok(_) => Ok(Injection::Injected),
        // 422 is the response to a failed `test` operation.
        Err(kube::Error::Api(status)) if [404, 409, 422].contains(&status.code) => {
            tracing::debug!(%name, message = %status.message, "changed meanwhile");
            Ok(Injection::Stale)
        }
        Err(error) => Err(failed("patch", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CA: &str = "pem";
    const BASE64: &str = "cGVt";

    #[test]
    fn only_differing_ca_bundles_are_patched() {
        let webhooks = json!({
            "metadata": {"resourceVersion": "7"},
            "webhooks": [
                {"clientConfig": {"url": "https://x", "caBundle": BASE64}},
                {"clientConfig": {"service": {"name": "s"}, "caBundle": "b2xk"}},
                {"clientConfig": {"service": {"name": "s"}}},
            ],
        });
        let expected = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": BASE64},
            {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": BASE64},
        ]);
        let patch = patch(InjectedKind::ValidatingWebhookConfiguration, &webhooks, CA);
        assert_eq!(patch, Some(expected));
    }

    #[test]
    fn a_crd_is_patched_if_it_has_a_conversion_webhook() {
        let crd = |conversion: Value| json!({"metadata": {"resourceVersion": "1"}, "spec": {"conversion": conversion}});
        let webhook = |config: Value| {
            crd(json!({"strategy": "Webhook", "webhook": {"clientConfig": config}}))
        };
        let kind = InjectedKind::CustomResourceDefinition;
        assert_eq!(patch(kind, &crd(json!({"strategy": "None"})), CA), None);
        assert_eq!(patch(kind, &webhook(json!({"caBundle": BASE64})), CA), None);
        assert!(patch(kind, &webhook(json!({"url": "https://x"})), CA).is_some());
    }

    #[test]
    fn an_aggregated_api_gets_the_ca_unless_it_is_not_verified() {
        let kind = InjectedKind::ApiService;
        let api = |spec: Value| json!({"metadata": {"resourceVersion": "1"}, "spec": spec});
        let operations = patch(kind, &api(json!({"group": "g"})), CA).expect("a patch");
        assert_eq!(operations[1], json!({"op": "add", "path": "/spec/caBundle", "value": BASE64}));
        assert_eq!(patch(kind, &api(json!({"caBundle": BASE64})), CA), None);
        assert_eq!(patch(kind, &api(json!({"insecureSkipTLSVerify": true})), CA), None);
    }

    #[test]
    fn an_empty_configuration_needs_no_patch() {
        assert_eq!(patch(InjectedKind::MutatingWebhookConfiguration, &json!({}), CA), None);
    }
}
