//! The nominated clusters of a Workload, against its MultiKueueConfig (docs/reference/dispatch.md §9).

use dispatch::{Dispatcher, Fleet};
use engine::ids::ClusterId;

use crate::control::{
    multikueue::view::evaluated_workload::{EvaluatedWorkload, EvaluationView},
    workloads::NominationChange,
};

/// The nominated clusters of a Workload that may get something.
#[derive(Debug, Default)]
pub(crate) struct Nominations {
    pub(crate) clusters: Vec<ClusterId>,
    /// Those of them to which nothing new is sent.
    pub(crate) unconfigured: Vec<ClusterId>,
    /// Another program nominates.
    pub(crate) by_others: bool,
}

/// Finds the nominated clusters to which nothing new is sent, and says which program nominates.
pub(crate) fn check_nominations(
    view: EvaluationView<'_>,
    mut nominated: Vec<ClusterId>,
) -> Nominations {
    let EvaluationView { workload, fleet } = view;
    if workload.config.dispatcher == Dispatcher::External {
        drop_strange_nominations(view, &mut nominated);
        return Nominations { clusters: nominated, unconfigured: Vec::new(), by_others: true };
    }
    let left = nominated.iter().copied().filter(|id| has_left(workload, fleet, *id));
    let unconfigured = left.collect();
    Nominations { clusters: nominated, unconfigured, by_others: false }
}

/// A program that may write a Workload's status may not send it to a cluster that its queue does not dispatch to, nor away from
/// the checkpoint that its job requires. The list is that program's, so it stays as it is.
fn drop_strange_nominations(view: EvaluationView<'_>, nominated: &mut Vec<ClusterId>) {
    let EvaluationView { workload, fleet } = view;
    let (config, request) = (workload.multikueue_config(), workload.request().map(|one| &**one));
    nominated.retain(|id| {
        let may = config.is_some_and(|config| fleet.may_be_nominated(config, request, *id));
        if !may {
            let cluster = fleet.name(*id);
            // Every evaluation finds it again.
            tracing::debug!(workload = %workload.key, cluster, "nominated, but not in the MultiKueueConfig, or without the checkpoint");
        }
        may
    });
}

/// Whether the MultiKueueConfig does not have a cluster. Without a known one nothing has left it: one that is deleted and made again
/// keeps its nominations.
fn has_left(workload: EvaluatedWorkload<'_>, fleet: &Fleet, cluster: ClusterId) -> bool {
    let config = workload.multikueue_config().filter(|config| fleet.has_config(config));
    config.is_some_and(|config| !fleet.is_configured(config, cluster))
}

/// Nominates the clusters that race now. Nominated ones stay while the MultiKueueConfig has them, because they may have a copy.
pub(crate) fn nominate_all(
    workload: EvaluatedWorkload<'_>,
    fleet: &Fleet,
    racing: &[ClusterId],
) -> Option<NominationChange> {
    let status = &workload.record()?.object().status;
    let nominated = status.nominated_cluster_names.iter().map(String::as_str);
    let leaves = |name: &&str| fleet.find(name).is_some_and(|id| has_left(workload, fleet, id));
    let (dropped, mut clusters): (Vec<&str>, Vec<&str>) = nominated.partition(leaves);
    for name in racing.iter().map(|id| fleet.name(*id)) {
        if !clusters.contains(&name) {
            clusters.push(name);
        }
    }
    if !workload.config.dispatcher.adds_in_rounds() {
        clusters.sort_unstable();
    }
    let dropped = dropped.into_iter().map(Into::into).collect();
    Some(NominationChange { dropped, ..NominationChange::of(clusters.into_iter().map(Into::into)) })
}
