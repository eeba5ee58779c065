//! Schemas that several fields share, named after the values that they allow.
//!
//! A field declares `#[schemars(with = "DnsSubdomain")]` and keeps its plain Rust type: types are total, limits belong to the
//! schema.

use std::{borrow::Cow, sync::LazyLock};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

/// A cross-field rule of a CRD.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rule {
    /// CEL over `self`, and over `oldSelf` for updates.
    pub rule: &'static str,
    /// The message of a refusal.
    pub message: &'static str,
}

const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const LABEL_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident => $schema:tt;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

shapes! {
    /// Names of most objects: lower case, digits, `-` and `.`.
    DnsSubdomain => {"type": "string", "maxLength": 253, "pattern": SUBDOMAIN};
    /// Names of pod sets: lower case, digits and `-`.
    DnsLabel => {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"};
    /// Label keys, with or without a prefix.
    LabelKey => {"type": "string", "pattern": LABEL_KEY};
    /// Kinds of objects, in any case.
    KindName => {"type": "string", "maxLength": 63, "pattern": "^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$"};
    /// Points in time.
    Timestamp => {"type": "string", "format": "date-time"};
    /// Counts of at least one.
    PositiveInt => {"type": "integer", "format": "int32", "minimum": 1};
    /// An object whose fields are stored as they are.
    AnyObject => {"type": "object", "x-kubernetes-preserve-unknown-fields": true};
    /// A number with a fraction.
    Number => {"type": "number"};
    /// A label selector.
    Selector => {
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"type": "string"},
                        "operator": {"type": "string"},
                        "values": {
                            "type": "array",
                            "x-kubernetes-list-type": "atomic",
                            "items": {"type": "string"},
                        },
                    },
                },
            },
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    };
    /// A taint of a node.
    TaintShape => {
        "type": "object",
        "required": ["effect", "key"],
        "properties": {
            "effect": {"type": "string"},
            "key": {"type": "string"},
            "timeAdded": {"type": "string", "format": "date-time"},
            "value": {"type": "string"},
        },
    };
    /// A toleration of a pod.
    TolerationShape => {
        "type": "object",
        "properties": {
            "effect": {"type": "string"},
            "key": {"type": "string"},
            "operator": {"type": "string"},
            "tolerationSeconds": {"type": "integer", "format": "int64"},
            "value": {"type": "string"},
        },
    };
    /// A condition.
    ConditionShape => {
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "message": {"type": "string", "maxLength": 32768},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "type": {"type": "string", "maxLength": 316, "pattern": LABEL_KEY},
        },
    };
}

/// Text between `MIN` and `MAX` characters; 0 is no bound.
pub struct Text<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> JsonSchema for Text<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Text{MIN}To{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({"type": "string"});
        for (bound, value) in [("minLength", MIN), ("maxLength", MAX)] {
            if value > 0 {
                schema.insert(bound.to_owned(), value.into());
            }
        }
        schema
    }
}

/// The schema of a pod template, as Kubernetes publishes it: see `pod_template.json`.
pub struct PodTemplateShape;

/// Generated by `go run ./cmd/pod-template-schema` in the lab's Go module.
const POD_TEMPLATE: &str = include_str!("pod_template.json");

/// The schema of [`POD_TEMPLATE`], decoded.
pub(crate) static POD_TEMPLATE_SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(POD_TEMPLATE).unwrap_or_default());

impl JsonSchema for PodTemplateShape {
    fn schema_name() -> Cow<'static, str> {
        "PodTemplateShape".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(POD_TEMPLATE_SCHEMA.clone()).unwrap_or_default()
    }
}

/// A part of the schema of a pod template, by JSON pointer: for fields that hold a part of a pod. Unknown pointers give an empty
/// schema.
#[must_use]
pub fn pod_template_part(pointer: &str) -> Schema {
    let part = POD_TEMPLATE_SCHEMA.pointer(pointer).cloned().unwrap_or_default();
    Schema::try_from(part).unwrap_or_default()
}
