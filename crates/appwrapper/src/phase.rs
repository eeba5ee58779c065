//! The phases of an AppWrapper, as its status names them.
//!
//! Source: docs/reference/appwrapper.md §4.

use crate::names;

/// A phase; `decide` says which one follows another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WrapperPhase {
    /// It has no status yet.
    New,
    Suspended,
    Resuming,
    Running,
    Resetting,
    Suspending,
    Succeeded,
    Failed,
    Terminating,
    /// Of another version of the controller.
    Other(String),
}

impl WrapperPhase {
    const NAMED: [Self; 8] = [
        Self::Suspended,
        Self::Resuming,
        Self::Running,
        Self::Resetting,
        Self::Suspending,
        Self::Succeeded,
        Self::Failed,
        Self::Terminating,
    ];

    pub(crate) fn parse(text: &str) -> Self {
        if text.is_empty() {
            return Self::New;
        }
        let named = Self::NAMED.into_iter().find(|phase| phase.as_str() == text);
        named.unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::New => "",
            Self::Suspended => names::SUSPENDED,
            Self::Resuming => names::RESUMING,
            Self::Running => names::RUNNING,
            Self::Resetting => names::RESETTING,
            Self::Suspending => names::SUSPENDING,
            Self::Succeeded => names::SUCCEEDED,
            Self::Failed => names::FAILED,
            Self::Terminating => names::TERMINATING,
            Self::Other(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_read_as_it_is_written() {
        for text in ["", "Suspended", "Running", "Terminating", "Dispatching"] {
            assert_eq!(WrapperPhase::parse(text).as_str(), text);
        }
        assert_eq!(WrapperPhase::parse("Failed"), WrapperPhase::Failed);
        assert_eq!(WrapperPhase::parse("failed"), WrapperPhase::Other("failed".to_owned()));
    }
}
