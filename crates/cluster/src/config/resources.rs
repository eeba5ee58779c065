//! The block `resources`: how requests are counted (docs/reference/kueue.md §6.4).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// How requests are counted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resources {
    /// Resources whose names begin so are not counted.
    pub exclude_resource_prefixes: Vec<String>,
    /// Resources counted as others.
    pub transformations: Vec<Transformation>,
    /// What becomes of resources that no quota names.
    pub quota_check_strategy: QuotaCheckStrategy,
    /// Device classes counted under other names.
    pub device_class_mappings: Vec<DeviceClassMapping>,
}

/// What becomes of resources that no quota names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum QuotaCheckStrategy {
    /// The Workload is not admitted.
    #[default]
    BlockUndeclared,
    /// They are not counted.
    IgnoreUndeclared,
}

/// A resource counted as others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Transformation {
    /// The resource.
    pub input: String,
    /// Whether it is counted itself, too.
    #[serde(default)]
    pub strategy: TransformationStrategy,
    /// A resource whose amount multiplies the outputs.
    pub multiply_by: Option<String>,
    /// Amounts for one unit of the input, as quantities.
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
}

/// Whether the input of a transformation is counted itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum TransformationStrategy {
    /// It is.
    #[default]
    Retain,
    /// It is not.
    Replace,
}

/// Device classes counted under another name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeviceClassMapping {
    /// The name.
    pub name: String,
    /// The classes.
    #[serde(default)]
    pub device_class_names: Vec<String>,
    /// What of a device is counted; devices themselves when empty.
    #[serde(default)]
    pub sources: Vec<DeviceSource>,
}

/// What of a device is counted; exactly one of the two.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSource {
    /// A shared counter.
    pub counter: Option<Value>,
    /// A capacity.
    pub capacity: Option<Value>,
}
