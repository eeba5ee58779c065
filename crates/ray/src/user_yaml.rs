//! Texts of YAML in objects that a user writes.

use serde::de::DeserializeOwned;

/// The most parts of a text that aliases may repeat. Nested aliases grow without end.
const MAX_REPLAYED: usize = 10_000;

/// The most parts that are kept for aliases. A part inside of several anchors is kept for each.
const MAX_RECORDED: usize = 100_000;

/// What the scalars of a value may have more than its text, in bytes: short texts may repeat their parts.
const SPARE_BYTES: usize = 64 << 10;

/// Decodes a text. Aliases may not make the value much larger than its text, so that an object costs only its own pass.
///
/// # Errors
/// If the text has no such value, or its aliases repeat too much.
pub(crate) fn decode_user_yaml<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    let most = text.len().saturating_add(SPARE_BYTES);
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED },
        budget: serde_saphyr::budget! {
            max_recorded_anchor_bytes: most.saturating_mul(4),
            max_recorded_anchor_events: MAX_RECORDED,
            max_total_scalar_bytes: most,
        },
    };
    serde_saphyr::from_str_with_options(text, options)
}
