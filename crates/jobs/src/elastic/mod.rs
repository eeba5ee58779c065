//! Elastic jobs, which change their size through workload slices (docs/reference/kueue.md §4.13).
//!
//! | question | module |
//! |---|---|
//! | What size does the copy of such a job have on a worker? | [`elastic_copies`] |
//! | Which gate holds its pods? | `elastic_job_gate` |
//! | Which of its gated pods start? | [`elastic_ungater`] |

pub mod elastic_copies;
pub mod elastic_job_gate;
pub mod elastic_ungater;
