//! The nominated clusters of a Workload, against its MultiKueueConfig (docs/reference/dispatch.md §9).

use std::collections::BTreeSet;

use dispatch::{Dispatcher, workload::LocalWorkload};
use engine::ids::ClusterId;

use super::{DispatchEffect, evaluation::DispatchEvaluation};
use crate::control::workloads::{NominationChange, Transition};

impl DispatchEvaluation<'_> {
    /// Finds the nominated clusters to which nothing new is sent.
    pub(super) fn check_nominations(&self, hub: &mut LocalWorkload) {
        if self.config.dispatcher == Dispatcher::External {
            self.drop_strange_nominations(hub);
        } else {
            self.find_unconfigured(hub);
        }
    }

    /// A program that may write a Workload's status may not send it to a cluster that its queue does not dispatch to, nor away from
    /// the checkpoint that its job requires. The list is that program's, so it stays as it is.
    fn drop_strange_nominations(&self, hub: &mut LocalWorkload) {
        let fleet = self.inputs.registry.fleet();
        let (config, request) = (self.multikueue_config(), self.request());
        hub.nominated_clusters.retain(|id| {
            let may = config.is_some_and(|config| fleet.may_be_nominated((config, request), *id));
            if !may {
                let cluster = fleet.name(*id);
                // Every evaluation finds it again.
                tracing::debug!(workload = %self.key, cluster, "nominated, but not in the MultiKueueConfig, or without the checkpoint");
            }
            may
        });
    }

    fn find_unconfigured(&self, hub: &mut LocalWorkload) {
        let nominated = hub.nominated_clusters.iter().copied();
        hub.unconfigured_clusters = nominated.filter(|id| self.has_left(*id)).collect();
    }

    /// Whether the MultiKueueConfig does not have a cluster. Without a known one nothing has left it: one that is deleted and made again
    /// keeps its nominations.
    fn has_left(&self, cluster: ClusterId) -> bool {
        let fleet = self.inputs.registry.fleet();
        let config = self.multikueue_config().filter(|config| fleet.has_config(config));
        config.is_some_and(|config| !fleet.is_configured(config, cluster))
    }

    /// Nominates the clusters that race now. Nominated ones stay while the MultiKueueConfig has them, because they may have a copy.
    pub(super) fn nominate_all(&mut self) -> Option<DispatchEffect> {
        let record = self.inputs.workloads.get(self.key)?;
        let fleet = self.inputs.registry.fleet();
        let joining = self.racing.iter().flatten().map(|id| fleet.name(*id));
        let nominated = record.object().status.nominated_cluster_names.iter().map(String::as_str);
        let has_left = |name: &&str| fleet.find(name).is_some_and(|id| self.has_left(id));
        let (dropped, stay): (Vec<&str>, Vec<&str>) = nominated.partition(has_left);
        let clusters: BTreeSet<Box<str>> = joining.chain(stay).map(Into::into).collect();
        let dropped = dropped.into_iter().map(Into::into).collect();
        if self.begins_round(&record.object().status.nominated_cluster_names) {
            self.state.nominated_at = self.ctx.now;
        }
        let change = NominationChange { dropped, ..NominationChange::of(clusters) };
        Some(DispatchEffect::Propose(Transition::Nominate(change)))
    }
}
