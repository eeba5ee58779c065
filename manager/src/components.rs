//! The components of the manager. Replicas may run different ones.

use std::collections::BTreeSet;

use clap::ValueEnum;

/// A component of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum ManagerComponent {
    /// Controllers of queues and Workloads.
    Core,
    /// Webhooks and conversion.
    Webhooks,
    /// Controllers of job kinds.
    Jobs,
    /// The scheduler. Without it no quota is reserved, nothing makes room, and no failed node is replaced.
    Scheduler,
    /// Dispatch to worker clusters.
    Multikueue,
    /// The API of pending Workloads.
    Visibility,
    /// The API of Ray clusters.
    RayApi,
}

/// Controllers share one task, so they run together or not at all.
const CONTROLLERS: &[ManagerComponent] = &[ManagerComponent::Core, ManagerComponent::Jobs];

/// Components that are part of the task of the controllers.
const OF_CONTROLLERS: &[ManagerComponent] =
    &[ManagerComponent::Scheduler, ManagerComponent::Multikueue];

/// The default of `--components`.
pub(crate) const DEFAULT: &str = "core,webhooks,jobs,scheduler,multikueue,visibility";

/// The selected components.
///
/// # Errors
/// If one of them needs a component that is missing, or runs alone. Without the error the manager would silently do nothing.
pub(crate) fn select(selected: &[ManagerComponent]) -> anyhow::Result<BTreeSet<ManagerComponent>> {
    let selected: BTreeSet<ManagerComponent> = selected.iter().copied().collect();
    // Webhooks leave out the writes of the manager's account, and those of this API are the users' writes.
    anyhow::ensure!(
        !selected.contains(&ManagerComponent::RayApi) || selected.len() == 1,
        "--components: ray-api runs without other components, in a process with an account of its own"
    );
    let names = |components: &[ManagerComponent]| {
        let names = components.iter().filter_map(ValueEnum::to_possible_value);
        names.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    };
    let missing: Vec<ManagerComponent> =
        CONTROLLERS.iter().copied().filter(|one| !selected.contains(one)).collect();
    // Without any of them the process serves webhooks or the visibility API only, which is a valid replica.
    let some = CONTROLLERS.iter().chain(OF_CONTROLLERS).any(|one| selected.contains(one));
    anyhow::ensure!(
        missing.is_empty() || !some,
        "--components: {} run together, and {} with them: {} missing",
        names(CONTROLLERS),
        names(OF_CONTROLLERS),
        names(&missing)
    );
    Ok(selected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_run_together_and_the_scheduler_may_be_left_out() {
        use ManagerComponent::{Core, Jobs, Multikueue, RayApi, Scheduler, Visibility, Webhooks};
        assert!(select(&[RayApi]).is_ok() && select(&[RayApi, Visibility]).is_err());
        assert!(select(&[Webhooks]).is_ok() && select(&[Visibility]).is_ok());
        assert!(select(&[Webhooks, Core, Jobs, Scheduler]).is_ok());
        assert!(select(&[Core, Jobs, Scheduler, Multikueue]).is_ok());
        assert!(select(&[Core, Jobs]).is_ok() && select(&[Core, Jobs, Multikueue]).is_ok());
        let error = select(&[Webhooks, Scheduler, Jobs]).expect_err("no core").to_string();
        assert_eq!(
            error,
            "--components: core, jobs run together, and scheduler, multikueue with them: core missing"
        );
        for alone in [Core, Jobs, Scheduler, Multikueue] {
            assert!(select(&[alone, Webhooks]).is_err(), "{alone:?}");
        }
    }
}
