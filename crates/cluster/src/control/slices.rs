//! Old slices of elastic jobs: once the API knows that a larger slice holds quota, the one that it replaced is over.
//!
//! Nothing is remembered of it: both objects say so, after a restart as before. If the write fails it is tried again, and
//! meanwhile quota counts the new slice only. Source: docs/reference/kueue.md §4.8 step 13, §4.13.

use crds::names::{conditions::EVICTED, reasons};
use runtime::watch::Key;

use super::{
    Control,
    due::What,
    record::{has_quota, is},
};

impl Control {
    /// A Workload may hold what another had: that one is looked at.
    pub(super) fn old_slice_due(&mut self, key: &Key) {
        let new = self.workloads.get(key).map(|record| record.id);
        let old = new.and_then(|new| self.engine.replaced_slice(new));
        if let Some(old) = old.and_then(|old| self.by_id.get(&old)) {
            self.due.now(What::Workload(old.clone()));
        }
    }

    /// Wants the end of a Workload that is replaced.
    pub(super) fn finish_if_replaced(&mut self, key: &Key) {
        let Some(message) = self.replaced_by(key) else {
            return;
        };
        if let Some(record) = self.workloads.get_mut(key) {
            let reason = reasons::WORKLOAD_SLICE_REPLACED.to_owned();
            record.wants.finish.get_or_insert((reason, message));
        }
    }

    /// In whose favour a Workload is over.
    fn replaced_by(&self, key: &Key) -> Option<String> {
        let old = self.workloads.get(key)?;
        let successor = self.record_of(self.engine.replacement_slice(old.id)?)?;
        let new = successor.object();
        // Until the new slice's quota is written, and once that is to be given back, the old one stays.
        let stands = has_quota(old.object()) && has_quota(new) && !is(new, EVICTED);
        let (uid, job) = successor.uids();
        stands.then(|| ::index::status::replacement_message(uid, job))
    }
}
