//! Values of which those of one text are kept once.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    io,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

use serde::Serialize;

/// The seed of hashes. It is random: texts of one hash cannot be made.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The number of entries below which unused ones are kept.
const MIN_PRUNE: usize = 1024;

/// Values by key. An entry does not keep its value in memory.
#[derive(Debug)]
struct WeakValues<K, T> {
    by_key: HashMap<K, Weak<T>>,
    /// The number of entries at which unused ones are removed next: twice those that were left, so that a decoded value costs a
    /// constant.
    prune_at: usize,
}

impl<K, T> Default for WeakValues<K, T> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), prune_at: 0 }
    }
}

impl<K: Eq + Hash, T> WeakValues<K, T> {
    fn get(&self, key: &K) -> Option<Arc<T>> {
        self.by_key.get(key).and_then(Weak::upgrade)
    }

    fn insert(&mut self, key: K, value: &Arc<T>) {
        self.by_key.insert(key, Arc::downgrade(value));
        if self.by_key.len() < self.prune_at.max(MIN_PRUNE) {
            return;
        }
        self.by_key.retain(|_, value| value.strong_count() > 0);
        self.prune_at = self.by_key.len() * 2;
    }
}

/// Values by the hash of their text.
#[derive(Debug)]
pub(crate) struct SharedByText<T>(WeakValues<u64, T>);

impl<T> Default for SharedByText<T> {
    fn default() -> Self {
        Self(WeakValues::default())
    }
}

impl<T: PartialEq> SharedByText<T> {
    /// The known value of the text with this hash, else this one.
    pub(crate) fn share(&mut self, hash: u64, value: T) -> Arc<T> {
        // Quantities are equal by value. Their texts differ in the hash.
        if let Some(known) = self.0.get(&hash).filter(|known| **known == value) {
            return known;
        }
        let value = Arc::new(value);
        self.0.insert(hash, &value);
        value
    }
}

/// Values by the digest of the texts that they were decoded from, which may have spaces and an order of fields of their own. A text
/// that was decoded before is not read again.
#[derive(Debug)]
pub(crate) struct DecodedTexts<T>(WeakValues<TextDigest, T>);

impl<T> Default for DecodedTexts<T> {
    fn default() -> Self {
        Self(WeakValues::default())
    }
}

impl<T> DecodedTexts<T> {
    pub(crate) fn get(&self, digest: &TextDigest) -> Option<Arc<T>> {
        self.0.get(digest)
    }

    pub(crate) fn insert(&mut self, digest: TextDigest, value: &Arc<T>) {
        self.0.insert(digest, value);
    }
}

/// Two hashes with different seeds. Values are not compared with their text, so one hash would be too few.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct TextDigest([u64; 2]);

impl TextDigest {
    pub(crate) fn of(text: &str) -> Self {
        static OTHER_SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self([SEED.hash_one(text), OTHER_SEED.hash_one(text)])
    }
}

/// The known value of the text of this one, else this one.
pub(crate) fn share_decoded<T: PartialEq + Serialize>(
    table: &Mutex<SharedByText<T>>,
    value: T,
) -> Arc<T> {
    let Some(hash) = text_hash(&value) else { return Arc::new(value) };
    lock(table).share(hash, value)
}

/// Decodes values of these types into shared ones. The decoded values of a process only save memory: no behaviour depends on what
/// is there.
macro_rules! share_parts {
    ($($value:ty),* $(,)?) => {$(
        impl<'de> serde::Deserialize<'de> for $crate::shared::Shared<$value> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use std::sync::{LazyLock, Mutex};
                use $crate::shared_by_text::{SharedByText, share_decoded};

                static DECODED: LazyLock<Mutex<SharedByText<$value>>> =
                    LazyLock::new(Mutex::default);
                let value = <$value>::deserialize(deserializer)?;
                Ok(Self(share_decoded(&DECODED, value)))
            }
        }
    )*};
}

pub(crate) use share_parts;

/// Locks a table. An unwound insertion leaves it usable: at worst an entry is missing.
pub(crate) fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The hash of the text of a value; `None` if it has none.
pub(crate) fn text_hash(value: &impl Serialize) -> Option<u64> {
    let mut text = HashedText(SEED.build_hasher());
    serde_json::to_writer(&mut text, value).ok()?;
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
    use super::*;

    #[test]
    fn unused_values_are_forgotten() {
        let mut values = SharedByText::default();
        let share = |values: &mut SharedByText<usize>, value: usize| {
            values.share(text_hash(&value).expect("a text"), value)
        };
        let kept: Vec<_> = (1..=3).map(|value| share(&mut values, value)).collect();
        for value in 4..3 * MIN_PRUNE {
            share(&mut values, value);
        }
        assert!(values.0.by_key.len() <= MIN_PRUNE, "{}", values.0.by_key.len());
        assert!(Arc::ptr_eq(&kept[0], &share(&mut values, 1)));
    }

    #[test]
    fn a_decoded_text_has_its_value_for_as_long_as_it_is_used() {
        let mut texts = DecodedTexts::default();
        let (digest, value) = (TextDigest::of("one"), Arc::new(1));
        texts.insert(digest, &value);
        let known = texts.get(&TextDigest::of("one")).expect("it is used");
        assert!(Arc::ptr_eq(&known, &value) && texts.get(&TextDigest::of("other")).is_none());
        drop((value, known));
        assert_eq!(texts.get(&digest), None);
    }
}
