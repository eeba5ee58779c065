//! The API `visibility.kueue.x-k8s.io` (docs/reference/kueue.md §6.1), without the server: which Workloads wait in which order, and
//! what an HTTP request means and is answered with.
//!
//! The state is fed with objects ([`PendingWorkloads`]), so every replica has it, whether or not it leads. A server authenticates a
//! request ([`front_proxy`]), has it authorized (crate `access`), and then asks [`answer`] for the response.
//!
//! | module | concept |
//! |---|---|
//! | `pending_workloads`, `pending_item`, `ranked_set` | the order of pending Workloads, and pages of it |
//! | [`api`], `page` | types of the API, and the part of a list that a query asks for |
//! | `route` | what a path means |
//! | [`front_proxy`] | the user of a request |
//! | [`workload_pods`] | the API `visibility.sluice.dev` of the same server: pods and logs of Workloads |
//! | [`answer`](mod@answer), [`status`], `media_type`, `discovery`, `open_api` | responses |

pub mod answer;
pub mod api;
mod discovery;
pub mod front_proxy;
mod media_type;
mod open_api;
mod page;
mod pending_item;
mod pending_workloads;
mod ranked_set;
mod route;
pub mod status;
pub mod workload_pods;

pub use answer::{VisibilityAnswer, answer};
pub use page::PendingPage;
pub use pending_workloads::{PendingWorkloads, QueueReference, UnknownQueue};
pub use route::is_probe;
