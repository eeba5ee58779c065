//! Decoders of API objects, compiled once.
//!
//! A generic decoder is compiled again in every crate that uses it, and the decoders of all kinds are a quarter of the code of a
//! crate that observes them. [`Decode`] has one function per kind, which every crate calls.
//!
//! Only texts are decoded. A decoder of trees of JSON would be the same code once more, so a tree is written as text first:
//! objects come as text, and a tree exists only where code has changed fields.

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Event, LimitRange, Namespace, Node},
    node::v1::RuntimeClass,
    scheduling::v1::PriorityClass,
};
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Value};

use crate::{
    v1alpha1::{ClusterCapacity, DispatchPolicy},
    v1beta2::{
        AdmissionCheck, ClusterQueue, Cohort, LocalQueue, MultiKueueCluster, MultiKueueConfig,
        ProvisioningRequestConfig, ResourceFlavor, Topology, Workload, WorkloadPriorityClass,
    },
};

/// An API object that decodes from JSON.
///
/// Contract: as `serde_json::from_str`. Implementations are functions of one type, so that the decoder is compiled with the
/// type.
///
/// ```ignore
/// let text = r#"{"metadata": {"name": "team"}, "spec": {"parentName": "org"}}"#;
/// let cohort = Cohort::decode_text(text)?;
/// assert_eq!(cohort.spec.parent_name, "org");
/// ```
pub trait Decode: Sized {
    /// Decodes the text of an object.
    ///
    /// # Errors
    /// If the text is no JSON, or a field has another type than the kind says.
    fn decode_text(text: &str) -> Result<Self, Error>;

    /// Decodes an object.
    ///
    /// # Errors
    /// As [`decode_text`](Self::decode_text), without a position in the text.
    fn decode(value: &Value) -> Result<Self, Error> {
        Self::decode_text(&value.to_string()).map_err(|error| without_position(&error))
    }
}

/// Decodes a value: a part of an object, or an object of a type without [`Decode`].
///
/// # Errors
/// If a field has another type. No error names a position in a text.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    serde_json::from_str(&value.to_string()).map_err(|error| without_position(&error))
}

/// An error of decoding without the position, which is one in a text that no reader of the error has.
fn without_position(error: &Error) -> Error {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    Error::custom(text.strip_suffix(&*position).unwrap_or(&text))
}

/// Implements [`Decode`] for types that decode.
#[macro_export]
macro_rules! decode {
    ($($kind:ty),* $(,)?) => {
        $(impl $crate::decode::Decode for $kind {
            // Inlined, it would be compiled by the callers again.
            #[inline(never)]
            fn decode_text(text: &str) -> Result<Self, serde_json::Error> {
                serde_json::from_str(text)
            }
        })*
    };
}

decode! {
    AdmissionCheck, ClusterCapacity, ClusterQueue, Cohort, DispatchPolicy, LocalQueue, MultiKueueCluster, MultiKueueConfig,
    ProvisioningRequestConfig, ResourceFlavor, Topology, Workload, WorkloadPriorityClass,
    ConfigMap, Event, Lease, LimitRange, Namespace, Node, PriorityClass, RuntimeClass,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_decodes_as_its_text_and_its_errors_have_no_position() {
        let mut queue = json!({"metadata": {"name": "a"}, "spec": {"clusterQueue": "main"}});
        let decoded = LocalQueue::decode(&queue).expect("it decodes");
        assert_eq!(decoded, LocalQueue::decode_text(&queue.to_string()).expect("it decodes"));
        queue["spec"]["clusterQueue"] = json!(3);
        let message = "invalid type: integer `3`, expected a string";
        let of_value = LocalQueue::decode(&queue).expect_err("a number").to_string();
        assert_eq!(of_value, message);
        assert_eq!(from_value::<LocalQueue>(&queue).expect_err("a number").to_string(), message);
        let of_text = LocalQueue::decode_text(&queue.to_string()).expect_err("a number");
        assert!(of_text.to_string().starts_with(&format!("{message} at line 1 column ")));
    }
}
