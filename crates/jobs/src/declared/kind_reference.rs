//! A field that names an object of one of some kinds.

use serde::Deserialize;
use serde_json::Value;

use crate::pointer::Pointer;

/// A field with the group, kind and name of an object. Jobs that name one of another kind are refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindReference {
    /// The field: an object with `apiGroup` and `kind`, each of which the API fills if it is absent.
    pub at: Pointer,
    /// What the object is called in refusals.
    pub called: String,
    /// The API group of the kinds.
    pub group: String,
    /// The kinds.
    pub kinds: Vec<String>,
}

impl KindReference {
    /// Why a new job is refused: its operator knows no such kind.
    pub(super) fn refusal(&self, job: &Value) -> Option<String> {
        let named = self.at.get(job)?;
        let text = |key: &str| named[key].as_str();
        let group = text("apiGroup").unwrap_or(&self.group);
        let is_known = |kind: &str| self.kinds.iter().any(|known| known == kind);
        if group == self.group && text("kind").is_none_or(is_known) {
            return None;
        }
        let kind = text("kind").or_else(|| self.kinds.first().map(String::as_str));
        let kind = kind.unwrap_or_default();
        let kind = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        Some(format!("unsupported {}: {kind}", self.called))
    }
}
