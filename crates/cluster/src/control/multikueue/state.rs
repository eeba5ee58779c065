//! What is remembered of a Workload's dispatch.
//!
//! All of it may be lost: after a restart the cautious values hold until the API servers say more.

use jiff::Timestamp;

use super::status_sync::StatusSyncThrottle;

/// See the module.
#[derive(Debug)]
pub(super) struct DispatchState {
    /// A create may have been sent under the present epoch.
    pub(super) sent: bool,
    /// The epoch was raised for the withdrawal that is under way.
    pub(super) epoch_raised: bool,
    /// Nothing of the Workload runs on any worker.
    pub(super) withdrawn: bool,
    /// When the status of its job was copied to the hub.
    pub(super) throttle: StatusSyncThrottle,
    /// Since when it is nominated, as far as this process knows.
    pub(super) nominated_at: Timestamp,
}

impl DispatchState {
    /// Of a Workload that this process observes for the first time: a create may be on its way.
    pub(super) fn unknown(now: Timestamp) -> Self {
        Self { sent: true, ..Self::fresh(now) }
    }

    /// Of a Workload that gets or gives back quota now.
    pub(super) fn fresh(now: Timestamp) -> Self {
        Self {
            sent: false,
            epoch_raised: false,
            withdrawn: false,
            throttle: StatusSyncThrottle::default(),
            nominated_at: now,
        }
    }
}
