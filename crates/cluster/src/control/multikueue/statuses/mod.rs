//! What copies say of their jobs, on the hub.
//!
//! | file | concept |
//! |---|---|
//! | `job_statuses`, `status_sync` | the status of the hub's jobs, and when that of a copy is written there |
//! | `copy_reclaims` | reclaimable pods by the counts of a copy |
//! | `open_jobs`, `adopted_result` | Events about ends that are missing or adopted |

pub(super) mod adopted_result;
pub(super) mod copy_reclaims;
pub(super) mod job_statuses;
pub(super) mod open_jobs;
pub(super) mod status_sync;
