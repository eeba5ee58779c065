//! The block `resources`: how requests count against quota (docs/reference/kueue.md §6.4).

use std::collections::BTreeMap;

use crds::quantity::Quantity;
use serde::Deserialize;
use serde_json::Value;

/// How requests count against quota.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resources {
    /// Prefixes of resource names that do not count.
    pub exclude_resource_prefixes: Vec<String>,
    /// Resources that are replaced by others.
    pub transformations: Vec<Transformation>,
    /// The treatment of resources without quota.
    pub quota_check_strategy: QuotaCheckStrategy,
    /// Names of device classes.
    pub device_class_mappings: Vec<DeviceClassMapping>,
}

/// The treatment of resources without quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum QuotaCheckStrategy {
    /// The Workload is not admitted.
    #[default]
    BlockUndeclared,
    /// The resource does not count.
    IgnoreUndeclared,
}

/// A resource that is replaced by others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Transformation {
    /// The input resource.
    pub input: String,
    /// Whether the input is kept.
    #[serde(default)]
    pub strategy: TransformationStrategy,
    /// A resource whose amount multiplies the outputs.
    pub multiply_by: Option<String>,
    /// Quantities per unit of the input, as text or as numbers.
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
}

impl Transformation {
    /// The outputs; none for one that is no quantity.
    pub fn amounts(&self) -> impl Iterator<Item = (&str, Option<Quantity>)> {
        self.outputs.iter().map(|(name, value)| (name.as_str(), quantity(value)))
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether the input of a transformation is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum TransformationStrategy {
    /// The input counts, too.
    #[default]
    #[serde(alias = "")]
    Retain,
    /// The input does not count.
    Replace,
}

/// Device classes that count as one resource.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeviceClassMapping {
    /// The name of the resource.
    pub name: String,
    /// The device classes.
    #[serde(default)]
    pub device_class_names: Vec<String>,
    /// What counts; the devices themselves if empty.
    #[serde(default)]
    pub sources: Vec<DeviceSource>,
}

/// What counts of a device; exactly one of the two.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSource {
    /// A shared counter of the device.
    pub counter: Option<Value>,
    /// A capacity of the device.
    pub capacity: Option<Value>,
}
