//! The write of the next status of a Workload, with what it announces.

use std::sync::Arc;

use crds::v1beta2::WorkloadStatus;
use runtime::watch::Key;

use super::{
    announcement::StatusChange,
    command, intent,
    status::{NextStatus, StatusInputs},
    tracked_workload::TrackedWorkload,
};
use crate::control::{
    context::Context,
    outbox::{Announcements, Purpose},
    timers::Reevaluation,
};

/// Submits the next status. A reason waits for its turn ([`Outbox::take_turn_or_wait`](crate::control::outbox::Outbox)).
pub(super) fn submit(
    key: &Key,
    record: &TrackedWorkload,
    (next, inputs): (NextStatus, &StatusInputs),
    ctx: &mut Context,
) {
    match next {
        NextStatus::Write { purpose, status } => {
            write(key, record, (purpose, &status, inputs), ctx);
        }
        NextStatus::Explain(status) => {
            if ctx.outbox.take_turn_or_wait(key)
                && write(key, record, (Purpose::Pending, &status, inputs), ctx)
            {
                ctx.outbox.begin_reason();
            }
        }
        NextStatus::Wait(until) => ctx.agenda.at(until, Reevaluation::Workload(key.clone())),
        NextStatus::Nothing => {}
    }
}

fn write(
    key: &Key,
    record: &TrackedWorkload,
    (purpose, status, inputs): (Purpose, &WorkloadStatus, &StatusInputs),
    ctx: &mut Context,
) -> bool {
    let workload = Arc::clone(record.object());
    let submitted = ctx.outbox.submit(intent(key, record, purpose), |purpose, key| {
        command::write_status(purpose, key, &workload, status)
    });
    if submitted {
        let change = StatusChange {
            workload: &workload,
            after: status,
            transitions: record.transitions(),
            check_updates: &inputs.check_updates,
            now: ctx.now,
        };
        let (events, measurements) = (change.announcements(), change.measurements());
        ctx.outbox.announce(Announcements { events, measurements });
    }
    submitted
}
