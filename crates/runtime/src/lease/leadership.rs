//! The published role of a candidate.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::watch, time};

/// The role of this process in an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderRole {
    /// The process does not lead.
    Following,
    /// The process leads at least until `until`. Renewals extend the time without waking waiters.
    Leading {
        /// From this moment on another process may lead.
        until: Instant,
    },
}

/// The receiving side. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership {
    role: watch::Receiver<LeaderRole>,
    /// Keeps the channel open for a process without an election.
    _alone: Option<Arc<watch::Sender<LeaderRole>>>,
}

impl Leadership {
    /// The role of a process without an election: it always leads.
    #[must_use]
    pub fn alone() -> Self {
        // Longer than any process runs.
        let until = now() + Duration::from_secs(100 * 365 * 24 * 3600);
        let (sender, role) = watch::channel(LeaderRole::Leading { until });
        Self { role, _alone: Some(Arc::new(sender)) }
    }

    /// Whether this process leads at this moment, by the clock. Call it before every action that only a leader may take.
    #[must_use]
    pub fn leads(&self) -> bool {
        matches!(*self.role.borrow(), LeaderRole::Leading { until } if now() < until)
    }

    /// Waits until this process leads. Never returns if the elector has ended without leading.
    pub async fn gained(&mut self) {
        if self.role.wait_for(|role| matches!(role, LeaderRole::Leading { .. })).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this process does not lead: the role changed, its time is over, or the elector was dropped.
    pub async fn lost(&mut self) {
        loop {
            let LeaderRole::Leading { until } = *self.role.borrow_and_update() else {
                return;
            };
            if now() >= until {
                return;
            }
            tokio::select! {
                changed = self.role.changed() => if changed.is_err() { return },
                // Renewals do not wake this task, so the time may have been extended meanwhile.
                () = time::sleep_until(until.into()) => {}
            }
        }
    }
}

/// The sending side.
#[derive(Debug)]
pub(super) struct Announcer {
    role: watch::Sender<LeaderRole>,
}

impl Announcer {
    pub(super) fn new() -> (Self, Leadership) {
        let (sender, role) = watch::channel(LeaderRole::Following);
        (Self { role: sender }, Leadership { role, _alone: None })
    }

    /// Publishes a role. Wakes waiters only if the role changes, not if its time is extended.
    pub(super) fn publish(&self, new: LeaderRole) {
        self.role.send_if_modified(|role| {
            let changed =
                matches!(new, LeaderRole::Following) != matches!(role, LeaderRole::Following);
            *role = new;
            changed
        });
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        // Also after a panic of the elector: nothing would extend or end the time of the leader.
        self.publish(LeaderRole::Following);
    }
}

/// The monotonic clock of the async runtime, which tests can pause.
pub(super) fn now() -> Instant {
    time::Instant::now().into_std()
}

/// Leadership that ends after `time`, and what keeps its channel open.
#[cfg(test)]
pub(crate) fn leading_for(time: Duration) -> (impl Sized, Leadership) {
    let (announcer, leadership) = Announcer::new();
    announcer.publish(LeaderRole::Leading { until: now() + time });
    (announcer, leadership)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_by_the_clock_without_the_elector() {
        let (announcer, mut leadership) = Announcer::new();
        assert!(!leadership.leads());
        announcer.publish(LeaderRole::Leading { until: now() + TEN });
        leadership.gained().await;
        assert!(leadership.leads());
        time::advance(TEN).await;
        assert!(!leadership.leads());
        leadership.lost().await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_extension_takes_effect_without_waking_waiters() {
        let (announcer, mut leadership) = Announcer::new();
        let start = now();
        announcer.publish(LeaderRole::Leading { until: start + TEN });
        let lost = tokio::spawn(async move {
            leadership.lost().await;
            now()
        });
        time::sleep(TEN / 2).await;
        announcer.publish(LeaderRole::Leading { until: start + TEN * 2 });
        assert_eq!(lost.await.expect("the listener"), start + TEN * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_when_the_elector_is_dropped() {
        let (announcer, mut leadership) = Announcer::new();
        announcer.publish(LeaderRole::Leading { until: now() + TEN });
        drop(announcer);
        assert!(!leadership.leads());
        leadership.lost().await;
    }
}
