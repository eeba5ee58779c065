//! The parts of the manager that can be switched, each for its own replicas if need be.

use std::collections::BTreeSet;

use clap::ValueEnum;

/// A part of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Component {
    /// Controllers of queues and Workloads.
    Core,
    /// Webhooks and conversion.
    Webhooks,
    /// Controllers of job kinds.
    Jobs,
    /// The scheduler.
    Scheduler,
    /// Dispatch to worker clusters.
    Multikueue,
}

/// Controllers and scheduler are one task here: it makes no sense to run only some of them.
const TOGETHER: &[Component] = &[Component::Core, Component::Jobs, Component::Scheduler];

/// What runs when nothing is said.
pub(crate) const DEFAULT: &str = "core,webhooks,jobs,scheduler,multikueue";

/// The components asked for, if they go together.
///
/// # Errors
/// If one of them makes no sense without another that is missing. Doing nothing in its place would be taken for a hang.
pub(crate) fn together(asked: &[Component]) -> anyhow::Result<BTreeSet<Component>> {
    let asked: BTreeSet<Component> = asked.iter().copied().collect();
    let names = |components: &[Component]| {
        let names = components.iter().filter_map(ValueEnum::to_possible_value);
        names.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    };
    let missing: Vec<Component> =
        TOGETHER.iter().copied().filter(|one| !asked.contains(one)).collect();
    let some = missing.len() < TOGETHER.len() || asked.contains(&Component::Multikueue);
    anyhow::ensure!(
        missing.is_empty() || !some,
        "--components: {} run together, {} missing",
        names(TOGETHER),
        names(&missing)
    );
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_and_scheduler_run_together() {
        use Component::{Core, Jobs, Multikueue, Scheduler, Webhooks};
        assert!(together(&[Webhooks]).is_ok());
        assert!(together(&[Webhooks, Core, Jobs, Scheduler]).is_ok());
        assert!(together(&[Core, Jobs, Scheduler, Multikueue]).is_ok());
        let error = together(&[Webhooks, Scheduler, Jobs]).expect_err("no core").to_string();
        assert_eq!(error, "--components: core, jobs, scheduler run together, core missing");
        assert!(together(&[Multikueue]).is_err());
    }
}
