//! Why the worker clusters of a race have not admitted a Workload: the messages of their clones, in its check
//! (docs/reference/multikueue.md §2.15, hazard 12).
//!
//! The queues of workers may rewrite their messages in every cycle, so the check follows after a while only, and more and more seldom.

use std::time::Duration;

use crds::names::conditions::QUOTA_RESERVED;
use dispatch::workload::{DispatchCheckState, LocalWorkload};
use engine::ids::ClusterId;
use index::status::find;

use super::waiting_messages::WaitingMessages;
use crate::control::{
    context::Context,
    multikueue::{
        view::evaluated_workload::{EvaluatedWorkload, EvaluationView},
        workers::worker::Worker,
    },
    outbox::after,
    time::timestamp,
    timers::Reevaluation,
    workloads::Transition,
};

/// How long the workers have had the Workload before the check says why it waits.
const SHOWN_AFTER: Duration = Duration::from_secs(10);

/// How a message begins.
const BEGIN: &str = "Not admitted yet by worker clusters: ";

/// The most clusters that a message names.
const MAX_NAMED: usize = 5;

/// The most bytes of the message of one worker.
const MAX_REASON: usize = 240;

impl EvaluationView<'_> {
    /// The message of the check while the Workload waits in the queues of workers, and none once no clone says why; `None` if the
    /// check shows it, or not yet.
    pub(crate) fn waiting_message(
        self,
        hub: &LocalWorkload,
        check: Option<&str>,
        messages: &mut WaitingMessages,
        ctx: &mut Context,
    ) -> Option<Transition> {
        let races = hub.race.is_some() && hub.quota_reserved && !hub.evicted && !hub.epoch_raised;
        let waits = hub.check == DispatchCheckState::Pending && hub.recorded_cluster.is_none();
        let shown = self.workload.shown_message(check).filter(|_| races && waits)?;
        let message = self.reasons(&hub.nominated_clusters).unwrap_or_default();
        let is_news = !message.is_empty() || shown.starts_with(BEGIN);
        if shown == message || !is_news {
            return None;
        }
        let begins = after(timestamp(hub.nominated_at), SHOWN_AFTER);
        let due = messages.next_at().map_or(begins, |next| next.max(begins));
        if ctx.now < due {
            ctx.agenda.at(due, Reevaluation::Workload(self.workload.key.clone()));
            return None;
        }
        messages.shown(ctx.now);
        Some(Transition::PendingMessage(message))
    }

    /// What the clones on these clusters say.
    fn reasons(self, nominated: &[ClusterId]) -> Option<String> {
        let Self { workload, fleet } = self;
        let workers = nominated.iter().filter_map(|cluster| workload.worker(*cluster, fleet));
        let reasons = workers.filter_map(|worker| Some((worker, reason(workload, worker)?)));
        let reasons: Vec<(&Worker, &str)> = reasons.collect();
        let n_more = reasons.len().saturating_sub(MAX_NAMED);
        let more = if n_more > 0 { format!("; and {n_more} more") } else { String::new() };
        let named = reasons.iter().take(MAX_NAMED);
        let named: Vec<String> = named.map(|(worker, reason)| entry(worker, reason)).collect();
        (!named.is_empty()).then(|| format!("{BEGIN}{}{more}", named.join("; ")))
    }
}

/// What the clone on a worker says.
fn reason<'w>(workload: EvaluatedWorkload<'_>, worker: &'w Worker) -> Option<&'w str> {
    let clone = worker.clones.get(workload.key)?.object();
    let reserved = find(&clone.status.conditions, QUOTA_RESERVED);
    let waits = reserved.filter(|one| one.status == "False" && !one.message.is_empty())?;
    Some(&waits.message)
}

/// The part of the message about one worker.
fn entry(worker: &Worker, message: &str) -> String {
    let cut = message.floor_char_boundary(MAX_REASON);
    let text = message.get(..cut).unwrap_or_default();
    let more = if cut < message.len() { "..." } else { "" };
    format!("\"{}\": {text}{more}", worker.name())
}
