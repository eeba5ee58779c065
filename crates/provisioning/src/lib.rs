//! ProvisioningRequests of admission checks, pure: what a Workload with quota asks of an autoscaler, and what the answers mean for its
//! check (docs/reference/kueue.md §2.3).
//!
//! A Workload has at most one present ProvisioningRequest per check. Its name holds the number of the attempt, so that a request that
//! failed is never asked again. Nothing is remembered: each decision reads the Workload, the config and the requests that exist.
//!
//! | module | concept |
//! |---|---|
//! | [`decide`](mod@decide) | the next state of a check, and the next request |
//! | [`attempt`] | names of requests and templates, the number in them |
//! | [`check_state`] | what the conditions of a request mean for its check |
//! | [`pod_set_updates`] | what a provisioned request adds to the pods |
//! | [`requested_pods`] | pod sets that a request covers, and which share an entry |
//! | [`template`] | the pod template of an entry |
//! | [`request`] | the request of an attempt |
//! | [`headroom`] | the nodes that an autoscaler can still add, from its own objects |
//! | [`active`] | whether a check is usable: the condition `Active` of the AdmissionCheck |
//! | [`api`] | the kinds that are written |

pub mod active;
pub mod api;
pub mod attempt;
pub mod check_state;
pub mod decide;
pub mod headroom;
pub mod pod_set_updates;
pub mod request;
pub mod requested_pods;
pub mod template;

pub use api::{EntryTemplate, ProvisioningRequest};
pub use check_state::CheckUpdate;
pub use decide::{
    AskedCheck, AskingWorkload, CheckDecision, RequestStep, asks, decide, is_over, next_names,
    unclaimed,
};
