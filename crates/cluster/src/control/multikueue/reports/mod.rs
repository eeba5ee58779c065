//! Capacity reports and Leases of workers, as inputs.
//!
//! | file | concept |
//! |---|---|
//! | `worker_reports` | reports and Leases of a worker, and the age of reports |
//! | `report_copies` | copies of reports on the hub |
//! | `label_keys` | the labels that workers report by |

pub(super) mod label_keys;
pub(super) mod report_copies;
pub(super) mod worker_reports;
