//! `sluicectl`, the tool of operators and users; `kubectl sluice` if it is installed as `kubectl-sluice` (docs/sluicectl.md).
//!
//! A command reads objects, a pure function makes a model of them, and [`output`] renders the model as a table or as data.
//! Commands that change something plan the change as a value first; reads and writes are in the `run` of each command.
//!
//! | module | concept |
//! |---|---|
//! | [`args`], [`run`](mod@run), [`failure`], [`command_exit`] | the command line, the commands, their errors and exit codes |
//! | [`clusters`], [`explain`], [`top`] | what is there: workers, one Workload, queues |
//! | [`logs`] | logs of pods, wherever they run |
//! | [`join`], [`leave`] | the registration of a worker and its end |
//! | [`drain`] | taking a worker out of service and back |
//! | [`dr`] | a manager cluster made again from the copies on its workers |
//! | [`fence`] | the confirmation that nothing runs on a lost worker |
//! | [`access`], [`requests`] | kubeconfigs and clients; requests with errors that name their object |
//! | [`present_job`] | whether the job of an Event is still there |
//! | [`output`], [`table`], [`amounts`] | formats, tables, ages and quantities as text |
//! | `identity`, `made_by` | which cluster a registration is about; the mark of objects that a command has made |
//! | `conflicts`, `stdout` | changes that are made again; failed writes of the output |
//!
//! Invariant: no output contains a token, a key or a kubeconfig.

pub mod access;
pub mod amounts;
pub mod args;
pub mod clusters;
pub mod command_exit;
mod conflicts;
pub mod dr;
pub mod drain;
pub mod explain;
pub mod failure;
pub mod fence;
pub mod identity;
pub mod join;
pub mod leave;
pub mod logs;
mod made_by;
pub mod output;
pub mod present_job;
pub mod requests;
pub mod run;
pub mod stdout;
pub mod table;
pub mod top;
