//! The record about each worker that its leases depend on, and the confirmation of a person that nothing runs there.
//!
//! Both are annotations of the MultiKueueCluster. The record is written with its resourceVersion, so that of two processes
//! that both take themselves for the leader the second one to write is refused (docs/reference/dispatch.md §7-8).
//!
//! A worker without a MultiKueueCluster keeps its record in memory. Its connection is kept while work is recorded there, and this process
//! goes on granting; without it no process has a connection.

use crds::{
    meta::annotation,
    names::annotations::{FENCE, FENCE_RECORD},
    v1beta2::MultiKueueCluster,
};
use dispatch::{FenceRecord, Fleet};
use runtime::write::Write;
use serde_json::json;

use super::{FleetRegistry, conditions, records_work};
use crate::control::{
    context::Context,
    lease_objects::{record_of, record_text},
    outbox::{Purpose, Subject},
    timers::Reevaluation,
    workloads::Workloads,
};

impl FleetRegistry {
    /// Workers with leases: those that a policy asks them of, and those with a record, because their work needs them to run on. Of
    /// those without a MultiKueueCluster only the ones where work is recorded.
    pub(crate) fn leased_clusters(&self, workloads: &Workloads, fleet: &Fleet) -> Vec<Box<str>> {
        let wanted = |name: &str| {
            let id = fleet.find(name);
            id.is_some_and(|id| fleet.lease_policy(id).is_some())
        };
        let all = self.names().filter(|name| self.is_registered(name));
        let leased = all.filter(|name| wanted(name) || self.fence_record(name).is_some());
        let others = self.records.keys().filter(|name| !self.is_registered(name));
        let others = others.filter(|name| records_work(workloads, name));
        leased.chain(others.map(|name| &**name)).map(Into::into).collect()
    }

    /// The record about a worker. That of a MultiKueueCluster which was made again goes on where the former one ended, once a leader
    /// has claimed it.
    pub(crate) fn fence_record(&self, name: &str) -> Option<FenceRecord> {
        let known = self.records.get(name).copied();
        if !self.clusters.contains_key(name) {
            return known;
        }
        let written = self.clusters.get(name).and_then(|one| written_record(one.object()));
        let (Some(known), record) = (known, written.unwrap_or_default()) else {
            return written;
        };
        let (session, longest) =
            (record.session.max(known.session), record.longest.max(known.longest));
        Some(FenceRecord { session, longest, ..record })
    }

    /// Takes note of the record that a MultiKueueCluster has.
    pub(super) fn note_record(&mut self, name: &str, object: Option<&MultiKueueCluster>) {
        if let Some(record) = object.and_then(written_record) {
            self.records.insert(name.into(), record);
        }
    }

    /// The session of which a person has confirmed that nothing runs.
    pub(crate) fn fence_confirmation(&self, name: &str) -> Option<u64> {
        annotation(&self.registered(name)?.metadata, FENCE)?.parse().ok()
    }

    /// Writes the record about a worker, and removes the confirmation, which is about one loss only.
    pub(crate) fn write_fence_record(
        &mut self,
        name: &str,
        record: FenceRecord,
        ctx: &mut Context,
    ) {
        let Some(tracked) = self.clusters.get(name) else {
            self.records.insert(name.into(), record);
            return ctx.agenda.at(ctx.now, Reevaluation::Grants);
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

/// The record that a MultiKueueCluster has.
fn written_record(object: &MultiKueueCluster) -> Option<FenceRecord> {
    record_of(annotation(&object.metadata, FENCE_RECORD)?)
}
