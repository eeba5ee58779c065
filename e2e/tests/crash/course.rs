//! What befalls a Job, or the house, while a program dies.
//!
//! A course is gone through twice: until the program dies of it, and again when it is back. So whatever a step does, it may
//! have been done before.

mod edited;
mod elsewhere;
mod home;
mod house;
mod interrupted;

use anyhow::Result;
use harness::Verdict;

use crate::life::Life;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// A Job runs on a worker, and nothing happens to it.
    Plain,
    /// It is deactivated while it runs, and activated again.
    Interrupted,
    /// It is changed in every way while it waits.
    Edited,
    /// It runs at home, behind a check that a person decides; its queue stops, and it is deactivated once.
    AtHome,
    /// It takes longer than it may.
    TooLong,
    /// It belongs to another controller.
    Foreign,
    /// Its clone on the worker is deleted by somebody.
    Robbed,
    /// The worker's API server takes no Job.
    Refused,
    /// The agent allows no Job.
    Forbidden,
    /// The worker is registered anew, and has other labels to tell of.
    Registered,
    /// A queue goes, and its flavor.
    QueueRemoved,
    /// The manager has to be elected first.
    Elected,
    /// The certificate of the webhooks is gone.
    Untrusted,
}

impl Course {
    /// All there are.
    pub(crate) const ALL: &[Self] = &[
        Self::Plain,
        Self::Interrupted,
        Self::Edited,
        Self::AtHome,
        Self::TooLong,
        Self::Foreign,
        Self::Robbed,
        Self::Refused,
        Self::Forbidden,
        Self::Registered,
        Self::QueueRemoved,
        Self::Elected,
        Self::Untrusted,
    ];

    /// What may be said of the pods when all is over; none if there was no Job.
    pub(crate) const fn verdicts(self) -> Option<&'static [Verdict]> {
        Some(match self {
            Self::QueueRemoved => return None,
            Self::Interrupted | Self::AtHome | Self::Robbed => &[Verdict::Once, Verdict::Moved],
            Self::TooLong => &[Verdict::Lost],
            Self::Foreign => &[Verdict::NeverRan],
            Self::Plain
            | Self::Edited
            | Self::Refused
            | Self::Forbidden
            | Self::Registered
            | Self::Elected
            | Self::Untrusted => &[Verdict::Once],
        })
    }

    /// Pods that do the work.
    pub(crate) const fn pods(self) -> usize {
        match self {
            Self::AtHome => 3,
            _ => 2,
        }
    }
}

impl Life<'_> {
    /// What happens while the program is dead.
    pub(crate) async fn meanwhile(&self) -> Result<()> {
        match self.course {
            Course::Refused => self.open_the_worker().await,
            _ => Ok(()),
        }
    }

    /// From the beginning to the end.
    pub(crate) async fn run(&self) -> Result<()> {
        match self.course {
            Course::Plain | Course::Forbidden | Course::Elected | Course::Untrusted => {
                self.submit(self.job()).await?;
                self.until_over().await
            }
            Course::Interrupted => self.interrupted().await,
            Course::Edited => self.edited().await,
            Course::AtHome => self.at_home().await,
            Course::TooLong => self.too_long().await,
            Course::Foreign => self.foreign().await,
            Course::Robbed => self.robbed().await,
            Course::Refused => self.refused().await,
            Course::Registered => self.registered().await,
            Course::QueueRemoved => self.queue_removed().await,
        }
    }
}
