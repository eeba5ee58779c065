//! The record about each worker that its leases depend on, and the confirmation of a person that nothing runs there.
//!
//! Both are annotations of the MultiKueueCluster. The record is written with its resourceVersion, so that of two processes
//! that both take themselves for the leader the second one to write is refused (docs/reference/dispatch.md §7-8).

use crds::{
    meta::annotation,
    names::annotations::{FENCE, FENCE_RECORD},
    v1beta2::MultiKueueCluster,
};
use dispatch::FenceRecord;
use runtime::write::Write;
use serde_json::json;

use super::{FleetRegistry, conditions};
use crate::control::{
    context::Context,
    lease_objects::{record_of, record_text},
    outbox::{Purpose, Subject},
};

impl FleetRegistry {
    /// Workers with leases: those that a policy asks them of, and those with a record, because their work needs them to run on.
    pub(crate) fn leased_clusters(&self) -> Vec<Box<str>> {
        let wanted = |name: &str| {
            let id = self.fleet.find(name);
            id.is_some_and(|id| self.fleet.lease_policy(id).is_some())
        };
        let all = self.names().filter(|name| self.is_registered(name));
        let leased = all.filter(|name| wanted(name) || self.fence_record(name).is_some());
        leased.map(Into::into).collect()
    }

    /// The record about a worker.
    pub(crate) fn fence_record(&self, name: &str) -> Option<FenceRecord> {
        record_of(annotation(&self.registered(name)?.metadata, FENCE_RECORD)?)
    }

    /// The session of which a person has confirmed that nothing runs.
    pub(crate) fn fence_confirmation(&self, name: &str) -> Option<u64> {
        annotation(&self.registered(name)?.metadata, FENCE)?.parse().ok()
    }

    /// Writes the record about a worker, and removes the confirmation, which is about one loss only.
    pub(crate) fn write_fence_record(&self, name: &str, record: FenceRecord, ctx: &mut Context) {
        let Some(tracked) = self.clusters.get(name) else {
            return;
        };
        let subject = (Subject::MultiKueueCluster, Purpose::FenceRecord);
        let Some(intent) = conditions::intent(name, tracked, subject, ctx) else {
            return;
        };
        let fields = json!({ "metadata": {
            "annotations": { FENCE_RECORD: record_text(record), FENCE: null },
            "resourceVersion": tracked.object().metadata.resource_version,
        } });
        ctx.outbox.submit(intent, |purpose, key| {
            Write::merge::<MultiKueueCluster>(purpose, key, None, &fields)
        });
    }
}
