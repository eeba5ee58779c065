//! Pod specs of templates, of which equal ones are kept once.
//!
//! A queue has thousands of jobs with one pod spec, and each of them is in memory twice: as the job, and as its Workload. Decoded
//! specs of one text share their memory, and so do clones; a comparison of shared specs compares pointers. A change copies the spec
//! first, so that sharing is never observed.

use std::sync::{LazyLock, Mutex};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

use crate::{
    decode::from_value,
    pod::PodSpec,
    shared::Shared,
    shared_by_text::{DecodedTexts, SharedByText, TextDigest, lock, share_decoded},
};

/// A pod spec that may be shared.
///
/// ```
/// use crds::pod::PodTemplate;
///
/// let text = r#"{"spec": {"containers": [{"name": "main"}]}}"#;
/// let one: PodTemplate = serde_json::from_str(text)?;
/// let mut other: PodTemplate = serde_json::from_str(text)?;
/// assert_eq!(one, other);
/// other.spec.get_or_insert_default().priority_class_name = "high".to_owned();
/// assert_ne!(one, other);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type SharedPodSpec = Shared<PodSpec>;

impl<'de> Deserialize<'de> for SharedPodSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let digest = TextDigest::of(text.get());
        let known = lock(&TEXTS).get(&digest);
        if let Some(known) = known {
            return Ok(Self(known));
        }
        let spec = decode(text.get()).map_err(D::Error::custom)?;
        let spec = share_decoded(&SHARED, spec);
        lock(&TEXTS).insert(digest, &spec);
        Ok(Self(spec))
    }
}

fn decode(text: &str) -> Result<PodSpec, serde_json::Error> {
    // A position in the text of the spec would mislead in the error of an object, so the error is that of the decoded JSON.
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(text).and_then(|spec| from_value(&spec)))
}

/// The decoded specs of a process. They only save memory: no behaviour depends on what is here.
static SHARED: LazyLock<Mutex<SharedByText<PodSpec>>> = LazyLock::new(Mutex::default);

/// The texts of the decoded specs. An object changes more often than its pod spec, and all jobs of a template have one.
static TEXTS: LazyLock<Mutex<DecodedTexts<PodSpec>>> = LazyLock::new(Mutex::default);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::shared_by_text::text_hash;

    fn spec(cpu: &str) -> PodSpec {
        let resources = json!({"requests": {"cpu": cpu}});
        let spec = json!({"containers": [{"name": "main", "resources": resources}]});
        serde_json::from_value(spec).expect("a pod spec")
    }

    fn share(specs: &mut SharedByText<PodSpec>, cpu: &str) -> Arc<PodSpec> {
        let spec = spec(cpu);
        specs.share(text_hash(&spec).expect("a text"), spec)
    }

    #[test]
    fn specs_of_one_text_are_one_until_one_changes() {
        let mut specs = SharedByText::default();
        let one = Shared(share(&mut specs, "1"));
        let mut other = Shared(share(&mut specs, "1"));
        assert!(Arc::ptr_eq(&one.0, &other.0));
        other.priority_class_name = "high".to_owned();
        assert!(one.priority_class_name.is_empty() && one != other);
    }

    #[test]
    fn specs_of_other_texts_keep_them() {
        let mut specs = SharedByText::default();
        let (one, other) = (share(&mut specs, "1024"), share(&mut specs, "1Ki"));
        assert_eq!(one, other, "by value");
        assert_eq!(serde_json::to_value(&*other).ok(), serde_json::to_value(spec("1Ki")).ok());
        assert!(!Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn a_text_is_decoded_once_and_its_spec_shared_with_those_of_other_texts() {
        let decoded = |text: &str| serde_json::from_str::<SharedPodSpec>(text).expect("a pod spec");
        let text = r#"{"containers":[{"name":"once","image":"i"}]}"#;
        let (one, again) = (decoded(text), decoded(text));
        assert!(Arc::ptr_eq(&one.0, &again.0));
        let reordered = decoded(r#"{"containers": [{"image": "i", "name": "once"}]}"#);
        assert!(Arc::ptr_eq(&one.0, &reordered.0));
        let value = serde_json::to_value(&one).expect("encodes");
        let of_value: SharedPodSpec = serde_json::from_value(value).expect("a pod spec");
        assert!(Arc::ptr_eq(&one.0, &of_value.0));
    }

    #[test]
    fn the_error_of_a_text_has_no_position_in_the_spec() {
        let error = serde_json::from_value::<SharedPodSpec>(json!({"containers": 1}));
        let expected = serde_json::from_value::<PodSpec>(json!({"containers": 1}));
        let text = |error: serde_json::Error| error.to_string();
        assert_eq!(error.map_err(text).err(), expected.map_err(text).err());
    }
}
