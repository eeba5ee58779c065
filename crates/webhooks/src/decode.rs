//! Decodes objects of reviews.

use crds::{decode::Decode, schema_check};
use jobs::nulls::remove_nulls;
use serde_json::Value;

/// Decodes an object. The error names the field. An explicit null is an unset field.
pub(super) fn object<T: Decode>(mut object: Value) -> Result<T, String> {
    // First, because serde accepts a list for a struct, and its errors name no field.
    schema_check::check(&object).map_err(|mismatch| mismatch.to_string())?;
    schema_check::check_quantities(&object).map_err(|invalid| invalid.to_string())?;
    remove_nulls(&mut object);
    T::decode(&object).map_err(|error| error.to_string())
}
