//! The configuration: the file `config.kueue.x-k8s.io`, feature gates, and the kinds of jobs that they enable.
//!
//! The file is v1beta1 or v1beta2 and decoded strictly (docs/reference/kueue.md §6.4, docs/reference/multikueue.md §1.7): text
//! in, one typed [`Configuration`] out, for both versions. Invariants: a loaded configuration is valid and complete; an unknown
//! field, version or value is an error with its position. Only [`declared_kinds`] reads a file.
//!
//! | module | concept |
//! |---|---|
//! | [`Configuration`] and its blocks | the configuration file |
//! | [`gates`] | feature gates |
//! | [`JobKinds`] | the kinds of jobs that a process handles |
//! | [`support`] | which settings have no effect, and why |
//! | [`declared_kinds`] | the file of further kinds of jobs |
//! | `selector`, `resources`, `serving`, `label_source` | blocks of the file: label selectors, requests, servers, metric labels |
//! | `duration`, `null_fields`, `zero_values` | values as Go decodes them: durations, nulls, zeros that stand for a default |
//! | `validate`, `not_built` | errors of a decoded file; fields of later versions that are refused |
//! | `job_gates`, `job_kinds` | the feature gates of job kinds, and which kinds they leave |

mod configuration;
pub mod declared_kinds;
mod duration;
pub mod gates;
mod job_gates;
mod job_kinds;
mod label_source;
mod multikueue;
mod not_built;
mod null_fields;
mod resources;
mod selector;
mod serving;
pub mod support;
mod v1beta1;
mod validate;
mod zero_values;

pub use configuration::*;
pub use duration::GoDuration;
pub use job_kinds::JobKinds;
pub use label_source::LabelSource;
pub use multikueue::*;
pub use not_built::NotBuiltField;
pub use resources::*;
pub use selector::{ConfiguredSelector, Operator, Requirement};
pub use serving::*;
pub use validate::InvalidField;

use jobs::{Kinds, reserved_keys::is_reserved};
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::{
    gates::{GateError, GateSetting, Gates},
    support::IneffectiveSetting,
};

/// The namespace outside a pod, unless configured.
pub const DEFAULT_NAMESPACE: &str = "kueue-system";
/// A label that every namespace has.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
const V1BETA1: &str = "config.kueue.x-k8s.io/v1beta1";
const V1BETA2: &str = "config.kueue.x-k8s.io/v1beta2";
const KIND: &str = "Configuration";

/// Why a configuration file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not YAML, or not the fields and types of the version.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Counted from one; zero when unknown.
        line: u64,
        /// Counted from one; zero when unknown.
        column: u64,
        /// The message of the decoder.
        message: String,
    },
    /// Another kind or version.
    #[error("line {line}, column {column}: {field} is {found:?}, expected {expected}")]
    NotOurs {
        /// Counted from one.
        line: u64,
        /// Counted from one.
        column: u64,
        /// `apiVersion` or `kind`.
        field: &'static str,
        /// The value in the file.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// A required field is missing.
    #[error("{field} is missing")]
    Missing {
        /// `apiVersion` or `kind`.
        field: &'static str,
    },
    /// Fields of a later version that are not built.
    #[error("invalid configuration: {}", list(.0))]
    NotBuilt(Vec<NotBuiltField>),
    /// All invalid values.
    #[error("invalid configuration: {}", list(.0))]
    Invalid(Vec<InvalidField>),
}

