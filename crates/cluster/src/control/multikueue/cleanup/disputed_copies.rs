//! What the check of a Workload says while copies that only a person decides about keep it from being dispatched
//! (docs/reference/dispatch.md §6, §9).

use crds::names::annotations::CLEANUP;
use dispatch::workload::DispatchCheckState;
use engine::ids::ClusterId;

use crate::control::{multikueue::view::evaluated_workload::EvaluationView, workloads::Transition};

/// The most clusters that a message names.
const MAX_NAMED: usize = 5;

/// How a message begins. The words of workers stand at the beginning of none.
const BEGIN: &str = "Worker cluster \"";

/// What a message says after the names of the clusters.
const BLOCKED: &str = "has a copy of this workload that this manager does not know";

impl EvaluationView<'_> {
    /// The message of the check while these clusters block the Workload, and none after that; `None` if the check shows it.
    pub(crate) fn disputed_message(
        self,
        check: Option<&str>,
        state: DispatchCheckState,
        blocking: &[ClusterId],
    ) -> Option<Transition> {
        if state != DispatchCheckState::Pending {
            return None;
        }
        let shown = self.workload.shown_message(check)?;
        let message = match blocking {
            [] if is_about_disputes(shown) => String::new(),
            [] => return None,
            _ => message(blocking.iter().map(|one| self.fleet.name(*one))),
        };
        (shown != message).then_some(Transition::PendingMessage(message))
    }
}

fn is_about_disputes(message: &str) -> bool {
    message.starts_with(BEGIN) && message.contains(BLOCKED)
}

fn message<'a>(clusters: impl ExactSizeIterator<Item = &'a str>) -> String {
    let n_more = clusters.len().saturating_sub(MAX_NAMED);
    let named: Vec<&str> = clusters.take(MAX_NAMED).collect();
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    let named = named.join("\", \"");
    format!(
        "{BEGIN}{named}\"{more} {BLOCKED}: of a higher epoch, or of another state of the manager. It may run, so the workload starts nowhere else. Annotate the MultiKueueCluster with \
         {CLEANUP}=confirmed to have such copies deleted there"
    )
}
