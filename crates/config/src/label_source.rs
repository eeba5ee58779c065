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
        match &self.source_annotation_key {
            Some(key) => LabelSource::Annotation(key),
            None => LabelSource::Label(self.source_label_key.as_ref().unwrap_or(&self.name)),
        }
    }
}
