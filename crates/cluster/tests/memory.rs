//! The memory of a manager per pending Job, counted in bytes: the Job and its Workload as their decoders make them, and what control
//! keeps of both.

mod samples;

use std::sync::Arc;

use cluster::control::{Control, ManagerControl, ManagerInput, ManagerSettings};
use config::{Configuration, JobKinds, gates::Gates};
use crds::{decode::Decode, v1beta2::Workload};
use jiff::Timestamp;
use jobs::{JobObject, Kinds};
use runtime::watch::Change;

/// Enough that no table of a fixed size counts.
const JOBS: usize = 2_000;

/// Decoded objects, bytes.
const MAX_JOB: i64 = 2_000;
const MAX_WORKLOAD: i64 = 2_350;

/// What control keeps of both, bytes. Tables that grow by doubling are part of it, so that it depends on their number.
const MAX_STATE: i64 = 2_100;

/// The bytes per Job that a call leaves allocated, and its result.
fn kept<T>(call: impl FnOnce() -> T) -> (i64, T) {
    let mut result = None;
    let counted = allocation_counter::measure(|| result = Some(call()));
    let jobs = i64::try_from(JOBS).expect("thousands");
    (counted.bytes_current / jobs, result.expect("it was called"))
}

fn listed<T>(objects: &[Arc<T>]) -> Change<T> {
    Change::Reset { objects: objects.to_vec(), removed: vec![] }
}

/// A manager that has listed queues and nothing else.
fn manager() -> ManagerControl {
    let (file, gates) = (Configuration::without_file(None).expect("defaults"), Gates::default());
    let kinds = JobKinds::configured(&file, &gates, &Kinds::default());
    let mut control = ManagerControl::new(ManagerSettings::new(&file, &gates, &kinds, false));
    samples::queues().into_iter().for_each(|list| control.observe(list, Timestamp::UNIX_EPOCH));
    control
}

#[test]
fn a_pending_job_and_its_workload_are_small() {
    let kind = jobs::job::kind();
    let decode_job =
        |number| Arc::new(kind.decode_text(&samples::job(number)).expect("a Job decodes"));
    let decode_workload = |number| {
        Arc::new(Workload::decode_text(&samples::workload(number)).expect("a Workload decodes"))
    };
    let (of_job, all_jobs) = kept(|| (0..JOBS).map(decode_job).collect::<Vec<Arc<JobObject>>>());
    let (of_workload, workloads) =
        kept(|| (0..JOBS).map(decode_workload).collect::<Vec<Arc<Workload>>>());
    let mut control = manager();
    let (of_state, ()) = kept(|| {
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        control.observe(ManagerInput::Workload(listed(&workloads)), now);
        control.observe(ManagerInput::Job(kind.clone(), listed(&all_jobs)), now);
        control.decide(now);
    });
    assert!(of_job <= MAX_JOB, "a Job takes {of_job} bytes");
    assert!(of_workload <= MAX_WORKLOAD, "a Workload takes {of_workload} bytes");
    assert!(of_state <= MAX_STATE, "control keeps {of_state} bytes");
}
