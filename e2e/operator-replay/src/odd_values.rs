//! Values that no spec expects, and the places where they are put.

use proptest::prelude::*;
use serde_json::{Value, json};

/// Every place of a value, as JSON pointers.
pub(crate) fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(name, value)| {
                places(value, &format!("{path}/{}", name.replace('/', "~1")), found);
            });
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, item)| places(item, &format!("{path}/{index}"), found)),
        _ => {}
    }
}

/// A value that no field expects.
pub(crate) fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(-1)),
        Just(json!(2_147_483_647)),
        Just(json!(1.5)),
        Just(json!("")),
        Just(json!("9e99")),
        Just(json!("ä-ö/ü")),
        Just(json!("x".repeat(70))),
        Just(json!([])),
        Just(json!([null, {}, 3])),
        Just(json!({})),
        Just(json!({"name": 3})),
    ]
}
