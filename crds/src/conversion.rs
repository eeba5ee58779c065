//! Conversion of objects between v1beta1 and v1beta2, as a pure function.
//!
//! A conversion renames and moves fields that differ, then re-encodes spec and status through the types of the target version.
//! Re-encoding is part of the behaviour, because Kueue's converter decodes into structs, too: quantities become canonical,
//! empty values are dropped, and fields without a place in the target version are lost (docs/reference/kueue.md §1; the module
//! of each kind lists them).

mod cluster_queue;
mod local_queue;
mod multi_kueue_cluster;
mod pod_template;
mod queue_usage;
mod topology_assignment;
mod workload;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    decode::from_value,
    schema_check::{self, Mismatch},
    v1beta1, v1beta2,
};

pub use pod_template::rewrite as rewrite_template;

const GROUP: &str = "kueue.x-k8s.io";

type Object = Map<String, Value>;

/// Why an object was not converted.
#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// There is no conversion for the kind or the version.
    #[error("no conversion of {kind:?} from {from:?} to {to:?}")]
    Unknown {
        /// The kind of the object.
        kind: String,
        /// The version of the object.
        from: String,
        /// The target version.
        to: String,
    },
    /// A field is of a wrong type.
    #[error("cannot convert {kind} {name:?}: {mismatch}")]
    Mismatch {
        /// The kind of the object.
        kind: String,
        /// The name of the object.
        name: String,
        /// The field.
        mismatch: Mismatch,
    },
    /// A part of the object has values that cannot be read.
    #[error("cannot read {part} of {kind} {name:?} as {version}: {source}")]
    Malformed {
        /// `spec` or `status`.
        part: &'static str,
        /// The kind of the object.
        kind: String,
        /// The name of the object.
        name: String,
        /// The version it was read as.
        version: ConversionVersion,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// A version of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionVersion {
    /// The old one.
    V1Beta1,
    /// The stored one.
    V1Beta2,
}

impl ConversionVersion {
    fn parse(api_version: &str) -> Option<Self> {
        match api_version.strip_prefix(GROUP)?.strip_prefix('/')? {
            "v1beta1" => Some(Self::V1Beta1),
            "v1beta2" => Some(Self::V1Beta2),
            _ => None,
        }
    }
}

impl std::fmt::Display for ConversionVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        })
    }
}

/// Spec and status during a conversion.
struct ConvertedParts {
    spec: Object,
    status: Object,
}

/// Converts `object` to `desired_api_version`. Metadata is left alone.
///
/// # Errors
/// If the kind or one of the versions has no conversion, or the object has values of a wrong type.
pub fn convert(mut object: Value, desired_api_version: &str) -> Result<Value, ConversionError> {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (kind, from) = (text("kind"), text("apiVersion"));
    // Nothing is re-encoded: the API server asked for no change.
    if from == desired_api_version {
        return Ok(object);
    }
    let unknown = || ConversionError::Unknown {
        kind: kind.clone(),
        from: from.clone(),
        to: desired_api_version.to_owned(),
    };
    let (Some(_), Some(to)) =
        (ConversionVersion::parse(&from), ConversionVersion::parse(desired_api_version))
    else {
        return Err(unknown());
    };
    // Before the parts are moved, so that the path of a wrong field is that of the sent object.
    check(&object, &kind, to).map_err(|mismatch| ConversionError::Mismatch {
        kind: kind.clone(),
        name: name(&object),
        mismatch,
    })?;
    let mut parts =
        ConvertedParts { spec: take(&mut object, "spec"), status: take(&mut object, "status") };
    let (edit, encode) = steps(&kind, to).ok_or_else(unknown)?;
    edit(&mut parts);
    let encoded = encode(parts).map_err(|(part, source)| ConversionError::Malformed {
        part,
        kind: kind.clone(),
        name: name(&object),
        version: to,
        source,
    })?;
    object["apiVersion"] = desired_api_version.into();
    put(&mut object, &kind, to, encoded);
    Ok(object)
}

/// The first field that the other version cannot have.
fn check(object: &Value, kind: &str, to: ConversionVersion) -> Result<(), Mismatch> {
    schema_check::check(object)?;
    match (kind, to) {
        ("Workload", ConversionVersion::V1Beta2) => workload::check_domains(&object["status"]),
        _ => Ok(()),
    }
}