fn list<T: ToString>(problems: &[T]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The two fields that select the decoder.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileHeader {
    api_version: Option<Spanned<String>>,
    kind: Option<Spanned<String>>,
}

impl Configuration {
    /// Decodes a file. `own_namespace` is the namespace of the process, if known.
    pub fn load(text: &str, own_namespace: Option<&str>) -> Result<Self, ConfigError> {
        // Decoded twice: the version decides which fields are unknown.
        let head: FileHeader = read(text)?;
        expect("kind", head.kind, &[KIND], KIND)?;
        let versions = "config.kueue.x-k8s.io/v1beta1 or config.kueue.x-k8s.io/v1beta2";
        let version = expect("apiVersion", head.api_version, &[V1BETA1, V1BETA2], versions)?;
        // As a tree, too: a decoded field does not show whether the file has it.
        let tree = read(text)?;
        let set = support::paths(&tree);
        let not_built = not_built::find(&set);
        if !not_built.is_empty() {
            return Err(ConfigError::NotBuilt(not_built));
        }
        let mut loaded: Self = match version.as_str() {
            V1BETA1 => null_fields::decode::<v1beta1::V1Beta1File>(text, &tree)
                .map_err(|error| syntax(&error))?
                .into(),
            _ => null_fields::decode::<Self>(text, &tree)
                .map_err(|error| syntax(&error))?
                .with_v1beta2_blocks(),
        };
        loaded.set = set;
        loaded.complete(own_namespace)
    }

    /// The configuration without a file.
    pub fn without_file(own_namespace: Option<&str>) -> Result<Self, ConfigError> {
        Self::default().with_v1beta2_blocks().complete(own_namespace)
    }

    /// Adds blocks that v1beta2 always has. In v1beta1 an absent block is disabled.
    fn with_v1beta2_blocks(mut self) -> Self {
        let wait = self.wait_for_pods_ready.unwrap_or_default();
        self.wait_for_pods_ready = Some(wait.with_default_for_zero());
        self
    }

    fn complete(mut self, own_namespace: Option<&str>) -> Result<Self, ConfigError> {
        self.replace_zero_values();
        self.set_dependent_defaults(own_namespace.unwrap_or(DEFAULT_NAMESPACE));
        let problems = validate::validate(&self);
        if problems.is_empty() { Ok(self) } else { Err(ConfigError::Invalid(problems)) }
    }

    /// Sets defaults that depend on other fields.
    fn set_dependent_defaults(&mut self, own_namespace: &str) {
        let namespace = self.namespace.take().filter(|name| !name.is_empty());
        let namespace = namespace.unwrap_or_else(|| own_namespace.to_owned());
        self.managed_jobs_namespace_selector.get_or_insert_with(|| ConfiguredSelector {
            match_expressions: vec![Requirement {
                key: NAMESPACE_NAME.to_owned(),
                operator: Operator::NotIn,
                values: vec!["kube-system".to_owned(), namespace.clone()],
            }],
            ..ConfiguredSelector::default()
        });
        self.namespace = Some(namespace);
        if let Some(wait) = &mut self.wait_for_pods_ready {
            wait.recovery_timeout.get_or_insert(wait.timeout);
        }
        let multi_kueue = &mut self.multi_kueue;
        // Only then: the block is an error beside another dispatcher (`validate`).
        if multi_kueue.dispatcher_name == INCREMENTAL {
            multi_kueue.incremental_dispatcher_config.get_or_insert_default();
        }
    }

    /// The namespace of Kueue's own objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The feature gates of the file, with their lines.
    #[must_use]
    pub fn gate_settings(&self) -> Vec<GateSetting> {
        let gates = self.feature_gates.iter();
        gates
            .map(|(name, on)| GateSetting {
                name: name.clone(),
                on: on.value,
                line: Some(on.referenced.line()),
            })
            .collect()
    }

    /// The feature gates of the file or of the flag.
    pub fn gates(&self, flag: &str) -> Result<Gates, GateError> {
        Gates::from_sources(flag, &self.gate_settings())
    }

    /// What the gates refuse in the file.
    ///
    /// # Errors
    /// If a value is not allowed with these gates.
    pub fn check_with(&self, gates: &Gates) -> Result<(), ConfigError> {
        let mut problems = validate::reserved_resources::check(self, gates);
        problems.extend(validate::quota_check_strategy::check(self, gates));
        problems.extend(validate::pods_ready::check(self, gates));
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid(problems)) }
    }

    /// Settings of the file that have no effect: fields, integrations that are not built, and labels that are not copied.
    #[must_use]
    pub fn settings_without_effect(&self) -> Vec<IneffectiveSetting> {
        let frameworks = self.integrations.frameworks.iter();
        // A framework is accepted by its name although no kind implements it yet.
        let missing = frameworks.filter(|name| Kinds::built_in().of_framework(name).is_none());
        let missing = missing.map(|name| IneffectiveSetting {
            name: format!("integrations.frameworks[{name}]"),
            reason: "this version does not have it: such jobs run without quota",
        });
        let copied = self.integrations.label_keys_to_copy.iter().enumerate();
        // Later versions of Kueue refuse such a file. What earlier ones accept must start here as well.
        let reserved =
            copied.filter(|(_, key)| is_reserved(key)).map(|(i, _)| IneffectiveSetting {
                name: format!("integrations.labelKeysToCopy[{i}]"),
                reason: "is written by a Kueue controller and must not be copied onto a Workload",
            });
        support::ineffective_fields(&self.set).chain(missing).chain(reserved).collect()
    }
}

fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, ConfigError> {
    serde_saphyr::from_str(text).map_err(|error| syntax(&error))
}

fn syntax(error: &serde_saphyr::Error) -> ConfigError {
    // A snippet repeats several lines of the file; a log line has the position and the message.
    let error = error.without_snippet();
    let location = error.location();
    ConfigError::Syntax {
        line: location.map_or(0, |l| l.line()),
        column: location.map_or(0, |l| l.column()),
        message: error.to_string(),
    }
}

fn expect(
    field: &'static str,
    found: Option<Spanned<String>>,
    allowed: &[&str],
    expected: &'static str,
) -> Result<String, ConfigError> {
    let found = found.ok_or(ConfigError::Missing { field })?;
    if allowed.contains(&found.value.as_str()) {
        return Ok(found.value);
    }
    let (line, column) = (found.referenced.line(), found.referenced.column());
    Err(ConfigError::NotOurs { line, column, field, found: found.value, expected })
}

#[cfg(test)]
mod tests;
