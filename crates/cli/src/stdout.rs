//! What follows from a failed write of the output.
//!
//! A reader that has enough, such as `head`, is no failure. A command that changes objects does not end in the middle of its work.

use std::{
    io::{self, ErrorKind},
    sync::atomic::{AtomicBool, Ordering},
};

use crate::command_exit::CommandExit;

/// The output of one command.
#[derive(Debug)]
pub struct OutputState {
    changes: bool,
    lost: AtomicBool,
}

impl OutputState {
    /// Of a command that changes objects, or only reads them.
    #[must_use]
    pub fn new(changes: bool) -> Self {
        Self { changes, lost: AtomicBool::new(false) }
    }

    /// The exit code with which the process ends at once after this write, if it does.
    pub fn after(&self, written: &io::Result<()>) -> Option<u8> {
        match written {
            Ok(()) => None,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => (!self.changes).then_some(0),
            Err(_) if self.changes => {
                self.lost.store(true, Ordering::Relaxed);
                None
            }
            Err(_) => Some(CommandExit::Failed.code()),
        }
    }

    /// The exit code of a command that is done.
    #[must_use]
    pub fn done(&self) -> u8 {
        if self.lost.load(Ordering::Relaxed) { CommandExit::Failed.code() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_changes_objects_finishes_its_work() {
        let failed = |kind: ErrorKind| Err(io::Error::from(kind));
        let reading = OutputState::new(false);
        assert_eq!(reading.after(&Ok(())), None);
        assert_eq!(reading.after(&failed(ErrorKind::BrokenPipe)), Some(0));
        assert_eq!(
            reading.after(&failed(ErrorKind::StorageFull)),
            Some(CommandExit::Failed.code())
        );
        let changing = OutputState::new(true);
        assert_eq!(changing.after(&failed(ErrorKind::BrokenPipe)), None);
        assert_eq!(changing.done(), 0);
        assert_eq!(changing.after(&failed(ErrorKind::StorageFull)), None);
        assert_eq!(changing.done(), CommandExit::Failed.code());
    }
}
