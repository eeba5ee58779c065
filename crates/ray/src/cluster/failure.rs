//! Why a pass stopped before its end.

/// Why a pass stopped before its end.
pub(crate) struct Failure {
    /// The reason of the condition ReplicaFailure; none if that is not concerned.
    pub(crate) condition: Option<&'static str>,
    /// The human-readable message.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn plain(message: String) -> Self {
        Self { condition: None, message }
    }

    pub(crate) fn of(condition: &'static str, message: String) -> Self {
        Self { condition: Some(condition), message }
    }
}
