//! Pods that cannot start, as the Workload life cycle sees them.

use crds::names::reasons;

/// The longest message about a pod, in bytes. An image reference and the words of a registry fit.
const MAX_MESSAGE: usize = 1024;

/// Reasons of pods that do not start before something outside of them changes. A container that starts and fails is not among
/// them: its exit code says why.
const REASONS: [&str; 7] = [
    reasons::UNSCHEDULABLE,
    reasons::ERR_IMAGE_PULL,
    reasons::IMAGE_PULL_BACK_OFF,
    reasons::ERR_IMAGE_NEVER_PULL,
    reasons::INVALID_IMAGE_NAME,
    reasons::CREATE_CONTAINER_CONFIG_ERROR,
    reasons::CREATE_CONTAINER_ERROR,
];

/// Why a pod cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartFailure {
    /// The reason of the kubelet or of kube-scheduler.
    pub(crate) reason: &'static str,
    /// The pod, and what is said about it.
    pub(crate) message: String,
}

impl StartFailure {
    /// `None` for any other reason. The message is shortened.
    pub(crate) fn of(reason: &str, message: &str) -> Option<Self> {
        let reason = REASONS.into_iter().find(|known| *known == reason)?;
        Some(Self { reason, message: shortened(message) })
    }

    /// The failure of a pod whose clone waits for so many nodes of an autoscaler.
    pub(crate) fn awaiting(self, nodes: i64) -> Self {
        if self.reason != reasons::UNSCHEDULABLE {
            return self;
        }
        let plural = if nodes == 1 { "" } else { "s" };
        let message = shortened(&format!("needs {nodes} new node{plural}: {}", self.message));
        Self { message, ..self }
    }
}

/// What is known of the pods of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PodStarts {
    /// Nothing yet, or nothing in this cluster.
    #[default]
    Unknown,
    /// None of them fails to start.
    NotFailing,
    /// One of them cannot start.
    Failing(StartFailure),
}

fn shortened(message: &str) -> String {
    const ELLIPSIS: char = '…';
    if message.len() <= MAX_MESSAGE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(MAX_MESSAGE - ELLIPSIS.len_utf8());
    let kept = message.get(..end).unwrap_or_default();
    format!("{kept}{ELLIPSIS}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_shortened_between_characters() {
        let long = "ä".repeat(600);
        let failure = StartFailure::of("ImagePullBackOff", &long).expect("a known reason");
        assert_eq!(failure.message.len(), 1023);
        assert!(failure.message.ends_with("ä…"));
        let short = StartFailure::of("Unschedulable", "0/1 nodes").expect("a known reason");
        assert_eq!(short.message, "0/1 nodes");
        assert_eq!(StartFailure::of("ContainerCreating", ""), None);
    }
}
