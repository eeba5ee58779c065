//! Schemas of fields that hold a part of a pod, or an object of Kubernetes.
//!
//! A part of a pod has the schema that Kubernetes publishes for it, so that the API server refuses what it would refuse in a Pod.

use std::borrow::Cow;

use crds::schema::pod_template_part;
use schemars::{JsonSchema, Schema, SchemaGenerator};

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident = $pointer:literal;)*) => {$(
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
                pod_template_part(concat!("/properties/spec/properties/containers/items/properties/", $pointer))
            }
        }
    )*};
}

parts! {
    /// A variable of a container.
    EnvVarShape = "env/items";
    /// Where the value of a variable comes from.
    EnvVarSourceShape = "env/items/properties/valueFrom";
    /// A source of variables.
    EnvFromShape = "envFrom/items";
    /// Requests and limits.
    ResourcesShape = "resources";
    /// The security context of a container.
    SecurityContextShape = "securityContext";
    /// A mount of a volume.
    VolumeMountShape = "volumeMounts/items";
}
