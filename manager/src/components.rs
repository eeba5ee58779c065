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

/// The parts that this version has.
const EXISTING: &[Component] = &[Component::Webhooks];

/// The components asked for, if there are such.
///
/// # Errors
/// If one of them does not exist in this version. Doing nothing in its place would be taken for a hang.
pub(crate) fn existing(asked: &[Component]) -> anyhow::Result<BTreeSet<Component>> {
    let missing: Vec<String> = asked
        .iter()
        .filter(|component| !EXISTING.contains(component))
        .filter_map(|component| Some(component.to_possible_value()?.get_name().to_owned()))
        .collect();
    anyhow::ensure!(
        missing.is_empty(),
        "this version has no component {}; --components=webhooks is what it can run",
        missing.join(", ")
    );
    Ok(asked.iter().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_that_do_not_exist_are_named() {
        assert!(existing(&[Component::Webhooks]).is_ok());
        let asked = [Component::Webhooks, Component::Scheduler, Component::Jobs];
        let error = existing(&asked).expect_err("not there").to_string();
        assert!(error.starts_with("this version has no component scheduler, jobs;"), "{error}");
    }
}
