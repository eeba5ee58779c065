//! An error of a field, with the messages of Kubernetes' API machinery.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Everything that is wrong with an object.
pub type Errors = Vec<FieldError>;

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    field: String,
    kind: FieldErrorKind,
}

#[derive(Clone, Debug, PartialEq)]
enum FieldErrorKind {
    Invalid { value: Value, detail: String },
    InvalidTogether { detail: String },
    Required { detail: String },
    Forbidden { detail: String },
    Duplicate { value: Value, detail: String },
    NotSupported { value: Value, supported: Vec<String> },
    NotFound { value: Value },
    TooLong { most: usize },
    TooMany { n_items: usize, most: usize },
}

impl FieldError {
    fn new(field: impl Into<String>, kind: FieldErrorKind) -> Self {
        Self { field: field.into(), kind }
    }

    /// The value is invalid.
    pub fn invalid(
        field: impl Into<String>,
        value: impl Serialize,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(field, FieldErrorKind::Invalid { value: json(value), detail: detail.into() })
    }

    /// The values of the field contradict each other.
    pub fn invalid_together(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, FieldErrorKind::InvalidTogether { detail: detail.into() })
    }

    /// The field must be set.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, FieldErrorKind::Required { detail: detail.into() })
    }

    /// The field must not be set, or not changed.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, FieldErrorKind::Forbidden { detail: detail.into() })
    }

    /// The value is a duplicate.
    pub fn duplicate(
        field: impl Into<String>,
        value: impl Serialize,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(field, FieldErrorKind::Duplicate { value: json(value), detail: detail.into() })
    }

    /// The value is none of those that there are.
    pub fn not_supported<'a>(
        field: impl Into<String>,
        value: impl Serialize,
        supported: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let supported = supported.into_iter().map(str::to_owned).collect();
        Self::new(field, FieldErrorKind::NotSupported { value: json(value), supported })
    }

    /// The value has more bytes than it may have.
    pub fn too_long(field: impl Into<String>, most: usize) -> Self {
        Self::new(field, FieldErrorKind::TooLong { most })
    }

    /// The list has more items than it may have.
    pub fn too_many(field: impl Into<String>, n_items: usize, most: usize) -> Self {
        Self::new(field, FieldErrorKind::TooMany { n_items, most })
    }

    /// The error with an advice after its detail.
    #[must_use]
    pub fn with_advice(mut self, advice: &str) -> Self {
        match &mut self.kind {
            FieldErrorKind::Invalid { detail, .. }
            | FieldErrorKind::InvalidTogether { detail }
            | FieldErrorKind::Required { detail }
            | FieldErrorKind::Forbidden { detail }
            | FieldErrorKind::Duplicate { detail, .. } => detail.push_str(advice),
            FieldErrorKind::NotSupported { .. }
            | FieldErrorKind::NotFound { .. }
            | FieldErrorKind::TooLong { .. }
            | FieldErrorKind::TooMany { .. } => {}
        }
        self
    }

    /// The value refers to something that is not there.
    pub fn not_found(field: impl Into<String>, value: impl Serialize) -> Self {
        Self::new(field, FieldErrorKind::NotFound { value: json(value) })
    }
}

/// The error of a changed immutable field.
pub fn immutable(field: impl Into<String>, value: impl Serialize) -> FieldError {
    FieldError::invalid(field, value, "field is immutable")
}

/// The error for an amount below zero.
pub fn negative(field: impl Into<String>, value: impl Serialize) -> FieldError {
    FieldError::invalid(field, value, "must be greater than or equal to 0")
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, kind } = self;
        match kind {
            FieldErrorKind::Invalid { value, detail } => {
                write!(f, "{field}: Invalid value: {value}: {detail}")
            }
            FieldErrorKind::InvalidTogether { detail } => {
                write!(f, "{field}: Invalid value: {detail}")
            }
            FieldErrorKind::Required { detail } if detail.is_empty() => {
                write!(f, "{field}: Required value")
            }
            FieldErrorKind::Required { detail } => write!(f, "{field}: Required value: {detail}"),
            FieldErrorKind::Forbidden { detail } => write!(f, "{field}: Forbidden: {detail}"),
            FieldErrorKind::Duplicate { value, detail } if detail.is_empty() => {
                write!(f, "{field}: Duplicate value: {value}")
            }
            FieldErrorKind::Duplicate { value, detail } => {
                write!(f, "{field}: Duplicate value: {value}: {detail}")
            }
            FieldErrorKind::NotSupported { value, supported } if supported.is_empty() => {
                write!(f, "{field}: Unsupported value: {value}")
            }
            FieldErrorKind::NotSupported { value, supported } => {
                let supported: Vec<String> =
                    supported.iter().map(|name| format!("{name:?}")).collect();
                write!(
                    f,
                    "{field}: Unsupported value: {value}: supported values: {}",
                    supported.join(", ")
                )
            }
            FieldErrorKind::NotFound { value } => write!(f, "{field}: Not found: {value}"),
            FieldErrorKind::TooLong { most } => {
                write!(f, "{field}: Too long: may not be more than {most} bytes")
            }
            FieldErrorKind::TooMany { n_items, most } => {
                write!(f, "{field}: Too many: {n_items}: must have at most {most} items")
            }
        }
    }
}

/// The text of a refusal: one error as it is, several in brackets, none twice.
pub fn denial(errors: &[FieldError]) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        // As apimachinery does when it joins errors.
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
