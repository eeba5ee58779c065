//! Where a metric label comes from (docs/reference/kueue.md §6.2).

use super::CustomLabel;

/// Where the value of a metric label stands in its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelSource<'a> {
    /// In a label.
    Label(&'a str),
    /// In an annotation.
    Annotation(&'a str),
}

impl CustomLabel {
    /// Where its value stands: in the label of its own name unless another key is configured.
    #[must_use]
    pub fn source(&self) -> LabelSource<'_> {
        match (self.annotation_key(), self.label_key()) {
            (Some(key), _) => LabelSource::Annotation(key),
            (None, key) => LabelSource::Label(key.unwrap_or(&self.name)),
        }
    }

    /// The configured label. An empty key is none.
    pub(super) fn label_key(&self) -> Option<&str> {
        self.source_label_key.as_deref().filter(|key| !key.is_empty())
    }

    /// The configured annotation. An empty key is none.
    pub(super) fn annotation_key(&self) -> Option<&str> {
        self.source_annotation_key.as_deref().filter(|key| !key.is_empty())
    }
}
