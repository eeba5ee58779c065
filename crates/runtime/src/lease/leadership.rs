//! What others hear of the election.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::watch, time};

/// Whether this process leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderRole {
    /// Somebody else does, or nobody.
    Following,
    /// It does, at least until then; each renewal moves that on without waking anybody.
    Leading {
        /// From this moment on another process may lead.
        until: Instant,
    },
}

/// The end on which one listens. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership {
    role: watch::Receiver<LeaderRole>,
    /// Of a process that has no rivals, the end that would tell.
    _alone: Option<Arc<watch::Sender<LeaderRole>>>,
}

impl Leadership {
    /// Of a process that has no rivals: it leads for as long as it lives.
    #[must_use]
    pub fn alone() -> Self {
        // Nobody's clock runs for so long.
        let until = now() + Duration::from_secs(100 * 365 * 24 * 3600);
        let (sender, role) = watch::channel(LeaderRole::Leading { until });
        Self { role, _alone: Some(Arc::new(sender)) }
    }

    /// Whether this process leads right now, by the clock. Ask before each action that only a leader may do.
    #[must_use]
    pub fn leads(&self) -> bool {
        matches!(*self.role.borrow(), LeaderRole::Leading { until } if now() < until)
    }

    /// Waits until this process leads; never returns if the elector has ended without it.
    pub async fn gained(&mut self) {
        if self.role.wait_for(|role| matches!(role, LeaderRole::Leading { .. })).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this process does not lead: it was told so, its time is over, or the elector is gone.
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
                () = time::sleep_until(until.into()) => {}
            }
        }
    }
}

/// The end that tells.
#[derive(Debug)]
pub(super) struct Announcer {
    role: watch::Sender<LeaderRole>,
}

impl Announcer {
    pub(super) fn new() -> (Self, Leadership) {
        let (sender, role) = watch::channel(LeaderRole::Following);
        (Self { role: sender }, Leadership { role, _alone: None })
    }

    /// Tells the role; wakes listeners only when it is another one, not when its time is extended.
    pub(super) fn tell(&self, new: LeaderRole) {
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
        self.tell(LeaderRole::Following);
    }
}

/// The monotonic clock; the runtime's, so that tests can stop it.
pub(super) fn now() -> Instant {
    time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn the_clock_ends_leadership_without_a_word_from_the_elector() {
        let (announcer, mut leadership) = Announcer::new();
        assert!(!leadership.leads());
        announcer.tell(LeaderRole::Leading { until: now() + TEN });
        leadership.gained().await;
        assert!(leadership.leads());
        time::advance(TEN).await;
        assert!(!leadership.leads());
        leadership.lost().await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_extension_is_noticed_though_it_wakes_nobody() {
        let (announcer, mut leadership) = Announcer::new();
        let start = now();
        announcer.tell(LeaderRole::Leading { until: start + TEN });
        let lost = tokio::spawn(async move {
            leadership.lost().await;
            now()
        });
        time::sleep(TEN / 2).await;
        announcer.tell(LeaderRole::Leading { until: start + TEN * 2 });
        assert_eq!(lost.await.expect("the listener"), start + TEN * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_elector_that_is_gone_leads_no_more() {
        let (announcer, mut leadership) = Announcer::new();
        announcer.tell(LeaderRole::Leading { until: now() + TEN });
        drop(announcer);
        assert!(!leadership.leads());
        leadership.lost().await;
    }
}
