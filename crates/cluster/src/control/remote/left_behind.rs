//! A worker that is not registered any more, and cannot be reached: what it has of ours stays there (spec/dispatch.md §9).
//!
//! Its connection outlives its registration for a while, but not the process. People are told when the work goes elsewhere.

use crds::names::reasons::LEFT_BEHIND;
use runtime::{
    events::{About, News, Severity},
    watch::Key,
};

use super::Control;
use crate::control::record::has_quota;

impl Control {
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
