//! Validation of `waitForPodsReady` (docs/reference/kueue.md §6.4).

use crds::validation::FieldError;

use super::{InvalidField, Problems, not_negative};
use crate::{
    Configuration, GoDuration, RequeuingStrategy, WaitForPodsReady,
    gates::{Gate, Gates},
};

/// Problems of the block. The gate DisableWaitForPodsReady leaves it without effect.
pub(crate) fn check(config: &Configuration, gates: &Gates) -> Vec<InvalidField> {
    let disabled = gates.enabled(Gate::DisableWaitForPodsReady);
    let mut problems = Problems::default();
    if let Some(wait) = config.wait_for_pods_ready.as_ref().filter(|_| !disabled) {
        check_times(wait, &mut problems);
        check_strategy(&wait.requeuing_strategy, &mut problems);
    }
    problems.0
}

fn check_times(wait: &WaitForPodsReady, problems: &mut Problems) {
    let path = "waitForPodsReady.timeout";
    not_negative(wait.timeout, path, problems);
    // A file of v1beta1; in v1beta2 zero is the default.
    if wait.timeout == GoDuration::ZERO {
        problems.extend([FieldError::required(path, "must be specified")]);
    }
    // The default is `timeout`, which is validated above.
    if let Some(recovery) = wait.recovery_timeout.filter(|recovery| *recovery != wait.timeout) {
        not_negative(recovery, "waitForPodsReady.recoveryTimeout", problems);
    }
}

fn check_strategy(strategy: &RequeuingStrategy, problems: &mut Problems) {
    for (value, field) in [
        (strategy.backoff_limit_count.unwrap_or(0), "backoffLimitCount"),
        (strategy.backoff_base_seconds, "backoffBaseSeconds"),
        (strategy.backoff_max_seconds, "backoffMaxSeconds"),
    ] {
        let path = format!("waitForPodsReady.requeuingStrategy.{field}");
        problems.unless(value >= 0, &path, "must not be negative");
    }
}
