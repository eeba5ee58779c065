//! A worker that is not registered any more, and cannot be reached: what it has of ours stays there (spec/dispatch.md §9).
//!
//! Its connection outlives its registration for a while, but not the process. People are told when the work goes elsewhere.

use crds::names::reasons::LEFT_BEHIND;
use jiff::Timestamp;
use runtime::{
    events::{About, News, Severity},
    watch::Key,
};

use super::{Control, Remote};
use crate::control::{record::has_quota, task::Names};

impl Control {
    /// Workers that are not registered any more and have nothing of ours, nor can get anything.
    pub(in crate::control) fn clean_workers(&self, now: Timestamp) -> Names {
        let left = self.remotes.iter().filter(|(name, _)| !self.clusters.is_registered(name));
        left.filter(|(_, remote)| remote.is_clean(now)).map(|(name, _)| name.clone()).collect()
    }

    /// Tells of a Workload that is taken from such a worker, once.
    pub(super) fn tell_left_behind(&mut self, key: &Key) {
        let Some(record) = self.workloads.get(key) else {
            return;
        };
        let workload = record.object();
        let cluster = workload.status.cluster_name.as_deref().filter(|_| has_quota(workload));
        let Some(cluster) = cluster.filter(|name| !self.clusters.is_registered(name)) else {
            return;
        };
        if record.wants.retry.is_some() {
            return;
        }
        let note = format!(
            "worker cluster \"{cluster}\" is not registered any more; what it has of this workload is left behind"
        );
        tracing::warn!(cluster, workload = %key, "what an unregistered worker has is left behind");
        let about = About::of(workload);
        let (severity, reason) = (Severity::Warning, LEFT_BEHIND.to_owned());
        self.notices.push(News { about, severity, action: reason.clone(), reason, note });
    }
}

impl Remote {
    /// Whether it has nothing of ours, as its watches say, and nothing is on its way there.
    fn is_clean(&self, now: Timestamp) -> bool {
        let seen = self.link.active && self.is_listed();
        let empty = self.clones.objects.is_empty() && self.jobs.objects.is_empty();
        seen && empty && !self.sent.values().any(|sent| sent.waits(now))
    }
}
