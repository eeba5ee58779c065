//! An object of a declared kind, as its parts are read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::fields::JobFields;
use crate::Kind;

/// See the module.
#[derive(Clone, Copy)]
pub(super) struct DeclaredObject<'a> {
    pub(super) kind: &'a Kind,
    pub(super) metadata: &'a ObjectMeta,
    /// Everything but the metadata.
    pub(super) object: &'a Value,
}

impl<'a> DeclaredObject<'a> {
    pub(super) fn fields(self) -> Option<&'a JobFields> {
        self.kind.fields()
    }

    pub(super) fn name(self) -> &'a str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}
