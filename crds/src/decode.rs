//! Decoders of API objects, compiled once.
//!
//! A generic decoder is compiled again in every crate that uses it, and the decoders of all kinds are a quarter of the code of a
//! crate that observes them. [`Decode`] has one function per kind, which every crate calls.

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Event, LimitRange, Namespace, Node},
    node::v1::RuntimeClass,
    scheduling::v1::PriorityClass,
};
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
/// Contract: as `serde_json::from_value`. Implementations are functions of one type, so that the decoder is compiled with the
/// type.
pub trait Decode: Sized {
    /// Decodes an object.
    ///
    /// # Errors
    /// If a field has another type than the kind says.
    fn decode(value: Value) -> Result<Self, Error>;

    /// Decodes the text of an object. Kinds of which a cluster has many decode it directly: a tree of JSON would cost more than the
    /// object itself.
    ///
    /// # Errors
    /// If the text is no JSON, or as [`decode`](Self::decode).
    fn decode_text(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).and_then(Self::decode)
    }
}

macro_rules! decode {
    ($($kind:ty),* $(,)?) => {
        $(impl Decode for $kind {
            // Inlined, it would be compiled by the callers again.
            #[inline(never)]
            fn decode(value: Value) -> Result<Self, Error> {
                serde_json::from_value(value)
            }
        })*
    };
}

decode! {
    AdmissionCheck, ClusterCapacity, ClusterQueue, Cohort, DispatchPolicy, LocalQueue, MultiKueueCluster, MultiKueueConfig,
    ProvisioningRequestConfig, ResourceFlavor, Topology, WorkloadPriorityClass,
    ConfigMap, Event, Lease, LimitRange, Namespace, Node, PriorityClass, RuntimeClass,
}

/// Implements [`Decode`] for a kind of which a cluster has many: text decodes without a tree of JSON.
#[macro_export]
macro_rules! decode_from_text {
    ($kind:ty) => {
        impl $crate::decode::Decode for $kind {
            #[inline(never)]
            fn decode(value: serde_json::Value) -> Result<Self, serde_json::Error> {
                serde_json::from_value(value)
            }

            #[inline(never)]
            fn decode_text(text: &str) -> Result<Self, serde_json::Error> {
                serde_json::from_str(text)
            }
        }
    };
}

decode_from_text!(Workload);