type Encoded = Result<ConvertedParts, (&'static str, serde_json::Error)>;

/// A step that renames and moves fields, and one that encodes the outcome in the wanted version.
type ConversionSteps = (fn(&mut ConvertedParts), fn(ConvertedParts) -> Encoded);

/// The steps of a conversion; `None` if the kind has none.
fn steps(kind: &str, to: ConversionVersion) -> Option<ConversionSteps> {
    use ConversionVersion::{V1Beta1, V1Beta2};
    Some(match (kind, to) {
        ("Workload", V1Beta2) => (workload::to_v1beta2, |parts| {
            workload::encode::<v1beta2::WorkloadSpec, v1beta2::WorkloadStatus>(parts)
        }),
        ("Workload", V1Beta1) => (workload::to_v1beta1, |parts| {
            workload::encode::<v1beta1::WorkloadSpec, v1beta1::WorkloadStatus>(parts)
        }),
        ("ClusterQueue", V1Beta2) => (
            cluster_queue::to_v1beta2,
            encode::<v1beta2::ClusterQueueSpec, v1beta2::ClusterQueueStatus>,
        ),
        ("ClusterQueue", V1Beta1) => (
            cluster_queue::to_v1beta1,
            encode::<v1beta1::ClusterQueueSpec, v1beta1::ClusterQueueStatus>,
        ),
        ("LocalQueue", V1Beta2) => {
            (local_queue::to_v1beta2, encode::<v1beta2::LocalQueueSpec, v1beta2::LocalQueueStatus>)
        }
        ("LocalQueue", V1Beta1) => {
            (local_queue::to_v1beta1, encode::<v1beta1::LocalQueueSpec, v1beta1::LocalQueueStatus>)
        }
        // A Cohort only loses the admission fair sharing status, which v1beta2 does not have.
        ("Cohort", V1Beta2) => (|_| {}, encode::<v1beta2::CohortSpec, v1beta2::CohortStatus>),
        ("Cohort", V1Beta1) => (|_| {}, encode::<v1beta1::CohortSpec, v1beta1::CohortStatus>),
        ("MultiKueueCluster", V1Beta2) => (
            multi_kueue_cluster::to_v1beta2,
            encode::<v1beta2::MultiKueueClusterSpec, v1beta2::MultiKueueClusterStatus>,
        ),
        ("MultiKueueCluster", V1Beta1) => (
            multi_kueue_cluster::to_v1beta1,
            encode::<v1beta1::MultiKueueClusterSpec, v1beta1::MultiKueueClusterStatus>,
        ),
        _ => return None,
    })
}

fn encode<Spec, Status>(parts: ConvertedParts) -> Encoded
where
    Spec: DeserializeOwned + Serialize,
    Status: DeserializeOwned + Serialize,
{
    Ok(ConvertedParts {
        spec: through::<Spec>(parts.spec).map_err(|error| ("spec", error))?,
        status: through::<Status>(parts.status).map_err(|error| ("status", error))?,
    })
}

/// Decodes and encodes: drops unknown fields and normalizes the others.
fn through<T: DeserializeOwned + Serialize>(
    mut object: Object,
) -> Result<Object, serde_json::Error> {
    // An explicit null is an unset field.
    drop_nulls(&mut object);
    let value: T = from_value(&Value::Object(object))?;
    Ok(match serde_json::to_value(value)? {
        Value::Object(object) => object,
        _ => Object::new(),
    })
}

fn drop_nulls(object: &mut Object) {
    object.retain(|_, value| !value.is_null());
    for value in object.values_mut() {
        drop_nulls_below(value);
    }
}

fn drop_nulls_below(value: &mut Value) {
    match value {
        Value::Object(object) => drop_nulls(object),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls_below),
        _ => {}
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn take(object: &mut Value, key: &str) -> Object {
    match object.get_mut(key).map(Value::take) {
        Some(Value::Object(part)) => part,
        _ => Object::new(),
    }
}

/// Spec and status are always written, but for the spec of a MultiKueueCluster without a source.
fn put(object: &mut Value, kind: &str, version: ConversionVersion, parts: ConvertedParts) {
    let Value::Object(object) = object else { return };
    if kind == "MultiKueueCluster" && version == ConversionVersion::V1Beta2 && parts.spec.is_empty()
    {
        object.remove("spec");
    } else {
        object.insert("spec".into(), Value::Object(parts.spec));
    }
    object.insert("status".into(), Value::Object(parts.status));
}

/// Moves the value of one key to another.
fn rename(object: &mut Object, from: &str, to: &str) {
    if let Some(value) = object.remove(from) {
        object.insert(to.to_owned(), value);
    }
}

/// The items of a list below `object`, if it is one.
fn items<'a>(object: &'a mut Object, key: &str) -> impl Iterator<Item = &'a mut Object> {
    let list = object.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests;
