//! The process that leads: it waits, reads the clock, watches and writes, and lets `cluster::control` decide.
//!
//! | module | concept |
//! |---|---|
//! | [`leader`] | leader election, and the tasks of the leader |
//! | [`control_loop`] | inputs in, writes out, time read |
//! | [`input_queues`] | a queue of inputs per source, read in turn |
//! | [`decision_metrics`] | how long decisions take, and how long inputs wait for them |
//! | [`explanations`] | what pending Workloads lack, for the visibility API of the process |
//! | `clock` | jumps of the wall clock |
//! | [`sources`] | what a composition observes in its own cluster |
//! | [`worker_sources`] | what a manager observes on a worker |
//! | `job_sources` | jobs of the own cluster, and what they need once there is one |
//! | `job_watch`, `autoscaler_sources` | watches of kinds of jobs and what they need; watches of autoscalers |
//!
//! Nothing here decides about an object.

mod autoscaler_sources;
mod clock;
pub mod control_loop;
pub mod decision_metrics;
pub mod explanations;
pub mod input_queues;
mod job_sources;
mod job_watch;
pub mod leader;
pub mod sources;
pub mod worker_sources;

pub use self::{
    control_loop::{ControlIo, MeasurementSink, Unmeasured, Workers},
    decision_metrics::DecisionMetrics,
    explanations::AdmissionExplanations,
    input_queues::{InputQueues, InputSource, Inputs, NotSent, inputs},
    leader::{ClientMetrics, Election, HOME, Leader, LeaderContext},
    sources::{ObservedFeatures, Sources},
    worker_sources::{ListConfirmation, WorkerSources},
};
