//! The kinds that a check writes: `ProvisioningRequest` of `autoscaling.x-k8s.io/v1`, and core `PodTemplate`.
//!
//! Both are total: every object that a server may hold decodes, and fields that no decision reads are left out.

use std::collections::BTreeMap;

use crds::{decode::Decode, meta::Condition, pod::PodTemplate};
use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::Error;

/// Pods for which an autoscaler is asked to provide room, all or none.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ProvisioningRequest {
    /// Name, labels, owners.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is asked. It cannot be changed.
    #[serde(default)]
    pub spec: ProvisioningRequestSpec,
    /// The answer of the autoscaler.
    #[serde(default)]
    pub status: ProvisioningRequestStatus,
}

/// What is asked.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisioningRequestSpec {
    /// Parameters of the class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Pods by template.
    #[serde(default)]
    pub pod_sets: Vec<RequestedPods>,
    /// How the room is provided.
    #[serde(default)]
    pub provisioning_class_name: String,
}

/// So many pods of one template.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedPods {
    /// Number of pods.
    #[serde(default)]
    pub count: i32,
    /// The template, in the namespace of the request.
    #[serde(default)]
    pub pod_template_ref: TemplateReference,
}

/// The name of a PodTemplate.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TemplateReference {
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// The answer of the autoscaler.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisioningRequestStatus {
    /// Conditions, one of a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What the class says about the room, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provisioning_class_details: BTreeMap<String, String>,
}

/// The PodTemplate of an entry of a request.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct EntryTemplate {
    /// Name, labels, owners.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The pods.
    #[serde(default)]
    pub template: PodTemplate,
}

/// Makes a type with `metadata` the kind of an API.
macro_rules! resource {
    ($name:ident in $scope:ty = $group:literal, $version:literal, $api_version:literal, $kind:literal, $plural:literal) => {
        impl k8s_openapi::Resource for $name {
            const API_VERSION: &'static str = $api_version;
            const GROUP: &'static str = $group;
            const KIND: &'static str = $kind;
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = $scope;
        }

        impl k8s_openapi::Metadata for $name {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }
    };
}

pub(crate) use resource;

resource!(
    ProvisioningRequest in NamespaceResourceScope = "autoscaling.x-k8s.io",
    "v1",
    "autoscaling.x-k8s.io/v1",
    "ProvisioningRequest",
    "provisioningrequests"
);
resource!(
    EntryTemplate in NamespaceResourceScope = "",
    "v1",
    "v1",
    "PodTemplate",
    "podtemplates"
);

crds::decode!(ProvisioningRequest);

/// An object of which only the metadata are decoded.
#[derive(Deserialize)]
pub(crate) struct OnlyMetadata {
    #[serde(default)]
    pub(crate) metadata: Option<ObjectMeta>,
}

/// Of a template that exists, no decision reads the pods.
impl Decode for EntryTemplate {
    #[inline(never)]
    fn decode_text(text: &str) -> Result<Self, Error> {
        let metadata = serde_json::from_str::<OnlyMetadata>(text)?.metadata.unwrap_or_default();
        Ok(Self { metadata, template: PodTemplate::default() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_decodes_whatever_it_holds() {
        let request = ProvisioningRequest::decode(&json!({
            "apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
            "metadata": { "name": "w-c-1" },
            "spec": { "podSets": [{ "count": 2, "podTemplateRef": { "name": "t" }, "new": 1 }] },
        }));
        let request = request.expect("a request decodes");
        assert_eq!(request.spec.pod_sets[0].pod_template_ref.name, "t");
        assert!(ProvisioningRequest::decode(&json!({})).is_ok());
        assert!(EntryTemplate::decode(&json!({ "template": { "spec": { "x": 1 } } })).is_ok());
    }
}
