//! Sizes of a Workload and its jobs that are written to their copies, and counted where it is placed.

use ::jobs::elastic_copies::is_of_elastic_job;
use engine::ids::ClusterId;

use super::{
    admitted_work::admitted_work,
    copy_sizes::CopySizes,
    evaluation::DispatchEvaluation,
    view::{expected_spec, jobs_of},
    worker_writes,
};

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
        let sizes = CopySizes { worker, key: self.key, expected, gates };
        let jobs = jobs_of(self.key, self.inputs.workloads, self.inputs.jobs);
        worker_writes::push_size(sizes, &jobs, self.ctx);
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
        if let Some(work) = admitted_work(record, admission, (self.inputs.scheduler, fleet)) {
            self.inputs.registry.fleet_mut().shrink(id, work);
        }
    }
}
