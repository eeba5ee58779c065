//! Pod specs of templates, of which equal ones are kept once.
//!
//! A queue has thousands of jobs with one pod spec, and each of them is in memory twice: as the job, and as its Workload. Decoded
//! specs of one text share their memory, and so do clones; a comparison of shared specs compares pointers. A change copies the spec
//! first, so that sharing is never observed.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    ops::{Deref, DerefMut},
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use serde::{Deserialize, Deserializer, Serialize};

use crate::pod::PodSpec;

/// A pod spec that may be shared. Dereferences to [`PodSpec`].
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
#[derive(Clone, Debug, Default)]
pub struct SharedPodSpec(Arc<PodSpec>);

impl SharedPodSpec {
    /// The spec, copied if it is shared.
    #[must_use]
    pub fn into_owned(self) -> PodSpec {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for SharedPodSpec {
    type Target = PodSpec;

    fn deref(&self) -> &PodSpec {
        &self.0
    }
}

impl DerefMut for SharedPodSpec {
    fn deref_mut(&mut self) -> &mut PodSpec {
        Arc::make_mut(&mut self.0)
    }
}

impl From<PodSpec> for SharedPodSpec {
    fn from(spec: PodSpec) -> Self {
        Self(Arc::new(spec))
    }
}

impl PartialEq for SharedPodSpec {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Serialize for SharedPodSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedPodSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spec = PodSpec::deserialize(deserializer)?;
        let Some(hash) = text_hash(&spec) else { return Ok(spec.into()) };
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Self(shared.share(hash, spec)))
    }
}

/// The decoded specs of a process. They only save memory: no behaviour depends on what is here.
static SHARED: LazyLock<Mutex<SharedPodSpecs>> = LazyLock::new(Mutex::default);

/// The seed of hashes. It is random: texts of one hash cannot be made.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The number of entries below which unused ones are kept.
const MIN_PRUNE: usize = 1024;

/// Specs by the hash of their text. An entry does not keep its spec in memory.
#[derive(Debug, Default)]
struct SharedPodSpecs {
    by_text: HashMap<u64, Weak<PodSpec>>,
    /// The number of entries at which unused ones are removed next: twice those that were left, so that a decoded spec costs a
    /// constant.
    prune_at: usize,
}

impl SharedPodSpecs {
    /// The known spec of the text with this hash, else this one.
    fn share(&mut self, hash: u64, spec: PodSpec) -> Arc<PodSpec> {
        let known = self.by_text.get(&hash).and_then(Weak::upgrade);
        // Quantities are equal by value. Their texts differ in the hash.
        if let Some(known) = known.filter(|known| **known == spec) {
            return known;
        }
        let spec = Arc::new(spec);
        self.by_text.insert(hash, Arc::downgrade(&spec));
        self.prune();
        spec
    }

    fn prune(&mut self) {
        if self.by_text.len() < self.prune_at.max(MIN_PRUNE) {
            return;
        }
        self.by_text.retain(|_, spec| spec.strong_count() > 0);
        self.prune_at = self.by_text.len() * 2;
    }
}

/// The hash of the text of a spec; `None` if it has none.
fn text_hash(spec: &PodSpec) -> Option<u64> {
    let mut text = HashedText(SEED.build_hasher());
    serde_json::to_writer(&mut text, spec).ok()?;
    Some(text.0.finish())
}

/// Hashes what is written.
struct HashedText<H>(H);

impl<H: Hasher> io::Write for HashedText<H> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(cpu: &str) -> PodSpec {
        let resources = json!({"requests": {"cpu": cpu}});
        let spec = json!({"containers": [{"name": "main", "resources": resources}]});
        serde_json::from_value(spec).expect("a pod spec")
    }

    fn share(specs: &mut SharedPodSpecs, cpu: &str) -> Arc<PodSpec> {
        let spec = spec(cpu);
        specs.share(text_hash(&spec).expect("a text"), spec)
    }

    #[test]
    fn specs_of_one_text_are_one_until_one_changes() {
        let mut specs = SharedPodSpecs::default();
        let one = SharedPodSpec(share(&mut specs, "1"));
        let mut other = SharedPodSpec(share(&mut specs, "1"));
        assert!(Arc::ptr_eq(&one.0, &other.0));
        other.priority_class_name = "high".to_owned();
        assert!(one.priority_class_name.is_empty() && one != other);
    }

    #[test]
    fn specs_of_other_texts_keep_them() {
        let mut specs = SharedPodSpecs::default();
        let (one, other) = (share(&mut specs, "1024"), share(&mut specs, "1Ki"));
        assert_eq!(one, other, "by value");
        assert_eq!(serde_json::to_value(&*other).ok(), serde_json::to_value(spec("1Ki")).ok());
        assert!(!Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn unused_specs_are_forgotten() {
        let mut specs = SharedPodSpecs::default();
        let kept: Vec<_> = (1..=3).map(|cpu| share(&mut specs, &cpu.to_string())).collect();
        for cpu in 4..3 * MIN_PRUNE {
            share(&mut specs, &cpu.to_string());
        }
        assert!(specs.by_text.len() <= MIN_PRUNE, "{}", specs.by_text.len());
        assert!(Arc::ptr_eq(&kept[0], &share(&mut specs, "1")));
    }
}
