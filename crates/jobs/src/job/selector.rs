//! The selector of a Job, which no decision reads.
//!
//! Nearly every selector has the uid of its Job, so that no two are equal. Decoded it takes two kilobytes, and as text a tenth of that.

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// A selector, as the API server sent it. Selectors are equal by value.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub struct JobSelector(Box<RawValue>);

impl JobSelector {
    fn value(&self) -> Option<Value> {
        serde_json::from_str(self.0.get()).ok()
    }
}

impl PartialEq for JobSelector {
    fn eq(&self, other: &Self) -> bool {
        // Texts of one value differ in spaces and in the order of fields.
        self.0.get() == other.0.get() || self.value() == other.value()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Job;

    fn job(selector: &str) -> Job {
        let text = format!(r#"{{"spec": {{"selector": {selector}, "backoffLimit": 6}}}}"#);
        serde_json::from_str(&text).expect("a Job decodes")
    }

    #[test]
    fn a_selector_is_kept_and_compared_by_value() {
        let one = job(r#"{"matchLabels": {"uid": "u"}, "matchExpressions": [{"key": "a"}]}"#);
        let sorted = json!({"matchExpressions": [{"key": "a"}], "matchLabels": {"uid": "u"}});
        assert_eq!(json!(one)["spec"]["selector"], sorted);
        assert_eq!(one, job(&sorted.to_string()));
        assert_ne!(one, job(r#"{"matchLabels": {"uid": "v"}}"#));
        assert_eq!(job("null").spec.selector, None);
    }

    #[test]
    fn jobs_that_differ_in_their_selector_share_the_other_fields() {
        let fields = |one: Job| std::ptr::from_ref(&*one.spec.rest).addr();
        let (one, other) = (job(r#"{"a": 1}"#), job(r#"{"a": 2}"#));
        assert_eq!(fields(one.clone()), fields(other.clone()));
        assert_ne!(one, other);
    }
}
