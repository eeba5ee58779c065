//! Values of which those of one text are kept once.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use serde::Serialize;

/// The seed of hashes. It is random: texts of one hash cannot be made.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The number of entries below which unused ones are kept.
const MIN_PRUNE: usize = 1024;

/// Values by the hash of their text. An entry does not keep its value in memory.
#[derive(Debug)]
pub(crate) struct SharedByText<T> {
    by_text: HashMap<u64, Weak<T>>,
    /// The number of entries at which unused ones are removed next: twice those that were left, so that a decoded value costs a
    /// constant.
    prune_at: usize,
}

impl<T> Default for SharedByText<T> {
    fn default() -> Self {
        Self { by_text: HashMap::new(), prune_at: 0 }
    }
}

impl<T: PartialEq> SharedByText<T> {
    /// The known value of the text with this hash, else this one.
    pub(crate) fn share(&mut self, hash: u64, value: T) -> Arc<T> {
        let known = self.by_text.get(&hash).and_then(Weak::upgrade);
        // Quantities are equal by value. Their texts differ in the hash.
        if let Some(known) = known.filter(|known| **known == value) {
            return known;
        }
        let value = Arc::new(value);
        self.by_text.insert(hash, Arc::downgrade(&value));
        self.prune();
        value
    }

    fn prune(&mut self) {
        if self.by_text.len() < self.prune_at.max(MIN_PRUNE) {
            return;
        }
        self.by_text.retain(|_, value| value.strong_count() > 0);
        self.prune_at = self.by_text.len() * 2;
    }
}

/// The known value of the text of this one, else this one.
pub(crate) fn share_decoded<T: PartialEq + Serialize>(
    table: &Mutex<SharedByText<T>>,
    value: T,
) -> Arc<T> {
    let Some(hash) = text_hash(&value) else { return Arc::new(value) };
    table.lock().unwrap_or_else(PoisonError::into_inner).share(hash, value)
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
        assert!(values.by_text.len() <= MIN_PRUNE, "{}", values.by_text.len());
        assert!(Arc::ptr_eq(&kept[0], &share(&mut values, 1)));
    }
}
