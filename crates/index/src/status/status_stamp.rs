//! Time and generation that a transition writes to conditions and check states.

use jiff::Timestamp;

/// Time and generation of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusStamp {
    /// Current time.
    pub now: Timestamp,
    /// `metadata.generation`.
    pub generation: i64,
}
