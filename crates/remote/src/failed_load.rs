//! What follows from a kubeconfig that was not loaded. Pure.

use cluster::control::ConnectionStatus;
use crds::names::reasons::BAD_KUBE_CONFIG;

use crate::{
    cluster_profile::credential_plugin::PluginFailure,
    kubeconfig_refused::{KubeconfigRefused, not_loaded},
    load_kubeconfig::NotLoaded,
};

/// What follows, beside another attempt.
#[derive(Debug)]
pub(super) enum FailedLoad {
    /// Nor is the former kubeconfig in use any more: the connection ends.
    Refuse(KubeconfigRefused),
    /// The worker has no connection, as this says.
    Report(ConnectionStatus),
    /// The worker has no connection, and the condition says when the next attempt is made.
    ReportAttempt(PluginFailure),
    /// A connection that works stays.
    Keep,
}

/// Decides by the failure and whether a connection is open. A failure of the manager's own cluster does not affect it, and its
/// credential is the former one.
pub(super) fn failed_load(failure: NotLoaded, is_connected: bool) -> FailedLoad {
    match failure {
        NotLoaded::Refused(refused) => FailedLoad::Refuse(refused),
        NotLoaded::Later(_) | NotLoaded::Plugin(_) if is_connected => FailedLoad::Keep,
        NotLoaded::Later(cause) => {
            FailedLoad::Report(ConnectionStatus::lost(BAD_KUBE_CONFIG, not_loaded(&cause)))
        }
        NotLoaded::Plugin(failure) => FailedLoad::ReportAttempt(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_ends_a_connection_that_works() {
        for is_connected in [true, false] {
            let refused = NotLoaded::Refused(KubeconfigRefused::NoReference);
            let follows = failed_load(refused, is_connected);
            assert!(matches!(follows, FailedLoad::Refuse(KubeconfigRefused::NoReference)));
        }
    }

    #[test]
    fn another_failure_is_reported_only_without_a_connection() {
        let later = || NotLoaded::Later("no answer".to_owned());
        let plugin = || NotLoaded::Plugin(PluginFailure::NoTerminal { name: "gke".to_owned() });
        assert!(matches!(failed_load(later(), true), FailedLoad::Keep));
        assert!(matches!(failed_load(plugin(), true), FailedLoad::Keep));
        let FailedLoad::Report(status) = failed_load(later(), false) else {
            panic!("it is reported");
        };
        let ConnectionStatus { active, reason, message } = status;
        assert_eq!((reason, message.contains("no answer")), (BAD_KUBE_CONFIG, true));
        assert!(!active);
        assert!(matches!(failed_load(plugin(), false), FailedLoad::ReportAttempt(_)));
    }
}
