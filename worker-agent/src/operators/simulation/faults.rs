//! What goes wrong at a write, and what happens beside it.

use std::time::Duration;

/// What becomes of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteFault {
    /// The agent is killed before the API server has the request.
    CrashBefore,
    /// The agent is killed before it has the answer.
    CrashAfter,
    /// The agent is killed before it has the answer, and the lists of its successor do not show the write yet.
    CrashStale,
    /// The agent is killed, and the API server carries the request out after the lists of the successor.
    CrashLate,
    /// The request does not arrive.
    LostBefore,
    /// The answer does not arrive.
    LostAfter,
    /// The API server carries the request out after the agent has given up.
    Late,
}

impl WriteFault {
    pub(super) const ALL: [Self; 7] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::CrashStale,
        Self::CrashLate,
        Self::LostBefore,
        Self::LostAfter,
        Self::Late,
    ];

    pub(super) fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter | Self::CrashStale | Self::CrashLate)
    }

    /// When the write is carried out; none if it is not.
    pub(super) fn delay(self) -> Option<Duration> {
        match self {
            Self::CrashBefore | Self::LostBefore => None,
            Self::CrashAfter | Self::CrashStale | Self::LostAfter => Some(Duration::ZERO),
            // Longer than the pause until the next agent.
            Self::CrashLate => Some(Duration::from_secs(5)),
            // Longer than the deadline of a write and the delay of the next pass.
            Self::Late => Some(Duration::from_secs(20)),
        }
    }
}

/// What happens at the moment of the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disturbance {
    Nothing,
    /// The object is suspended.
    Suspend,
    /// The object is deleted.
    Delete,
    /// Every head fails.
    HeadDies,
    /// No head answers for a while. Each request takes its deadline.
    HeadHangs,
}

impl Disturbance {
    pub(super) const ALL: [Self; 5] =
        [Self::Nothing, Self::Suspend, Self::Delete, Self::HeadDies, Self::HeadHangs];
}

/// A write by its number, and what goes wrong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FaultPoint {
    pub(super) write: usize,
    pub(super) fault: WriteFault,
    pub(super) disturbance: Disturbance,
}
