//! Slices of elastic jobs: a replaced slice finishes once the API shows that the new one holds quota.
//!
//! Both objects say so, after a restart as before; nothing is remembered. If the write fails it is tried again, and
//! meanwhile quota counts the new slice only. One that runs on a worker stays until the new one is admitted there. Source:
//! docs/reference/kueue.md §4.8 step 13, §4.13.

use engine::{Engine, ids::WorkloadId};

use crate::control::{elastic_slices::may_finish, workloads::Workloads};

/// The message of the end of `old`; `None` while it stays.
pub(super) fn replacement_message(
    engine: &Engine,
    old: WorkloadId,
    workloads: &Workloads,
) -> Option<String> {
    let (_, replaced) = workloads.by_id(old)?;
    let (_, successor) = workloads.by_id(engine.replacement_slice(old)?)?;
    // The old slice stays until the new one's quota is written, and if that is to be released again.
    let (uid, job) = successor.uids();
    may_finish(replaced, successor).then(|| index::status::replacement_message(uid, job))
}
