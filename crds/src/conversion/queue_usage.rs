//! Amounts of usage in the status of queues.
//!
//! Kueue's types have amounts that are never absent: its converter writes an unset amount as zero, in both directions.

use serde_json::Value;

use super::{Object, items};

/// Sets amounts that are unset to zero, in these lists of flavors.
pub(super) fn set_unset_to_zero(status: &mut Object, flavor_lists: &[&str], amounts: &[&str]) {
    for list in flavor_lists {
        for flavor in items(status, list) {
            items(flavor, "resources").for_each(|usage| set_to_zero(usage, amounts));
        }
    }
}

fn set_to_zero(usage: &mut Object, amounts: &[&str]) {
    for amount in amounts {
        // An explicit null is an unset field.
        if usage.get(*amount).is_none_or(Value::is_null) {
            usage.insert((*amount).to_owned(), "0".into());
        }
    }
}
