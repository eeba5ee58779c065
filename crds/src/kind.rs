//! Declares API kinds.
//!
//! An object has `apiVersion` and `kind` as zero-sized markers: written from the type and checked when decoded, so an object
//! of another version is never decoded as this one.

use std::{fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The `apiVersion` of `K`.
pub struct ApiVersion<K>(PhantomData<fn() -> K>);

/// The `kind` of `K`.
pub struct KindName<K>(PhantomData<fn() -> K>);

macro_rules! marker {
    ($marker:ident, $constant:ident) => {
        impl<K> Clone for $marker<K> {
            fn clone(&self) -> Self {
                Self(PhantomData)
            }
        }

        impl<K> Default for $marker<K> {
            fn default() -> Self {
                Self(PhantomData)
            }
        }

        impl<K> PartialEq for $marker<K> {
            fn eq(&self, _: &Self) -> bool {
                true
            }
        }

        impl<K: k8s_openapi::Resource> fmt::Debug for $marker<K> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(K::$constant)
            }
        }

        impl<K: k8s_openapi::Resource> Serialize for $marker<K> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(K::$constant)
            }
        }

        impl<'de, K: k8s_openapi::Resource> Deserialize<'de> for $marker<K> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer
                    .deserialize_str(ExpectedConstant(K::$constant))
                    .map(|()| Self(PhantomData))
            }
        }
    };
}

marker!(ApiVersion, API_VERSION);
marker!(KindName, KIND);

struct ExpectedConstant(&'static str);

impl de::Visitor<'_> for ExpectedConstant {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        if text == self.0 {
            Ok(())
        } else {
            Err(E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }
}

/// Whether a struct that is left out when nothing in it is set can be left out.
pub fn is_unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Declares an API kind: the struct with metadata and fields, and the traits that client libraries need.
macro_rules! kind {
    (
        $(#[$doc:meta])*
        $name:ident, $scope:ident, $group:literal / $version:literal / $plural:literal {
            $($(#[$field_attribute:meta])* $field:ident: $ty:ty,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// Written from the type, checked when read.
            #[serde(default)]
            pub api_version: $crate::kind::ApiVersion<$name>,
            /// Written from the type, checked when read.
            #[serde(default)]
            pub kind: $crate::kind::KindName<$name>,
            /// Name, labels, annotations and the like.
            #[serde(default, deserialize_with = "crate::exact::metadata")]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            $($(#[$field_attribute])* pub $field: $ty,)*
        }

        impl k8s_openapi::Resource for $name {
            const API_VERSION: &'static str = concat!($group, "/", $version);
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($name);
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::$scope;
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

pub(crate) use kind;
