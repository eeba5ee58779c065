//! Sizes of a Workload and its jobs that are written to their copies, and counted where it is placed; and slices of an elastic job
//! that extend another one.

use ::jobs::elastic_copies::is_of_elastic_job;
use crds::{
    meta::annotation, names::annotations::WORKLOAD_SLICE_REPLACEMENT_FOR, v1beta2::Workload,
};
use dispatch::workload::{LocalWorkload, SlicePredecessor};
use engine::ids::ClusterId;

use super::{
    admitted_work::admitted_work,
    copy_sizes::CopySizes,
    evaluation::DispatchEvaluation,
    view::{expected_spec, jobs_of},
    worker_writes,
};
use crate::control::elastic_slices::{extending, predecessor, predecessor_state};

impl DispatchEvaluation<'_> {
    /// Writes sizes to the copies on a worker.
    pub(super) fn push_size(&mut self, cluster: ClusterId) {
        let (Some(worker), Some(record)) =
            (self.worker(cluster), self.inputs.workloads.get(self.key))
        else {
            return;
        };
        let expected = expected_spec(record.object());
        let (expected, gates) = (expected.as_ref(), self.inputs.jobs.gates());
        let heirs = self.inputs.heirs();
        let sizes = CopySizes { worker, key: self.key, expected, heirs, gates, now: self.ctx.now };
        let jobs = jobs_of(self.key, self.inputs.workloads, self.inputs.jobs);
        let workload = record.object();
        let mark = self.identity(index::epoch(workload), None);
        let pushed = worker_writes::push_size(sizes, (workload, mark), &jobs, self.ctx);
        for (job, fields) in pushed {
            self.state.size_pushed((cluster, job), fields);
        }
    }

    /// What the other slices of an elastic job mean for a Workload.
    pub(super) fn add_slices(&self, workload: &Workload, hub: &mut LocalWorkload) {
        hub.predecessor = predecessor_state(workload, self.inputs.workloads);
        hub.is_slice = annotation(&workload.metadata, WORKLOAD_SLICE_REPLACEMENT_FOR).is_some();
        hub.has_successor = self.inputs.heirs().has_successor(self.key, workload);
        // The pods that the job shows are those of the earlier slice.
        hub.job.active &= hub.predecessor == SlicePredecessor::Absent;
    }

    /// The cluster of the slice that the Workload extends.
    pub(super) fn extended_cluster(&self) -> Option<ClusterId> {
        let workloads = self.inputs.workloads;
        let old = predecessor(workloads.get(self.key)?.object(), workloads)?;
        self.inputs.registry.fleet().find(old.object().status.cluster_name.as_deref()?)
    }

    /// Counts an elastic job that has shrunk with the pods that it has now.
    pub(super) fn shrink_placement(&mut self) {
        let Some(record) = self.inputs.workloads.get(self.key) else {
            return;
        };
        let workload = record.object();
        if !is_of_elastic_job(workload) {
            return;
        }
        let (Some(admission), Some(id)) = (&workload.status.admission, record.id()) else {
            return;
        };
        let fleet = self.inputs.registry.fleet();
        if let Some(whole) = admitted_work(record, admission, (self.inputs.scheduler, fleet)) {
            let fleet = self.inputs.registry.fleet_mut();
            let (work, extends) = extending(workload, whole, self.inputs.workloads);
            fleet.shrink(id, work);
            extends.iter().for_each(|extension| fleet.extend(id, extension));
        }
    }
}
